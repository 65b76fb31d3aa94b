"""Use case: the address of the web page in a job."""

from __future__ import annotations

from pai_install.app.context import App
from pai_install.app.jobs import JobName, open_job_directory
from pai_install.errors import ExitCode, PaiError
from pai_install.site.console import addresses, console_of, job_address


def web_page_address(app: App, request: JobName) -> str:
    """The address at which the owner of a job opens its web page. Raises PaiError for a job without one."""
    console = console_of(app.site)
    if console is None or not console.web_port:
        raise PaiError(
            f"cannot open {request.name}: the site opens no web pages of jobs",
            code="web-pages-closed",
            remedy="remove console: false and group_isolation: false",
            exit_code=ExitCode.USAGE,
        )
    job = open_job_directory(app).find(request.name, request.group)[0]
    if job.ended or not any(one.web_port for one in job.instances):
        raise PaiError(
            f"cannot open {request.name}: it has no web page",
            code="web-page-missing",
            remedy="add the label pai-install/web-port to its pod, or wait until it runs",
            exit_code=ExitCode.USAGE,
        )
    return f"{job_address(addresses(app.site)[0], job.user, job.name)}/open"
