"""The words of this room: a check, what it is asked about, what it rules; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from pai_install.checks.verdict import Verdict
from pai_install.preflight.evidence import Evidence, Interface
from pai_install.site import Machine, Site

BOX = "this box"  # the subject of findings about the machine that pai-install runs on
_Part = TypeVar("_Part")

# interfaces that pods and containers bring along
_MADE_BY_US = ("cni", "flannel", "docker", "br-", "veth", "cali", "kube-", "virbr", "tun", "tap", "nodelocaldns")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a check concludes about one machine; the machine's name and the check's id make it a Finding."""

    verdict: Verdict
    message: str
    value: str = ""
    expected: str = ""
    remedy: str = ""


def passed(message: str, value: str = "") -> Ruling:
    """All is well."""
    return Ruling(Verdict.PASS, message, value)


def skipped(reason: str) -> Ruling:
    """The check makes no sense here."""
    return Ruling(Verdict.SKIP, reason)


def warned(message: str, *, value: str = "", expected: str = "", remedy: str = "") -> Ruling:
    """Worth knowing; an installation can go on."""
    return Ruling(Verdict.WARN, message, value, expected, remedy)


def failed(message: str, *, value: str = "", expected: str = "", remedy: str = "") -> Ruling:
    """An installation would fail, or the cluster would not work."""
    return Ruling(Verdict.FAIL, message, value, expected, remedy)


def unknown(reason: str, *, remedy: str = "") -> Ruling:
    """The evidence is missing."""
    return Ruling(Verdict.UNKNOWN, reason, remedy=remedy)


@dataclass(frozen=True)
class Fleet:
    """All machines that gave evidence: what one machine's verdict needs of the others.

    architecture: this box's, by the kernel's name for it; empty when it does not matter.
    """

    site: Site
    evidence: Mapping[str, Evidence]
    architecture: str = ""

    @cached_property
    def machines(self) -> Mapping[str, Machine]:
        """Every machine of the site by its name."""
        return {machine.hostname: machine for machine in self.site.machines}

    @cached_property
    def hostnames(self) -> Mapping[str, list[str]]:
        """Host name in lower case -> machines that call themselves so."""
        return self._sharing(lambda _name, seen: [seen.identity.hostname.lower()] if seen.identity else [])

    @cached_property
    def machine_ids(self) -> Mapping[str, list[str]]:
        """Machine id -> machines that have it."""
        return self._sharing(lambda _name, seen: [seen.identity.machine_id] if seen.identity else [])

    @cached_property
    def product_uuids(self) -> Mapping[str, list[str]]:
        """UUID of the hardware -> machines that have it."""
        return self._sharing(lambda _name, seen: [seen.identity.product_uuid.lower()] if seen.identity else [])

    @cached_property
    def macs(self) -> Mapping[str, list[str]]:
        """MAC address of the interface with the site's address -> machines that have it."""
        return self._sharing(lambda name, seen: [own.mac for own in own_interfaces(self.machines[name], seen)])

    @cached_property
    def usual_mtu(self) -> int | None:
        """The MTU that most machines have."""
        counted = Counter(
            own.mtu
            for name, seen in self.evidence.items()
            for own in own_interfaces(self.machines[name], seen)
            if own.mtu
        )
        return counted.most_common(1)[0][0] if counted else None

    @cached_property
    def first(self) -> str:
        """The first control plane."""
        return self.site.control_planes[0].hostname

    def _sharing(self, values: Callable[[str, Evidence], list[str]]) -> Mapping[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name, seen in self.evidence.items():
            for value in values(name, seen):
                if value:
                    found[value].append(name)
        return found


@dataclass(frozen=True, slots=True)
class Case:
    """One machine to be judged."""

    site: Site
    machine: Machine
    evidence: Evidence
    fleet: Fleet

    @property
    def name(self) -> str:
        """The machine's name in the layout."""
        return self.machine.hostname


@dataclass(frozen=True, slots=True)
class Check:
    """One question. title: what must be so, for the documentation.

    judge: gives None where the question does not arise; raises MissingEvidenceError where it cannot tell.
    """

    id: str
    title: str
    judge: Callable[[Case], Ruling | None]


class MissingEvidenceError(Exception):
    """A check needs a part of the evidence that was not had."""

    def __init__(self, part: str) -> None:
        super().__init__(part)
        self.part = part


def had(part: _Part | None, name: str) -> _Part:
    """A part of the evidence. Raises MissingEvidenceError when it was not had."""
    if part is None:
        raise MissingEvidenceError(name)
    return part


def own_interfaces(machine: Machine, evidence: Evidence) -> list[Interface]:
    """The interface that has the machine's address in the site, as a list of one; empty when none has."""
    return [
        interface
        for interface in evidence.interfaces or ()
        if any(address.partition("/")[0] == machine.hostip for address in interface.addresses)
    ]


def is_pod_interface(name: str) -> bool:
    """Whether an interface is one that containers and pods bring along."""
    return name.startswith(_MADE_BY_US)


def size_text(amount: float) -> str:
    """Bytes for people: 512 B, 3.5 MiB, 220 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB" if amount < 1000 else f"{amount:.0f} TiB"
