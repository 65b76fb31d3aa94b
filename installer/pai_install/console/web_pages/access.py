"""Who may use the web page of a job: its owner, in a browser that opened it from the console."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network
from urllib.parse import quote

from pai_install.cluster.client import ApiError
from pai_install.console.caller import Caller
from pai_install.console.errors import RestError, forbidden, rest_error
from pai_install.console.job_access import no_job
from pai_install.console.model.recent import RecentByKey
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.tokens import sealed, unsealed
from pai_install.errors import PaiError
from pai_install.jobs.directory import JobDirectory
from pai_install.jobs.pod_status import Instance
from pai_install.jobs.state import JobState

# a browser sends it to all ports of the host, and below this path alone
COOKIE, PREFIX = "__Secure-pai-web", "/open"
HTTPS_PORT = 443
LASTS = timedelta(hours=12)
# what the API server said counts for this time
_KEPT_S = 5.0
_MOST_KEPT = 5000
_MOST_COOKIES = 5
_SESSION, _JOB = "session", "job"
OWNER_ONLY = "the web page of a job is for its owner"


def base_path(user: str, job: str) -> str:
    """The path of the web page of a job. Its program knows it by its own user and job."""
    return f"{PREFIX}/{quote(f'{user}~{job}', safe='~')}/"


def origin(host: str, port: int) -> str:
    """The origin of a port of the console, by the host name that a browser asks. host: with or without a port."""
    name = re.sub(r":\d+$", "", host)
    return f"https://{name}" if port == HTTPS_PORT else f"https://{name}:{port}"


@dataclass(frozen=True, slots=True)
class WebPage:
    """The web page of a pod that runs."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Visit:
    """A browser at a web page. key: the same for all of its requests."""

    caller: Caller
    key: tuple[str, str]
    page: WebPage


def page_instance(job: JobState) -> Instance | None:
    """The instance with the web page, or None for a job without one."""
    return next((one for one in job.instances if one.web_port and not one.gone), None)


def require_page(job: JobState, network: IPv4Network) -> WebPage:
    """The web page of a job. Raises RestError for a job without one, and for one that does not run yet."""
    one = page_instance(job)
    if one is None or job.ended:
        raise RestError(HTTPStatus.NOT_FOUND, "NoWebPageError", f"{job.name} has no web page")
    # a node writes the status of its pods, and the console asks from the network of a control plane
    if one.state != "RUNNING" or not _is_in(one.address, network):
        raise RestError(HTTPStatus.SERVICE_UNAVAILABLE, "NoWebPageError", f"{job.name} is not ready yet")
    return WebPage(one.address, one.web_port)


def _is_in(address: str, network: IPv4Network) -> bool:
    try:
        return IPv4Address(address) in network
    except ValueError:
        return False


def new_cookie(services: ConsoleServices, session: str, job: JobState) -> str:
    """The value of the cookie for a web page. session: key of the browser's session, which ends it, too."""
    assert services.sign_in is not None  # noqa: S101 - pages need it
    values = {_SESSION: session, _JOB: job.uid}
    return sealed(COOKIE, values, datetime.now(UTC) + LASTS, services.sign_in.keys.signing)


@dataclass
class PageAccess:
    """Admits the owners of jobs. It may ask the cluster: call it in a thread. network: of all pods."""

    services: ConsoleServices
    network: IPv4Network
    clock: Callable[[], float] = time.monotonic
    _recent: RecentByKey[tuple[str, str], JobState] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._recent = RecentByKey(_KEPT_S, _MOST_KEPT, self.clock)

    def admit(self, user: str, name: str, cookies: Iterable[str]) -> Visit:
        """The visit of a request. Raises RestError for everyone but the owner."""
        for value in list(cookies)[:_MOST_COOKIES]:
            key = self._key(value)
            if key is not None:
                return self._visit(user, name, key)
        raise forbidden("open this page from the page of its job")

    def still(self, user: str, name: str, visit: Visit) -> bool:
        """Whether a visit may go on, to the same pod."""
        try:
            return self._visit(user, name, visit.key).page == visit.page
        except (RestError, PaiError):
            return False

    def _key(self, cookie: str) -> tuple[str, str] | None:
        sign_in = self.services.sign_in
        values = unsealed(COOKIE, cookie, sign_in.keys.all, datetime.now(UTC)) if sign_in is not None else None
        return (values.get(_SESSION, ""), values.get(_JOB, "")) if values is not None else None

    def _visit(self, user: str, name: str, key: tuple[str, str]) -> Visit:
        session, uid = key
        assert self.services.sign_in is not None  # noqa: S101 - there is a key
        caller = self.services.sign_in.sessions.caller_of(session)
        if caller is None:
            raise forbidden("your session is over: sign in, and open this page from the page of its job")
        try:
            job = self._job(caller, user, name, key)
        except ApiError as error:
            raise rest_error(error) from error
        if job.uid != uid or job.user != caller.label or job.group not in caller.groups:
            raise forbidden(OWNER_ONLY)
        return Visit(caller, key, require_page(job, self.network))

    def _job(self, caller: Caller, user: str, name: str, key: tuple[str, str]) -> JobState:
        """The job of the memory, which the API server shows the caller. Raises RestError and ApiError."""
        model = self.services.model
        found = [one.job for one in model.jobs.find(user, name, None) if one.job.uid == key[1]]
        if not found or found[0].gone:
            raise no_job(f"{user}~{name}")
        job = found[0]
        return self._recent.get(key, lambda: self._seen(caller, job), lambda kept: kept.state == job.state)

    def _seen(self, caller: Caller, job: JobState) -> JobState:
        """The job as the API server shows it to the caller. Raises RestError and ApiError."""
        model = self.services.model
        client = self.services.clients.of(caller)
        seen = JobDirectory(model.profile, model.kinds, "", client).look(job, model.jobs.status_of(job))
        if seen is None:
            raise no_job(f"{job.user}~{job.name}")
        return seen
