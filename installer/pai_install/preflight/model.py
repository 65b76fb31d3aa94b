"""The input of a preflight check: one machine, and the facts of other machines for its verdict. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

from pai_install.checks.check import Check, Words, check
from pai_install.checks.evidence import Record, viewed
from pai_install.checks.result import Result
from pai_install.preflight.evidence import Interface, MachineIdentity, PreflightEvidence
from pai_install.preflight.limits import LIMITS
from pai_install.site import Machine, Site

BOX = "controller host"  # the subject of findings about the machine that pai-install runs on

# interfaces that pods and containers bring along
_MADE_BY_US = ("cni", "flannel", "docker", "br-", "veth", "cali", "kube-", "virbr", "tun", "tap", "nodelocaldns")


@dataclass(frozen=True)
class PreflightFleet:
    """All machines with evidence, for comparisons in the verdict on one machine.

    architecture: of the controller host in the kernel's terms. Empty: any.
    """

    site: Site
    evidence: Mapping[str, PreflightEvidence]
    architecture: str = ""

    @cached_property
    def machines(self) -> Mapping[str, Machine]:
        """Every machine of the site by its name."""
        return {machine.hostname: machine for machine in self.site.machines}

    @cached_property
    def hostnames(self) -> Mapping[str, list[str]]:
        """Host name in lower case -> machines with that name."""
        return self._sharing(lambda identity: identity.hostname.lower())

    @cached_property
    def machine_ids(self) -> Mapping[str, list[str]]:
        """Machine id -> machines that have it."""
        return self._sharing(lambda identity: identity.machine_id)

    @cached_property
    def product_uuids(self) -> Mapping[str, list[str]]:
        """UUID of the hardware -> machines that have it."""
        return self._sharing(lambda identity: identity.product_uuid.lower())

    @cached_property
    def own_interfaces(self) -> Mapping[str, Interface]:
        """Returns machine -> its interface with the site's address. Machines without one are omitted."""
        return {
            name: own
            for name, seen in self.evidence.items()
            if seen.has("interfaces")
            for own in own_interfaces(self.machines[name], seen)
        }

    @cached_property
    def macs(self) -> Mapping[str, list[str]]:
        """MAC address of the interface with the site's address -> machines that have it."""
        return _grouped((own.mac, name) for name, own in self.own_interfaces.items())

    @cached_property
    def usual_mtu(self) -> int | None:
        """The MTU that most machines have."""
        counted = Counter(own.mtu for own in self.own_interfaces.values() if own.mtu)
        return counted.most_common(1)[0][0] if counted else None

    @cached_property
    def leader(self) -> str:
        """The first control plane."""
        return self.site.control_planes[0].hostname

    def _sharing(self, value: Callable[[MachineIdentity], str]) -> Mapping[str, list[str]]:
        return _grouped((value(seen.identity), name) for name, seen in self.evidence.items() if seen.has("identity"))


def _grouped(pairs: Iterable[tuple[str, str]]) -> Mapping[str, list[str]]:
    """Returns value -> its machines, without the empty value."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for value, name in pairs:
        if value:
            found[value].append(name)
    return found


@dataclass(frozen=True, slots=True)
class Case:
    """One machine to check. evidence: a view that records its reads, see `case_of`."""

    site: Site
    machine: Machine
    evidence: PreflightEvidence
    fleet: PreflightFleet
    record: Record

    @property
    def name(self) -> str:
        """The machine's name in the layout."""
        return self.machine.hostname

    def limit(self, name: str) -> float:
        """Returns a threshold of preflight, and records its origin."""
        found = LIMITS.defaults[name]
        self.record.limit(name, found.source)
        return found.value


def case_of(fleet: PreflightFleet, name: str) -> Case:
    """The case of one machine that gave evidence."""
    record = Record()
    return Case(fleet.site, fleet.machines[name], viewed(fleet.evidence[name], record), fleet, record)


MachineJudge = Callable[[Case], Result | None]


def machine_check(**words: Unpack[Words]) -> Callable[[MachineJudge], Check[MachineJudge]]:
    """Declares a check of one machine. Its function returns None where the check does not apply."""
    return check(**words)


def own_interfaces(machine: Machine, evidence: PreflightEvidence) -> list[Interface]:
    """Returns a list with the interface of the machine's address in the site, or []."""
    return [
        interface
        for interface in evidence.interfaces
        if any(address.partition("/")[0] == machine.hostip for address in interface.addresses)
    ]


def is_pod_interface(name: str) -> bool:
    """Whether an interface belongs to containers or pods."""
    return name.startswith(_MADE_BY_US)


def size_text(amount: float) -> str:
    """Bytes for people: 512 B, 3.5 MiB, 220 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB" if amount < 1000 else f"{amount:.0f} TiB"
