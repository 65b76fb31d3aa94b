"""From the page of a job to the web page in it, such as a notebook, and to its SSH server."""

from __future__ import annotations

import shlex
from ipaddress import IPv4Network

from starlette.requests import cookie_parser
from starlette.responses import Response

from pai_install.console.endpoint import ApiCall
from pai_install.console.errors import RestError, forbidden
from pai_install.console.guards import origin
from pai_install.console.job_access import read_job_now
from pai_install.console.sign_in.forms import sent_to
from pai_install.console.sign_in.sessions import COOKIE as SESSION
from pai_install.console.web_pages.access import (
    COOKIE,
    LASTS,
    base_path,
    new_cookie,
)
from pai_install.console.web_pages.owned import port_instance, require_port
from pai_install.jobs.state import JobState
from pai_install.users.credentials import fingerprint

# a page of the console, or an address that a person types: a web page of another job is `same-site`
_TRUSTED = ("same-origin", "none")
# what a person wrote a token of the page Account to
_TOKEN_FILE = "~/.pai-token"  # noqa: S105 - its path


def opens(call: ApiCall, job: JobState) -> str:
    """What the page of a job says to its owner of its web page: "yes", "later", or "" for nothing."""
    pages = call.services.settings.web_pages
    if pages is None or job.user != call.caller.label or job.ended or port_instance(job, "web") is None:
        return ""
    try:
        require_port(job, "web", IPv4Network(pages.network))
    except RestError:
        return "later"
    return "yes"


def ssh_command(call: ApiCall, job: JobState) -> str:
    """The command with which the owner connects to the SSH server of a job, "" for everyone else."""
    pages = call.services.settings.web_pages
    if pages is None or job.user != call.caller.label or job.ended or port_instance(job, "ssh") is None:
        return ""
    console = origin(call.headers.get("host", ""), pages.port)
    # ssh writes %h in small letters. An alias per job has a host key of its own, also for the next job of the name.
    proxy = f"pai-install job connect --console {console} --token-file {_TOKEN_FILE} %n"
    return f"ssh -o ProxyCommand='{proxy}' -o HostKeyAlias={job.uid} {shlex.quote(f'root@{job.name}')}"


def open_page(call: ApiCall) -> Response:
    """Gives the browser of the owner a cookie for the web page of a job, and sends it there.

    The program in another job shares the host with the console. So its scripts do not open this one.
    """
    pages = call.services.settings.web_pages
    if pages is None:
        raise forbidden("this site opens no web pages of jobs")
    job = read_job_now(call)
    if job.user != call.caller.label:
        raise forbidden("the web page of a job is for its owner")
    if call.headers.get("sec-fetch-site", "") not in _TRUSTED:
        raise forbidden("open the web page from the page of its job")
    require_port(job, "web", IPv4Network(pages.network))
    path = base_path(job.user, job.name)
    response = sent_to(f"{origin(call.headers.get('host', ''), pages.port)}{path}")
    session = fingerprint(cookie_parser(call.headers.get("cookie", "")).get(SESSION, ""))
    value, seconds = new_cookie(call.services, session, job), int(LASTS.total_seconds())
    response.set_cookie(COOKIE, value, max_age=seconds, path=path, secure=True, httponly=True, samesite="lax")
    return response
