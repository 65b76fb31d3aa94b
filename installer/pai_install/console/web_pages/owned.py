"""Jobs for their owners alone, and the ports that they declare."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from pai_install.cluster.client import ApiError
from pai_install.console.caller import Caller
from pai_install.console.errors import RestError, forbidden, rest_error
from pai_install.console.job_access import no_job
from pai_install.console.model.recent import RecentByKey
from pai_install.console.services import ConsoleServices
from pai_install.jobs.directory import JobDirectory
from pai_install.jobs.pod_status import Instance
from pai_install.jobs.state import JobState

# what the API server said counts for this time
_KEPT_S = 5.0
_MOST_KEPT = 5000

PortKind = Literal["web", "ssh"]
# what a person calls the program at such a port
PROGRAMS: dict[PortKind, str] = {"web": "web page", "ssh": "SSH server"}


@dataclass(frozen=True, slots=True)
class PodPort:
    """A port of a pod that runs."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Visit:
    """A person at a port of a pod. key: the same for all of its requests. It has the UID of the job last."""

    caller: Caller
    key: tuple[str, str]
    pod: PodPort


def declared_port(one: Instance, kind: PortKind) -> int:
    """The port that a pod declares, 0 for none."""
    return one.web_port if kind == "web" else one.ssh_port


def port_instance(job: JobState, kind: PortKind) -> Instance | None:
    """The instance with such a port, or None for a job without one."""
    return next((one for one in job.instances if declared_port(one, kind) and not one.gone), None)


def require_port(job: JobState, kind: PortKind, network: IPv4Network) -> PodPort:
    """The port of a job. Raises RestError for a job without one, and for one that does not run yet."""
    one = port_instance(job, kind)
    if one is None or job.ended:
        code = "NoWebPageError" if kind == "web" else "NoSshServerError"
        raise RestError(HTTPStatus.NOT_FOUND, code, f"{job.name} has no {PROGRAMS[kind]}")
    # a node writes the status of its pods, and the console asks from the network of a control plane
    if one.state != "RUNNING" or not is_in(one.address, network):
        raise RestError(HTTPStatus.SERVICE_UNAVAILABLE, "JobNotReadyError", f"{job.name} is not ready yet")
    return PodPort(one.address, declared_port(one, kind))


def is_in(address: str, network: IPv4Network) -> bool:
    """Whether a text is an address of the network."""
    try:
        return IPv4Address(address) in network
    except ValueError:
        return False


@dataclass
class OwnedJobs:
    """Jobs as the API server shows them to their owners. It may ask the cluster: call it in a thread.

    network: of all pods.
    """

    services: ConsoleServices
    network: IPv4Network
    clock: Callable[[], float] = time.monotonic
    _recent: RecentByKey[tuple[str, str], JobState] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._recent = RecentByKey(_KEPT_S, _MOST_KEPT, self.clock)

    def visit(self, caller: Caller, user: str, name: str, key: tuple[str, str], kind: PortKind) -> Visit:
        """The visit of a caller to a job with this UID. Raises RestError for everyone but the owner."""
        try:
            job = self._job(caller, user, name, key)
        except ApiError as error:
            raise rest_error(error) from error
        if job.uid != key[1] or job.user != caller.label or job.group not in caller.groups:
            raise forbidden(f"the {PROGRAMS[kind]} of a job is for its owner")
        return Visit(caller, key, require_port(job, kind, self.network))

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
