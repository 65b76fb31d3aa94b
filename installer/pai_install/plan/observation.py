"""The observation that an operation plans from, as plain values. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_install.errors import ExitCode, PaiError
from pai_install.plan.model import Inventory
from pai_install.plan.observed import Certificate, Observed
from pai_install.schedulers.job_inventory import BlockingJob


def require_leader(leader: str, unreachable: Mapping[str, str], machines: Collection[str] | None = None) -> None:
    """Raises PaiError if the control-plane node that serves the others did not answer.

    machines: those that answered, if the caller observed them. unreachable: host -> cause.
    """
    if leader in unreachable or (machines is not None and leader not in machines):
        raise PaiError(
            f"cannot change the cluster: its control-plane node {leader} is unreachable: "
            f"{unreachable.get(leader, 'no answer')}",
            remedy="no changes made. Run the same command again when the node answers",
            code="leader-unreachable",
            exit_code=ExitCode.UNREACHABLE,
        )


@dataclass(frozen=True, slots=True)
class ApiUse:
    """A deprecated API that was asked for since the API server started.

    removed: the minor version that no longer has it, "" where none is known. users: "OBJECT: by whom" of objects that
    were last written through it, as far as they say.
    """

    group: str
    version: str
    resource: str
    removed: str = ""
    users: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As people write it: flowschemas of flowcontrol.apiserver.k8s.io/v1beta3."""
        return f"{self.resource} of {self.group}/{self.version}" if self.group else f"{self.resource} of {self.version}"


@dataclass(frozen=True, slots=True)
class Observation:
    """machines: responding machines with their facts from module pai_facts. unreachable: host -> cause.

    at: seconds since 1970. unproven: machine -> why earlier runs did not verify it. answers: the Kubernetes objects
    from each of the operation's queries. deprecated: APIs in use that will be removed, if the operation requests them.
    box: certificates of this site on the controller host, None if not read. kept_jobs: jobs of a scheduler that the
    operation removes.
    """

    inventory: Inventory
    machines: Mapping[str, Observed]
    unreachable: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0
    unproven: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    deprecated: tuple[ApiUse, ...] = ()
    box: tuple[Certificate, ...] | None = None
    kept_jobs: tuple[BlockingJob, ...] = ()

    @property
    def silent(self) -> bool:
        """Whether machines were asked and none answered."""
        return bool(self.unreachable) and not self.machines
