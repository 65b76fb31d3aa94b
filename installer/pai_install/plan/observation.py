"""The observation that an operation plans from, as plain values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_install.plan.model import Inventory
from pai_install.plan.observed import Certificate, Observed


@dataclass(frozen=True, slots=True)
class Observation:
    """machines: those that answered, as module pai_facts saw them. unreachable: host -> why it could not be observed.

    at: when, in seconds since 1970. unproven: machine -> why it is not known to work, as earlier runs left it.
    answers: the Kubernetes objects that each of the operation's queries gave. box: the certificates that the dev box
    keeps of this site; None where it was not looked at.
    """

    inventory: Inventory
    machines: Mapping[str, Observed]
    unreachable: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0
    unproven: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    box: tuple[Certificate, ...] | None = None
