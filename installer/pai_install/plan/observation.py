"""The observation that an operation plans from, as plain values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_install.plan.model import Inventory
from pai_install.plan.observed import Certificate, Observed


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
    """machines: those that answered, as module pai_facts saw them. unreachable: host -> why it could not be observed.

    at: when, in seconds since 1970. unproven: machine -> why it is not known to work, as earlier runs left it.
    answers: the Kubernetes objects that each of the operation's queries gave. deprecated: APIs in use that go away,
    where the operation asks for them. box: the certificates that the dev box keeps of this site; None where it was not
    looked at.
    """

    inventory: Inventory
    machines: Mapping[str, Observed]
    unreachable: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0
    unproven: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    deprecated: tuple[ApiUse, ...] = ()
    box: tuple[Certificate, ...] | None = None

    @property
    def silent(self) -> bool:
        """Whether machines were asked and none answered."""
        return bool(self.unreachable) and not self.machines
