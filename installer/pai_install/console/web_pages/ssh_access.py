"""Who may connect to the SSH server of a job: its owner, with a token of the API."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import HTTPConnection

from pai_install.console.endpoint import SIGNED_IN, caller_of, require_access
from pai_install.console.errors import RestError
from pai_install.console.job_access import no_job
from pai_install.console.openpai.job import by_name
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.authenticators import bearer_of
from pai_install.console.web_pages.owned import OwnedJobs, Visit
from pai_install.errors import PaiError
from pai_install.users.credentials import fingerprint

# below it: a job of the caller, or USER~NAME
PREFIX = "/connect"


@dataclass(frozen=True)
class SshAccess:
    """Admits the owners of jobs. It may ask the cluster: call it in a thread."""

    services: ConsoleServices
    jobs: OwnedJobs

    def admit(self, request: HTTPConnection, user: str, name: str) -> Visit:
        """The visit of a request. user: "" for the caller. Raises RestError for everyone but the owner."""
        caller = caller_of(self.services, request)
        require_access(caller, SIGNED_IN)
        self.services.rates.take(SIGNED_IN.rate, caller.name)
        user = user or caller.label
        visible = self.services.model.visible(caller)
        job = by_name(one.job for one in self.services.model.jobs.find(user, name, visible))
        if job is None:
            raise no_job(f"{user}~{name}")
        return self.jobs.visit(caller, user, name, (fingerprint(bearer_of(request)), job.uid), "ssh")

    def still(self, request: HTTPConnection, user: str, name: str, visit: Visit) -> bool:
        """Whether a visit may go on, to the same pod: its token stands, and the job is the caller's."""
        try:
            caller = caller_of(self.services, request)
            require_access(caller, SIGNED_IN)
            return self.jobs.visit(caller, user or caller.label, name, visit.key, "ssh").pod == visit.pod
        except (RestError, PaiError):
            return False
