"""The snapshot of a machine between runs: counters, identities, incidents, verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pai_install.health.collect.collector import redact
from pai_install.json_schema import Real

_CARD = re.compile(r"(?:GPU|MIG)-redacted-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class PastIncident:
    """One incident, with the data that identify its card later.

    uuid: as `card_of` returns it, or the bus id if the card reported none. link: its NVLink, or ''.
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
    gpus: bus id -> card, for cards with a UUID. failed, warned: check ids with that verdict. said: "CHECK DEVICE" ->
    cause of findings that need attention. The oldest stored run also has the incidents of deleted runs.
    """

    time: float
    boot_id: str
    counters: Mapping[str, Mapping[str, Real]] = field(default_factory=dict)
    gpus: Mapping[str, str] = field(default_factory=dict)
    incidents: tuple[PastIncident, ...] = ()
    failed: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    said: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


def card_of(text: str) -> str:
    """Returns the stored form of a GPU's UUID, the same with and without --redact, or '' for other text ("GPU is
    lost").
    """
    word = str(redact(text))
    return word if _CARD.fullmatch(word) else ""


def with_current_uuids(snapshot: Snapshot, words: Mapping[str, str]) -> Snapshot:
    """Replaces pseudonyms with current UUIDs (`words`: card -> UUID), and drops slots without a match."""

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
    """The accepted state of the GPU in one slot. None: not recorded."""

    uuid: str = ""
    pcie_width: float | None = None
    pcie_gen: float | None = None
    memory_mib: float | None = None
    nvlinks: int | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The accepted state of one machine. gpus: bus id -> baseline.

    ib_ports: active InfiniBand ports, None if unknown.
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
