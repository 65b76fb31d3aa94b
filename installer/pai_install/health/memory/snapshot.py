"""What is remembered of a machine between runs: counters to subtract, identities, incidents, verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pai_install.health.collect.collector import redact

_CARD = re.compile(r"(?:GPU|MIG)-redacted-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class PastIncident:
    """One incident with what it takes to recognise the same card later.

    uuid: as `card_of` gives it, the bus id where the card did not say. link: the NVLink that it was on, '' for others.
    """

    xid: int
    uuid: str
    boot_id: str
    time: float
    link: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One run on one machine.

    counters: group ("gpu <card>", "port mlx5_0/1", "net eth0", "pci <bus id>") -> counter -> value.
    gpus: bus id -> card, of those that said. failed, warned: check ids with that verdict. said: "CHECK DEVICE" -> what
    is wrong, of what needs attention. The oldest run that is kept also carries the incidents of those that were
    forgotten.
    """

    time: float
    boot_id: str
    counters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gpus: Mapping[str, str] = field(default_factory=dict)
    incidents: tuple[PastIncident, ...] = ()
    failed: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    said: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


def card_of(text: str) -> str:
    """A GPU's UUID as it is remembered, the same with --redact and without; '' for what is none ("GPU is lost")."""
    word = str(redact(text))
    return word if _CARD.fullmatch(word) else ""


def with_current_uuids(snapshot: Snapshot, words: Mapping[str, str]) -> Snapshot:
    """Renames pseudonyms to today's UUIDs (`words`: card -> UUID); drops slots that cannot be matched."""

    def word(text: str) -> str:
        card = card_of(text)
        return words.get(card, card) or text

    def group(name: str) -> str:
        kind, _, card = name.partition(" ")
        return f"gpu {word(card)}" if kind == "gpu" else name

    return replace(
        snapshot,
        counters={group(name): values for name, values in snapshot.counters.items()},
        gpus={slot: word(text) for slot, text in snapshot.gpus.items() if card_of(text)},
        incidents=tuple(replace(incident, uuid=word(incident.uuid)) for incident in snapshot.incidents),
    )


def parse_snapshot(raw: Mapping[str, Any]) -> Snapshot:
    """The inverse of `as_json`. Raises KeyError, TypeError or ValueError for anything else."""
    return Snapshot(
        time=float(raw["time"]),
        boot_id=str(raw["boot_id"]),
        counters={str(group): dict(values) for group, values in raw.get("counters", {}).items()},
        gpus=dict(raw.get("gpus", {})),
        incidents=tuple(PastIncident(**incident) for incident in raw.get("incidents", ())),
        failed=tuple(raw.get("failed", ())),
        warned=tuple(raw.get("warned", ())),
        said=dict(raw.get("said", {})),
    )


@dataclass(frozen=True, slots=True)
class GpuBaseline:
    """What an administrator accepted as normal for the GPU in one slot; None where it was not known."""

    uuid: str = ""
    pcie_width: float | None = None
    pcie_gen: float | None = None
    memory_mib: float | None = None
    nvlinks: int | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was accepted as normal for one machine. gpus: bus id -> baseline.

    ib_ports: InfiniBand ports that are up; None where that was not known.
    """

    accepted_at: float
    gpus: Mapping[str, GpuBaseline]
    ib_ports: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


def parse_baseline(raw: Mapping[str, Any]) -> Baseline:
    """The inverse of `as_json`. Raises KeyError, TypeError or ValueError for anything else."""
    gpus = {str(bus_id): GpuBaseline(**values) for bus_id, values in raw["gpus"].items()}
    ports = raw.get("ib_ports")
    return Baseline(float(raw["accepted_at"]), gpus, int(ports) if ports is not None else None)
