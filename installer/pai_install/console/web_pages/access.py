"""Who may use the web page of a job: its owner, in a browser that opened it from the console."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from pai_install.console.errors import RestError, forbidden
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.tokens import sealed, unsealed
from pai_install.console.web_pages.owned import OwnedJobs, Visit
from pai_install.errors import PaiError
from pai_install.jobs.state import JobState

# a browser sends it to all ports of the host, and below this path alone
COOKIE, PREFIX = "__Secure-pai-web", "/open"
LASTS = timedelta(hours=12)
_MOST_COOKIES = 5
_SESSION, _JOB = "session", "job"


def base_path(user: str, job: str) -> str:
    """The path of the web page of a job. Its program knows it by its own user and job."""
    return f"{PREFIX}/{quote(f'{user}~{job}', safe='~')}/"


def new_cookie(services: ConsoleServices, session: str, job: JobState) -> str:
    """The value of the cookie for a web page. session: key of the browser's session, which ends it, too."""
    assert services.sign_in is not None  # noqa: S101 - pages need it
    values = {_SESSION: session, _JOB: job.uid}
    return sealed(COOKIE, values, datetime.now(UTC) + LASTS, services.sign_in.keys.signing)


@dataclass(frozen=True)
class PageAccess:
    """Admits the owners of jobs. It may ask the cluster: call it in a thread."""

    services: ConsoleServices
    jobs: OwnedJobs

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
            return self._visit(user, name, visit.key).pod == visit.pod
        except (RestError, PaiError):
            return False

    def _key(self, cookie: str) -> tuple[str, str] | None:
        sign_in = self.services.sign_in
        values = unsealed(COOKIE, cookie, sign_in.keys.all, datetime.now(UTC)) if sign_in is not None else None
        return (values.get(_SESSION, ""), values.get(_JOB, "")) if values is not None else None

    def _visit(self, user: str, name: str, key: tuple[str, str]) -> Visit:
        assert self.services.sign_in is not None  # noqa: S101 - there is a key
        caller = self.services.sign_in.sessions.caller_of(key[0])
        if caller is None:
            raise forbidden("your session is over: sign in, and open this page from the page of its job")
        return self.jobs.visit(caller, user, name, key, "web")
