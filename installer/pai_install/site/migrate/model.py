"""What is taken from an old site, before it is written in the current form."""

from __future__ import annotations

from dataclasses import dataclass, field

# what `gpu_type` and `gpu.type` of old files mean as a device plugin's resource
RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "enflame": "enflame.com/dtu"}


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was dropped or changed. what: where and which; why: a sentence without full stop."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class NewDevice:
    """The accelerators of a machine type."""

    type: str
    model: str
    count: str


@dataclass(frozen=True, slots=True)
class NewSku:
    """An entry of machine-sku. comment: what the reader has to check, or ""."""

    name: str
    mem: str
    vcore: str
    device: NewDevice | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class NewMachine:
    """An entry of machine-list. ssh: its own keys below `ssh`; comment as in NewSku."""

    hostname: str
    hostip: str
    sku: str
    control_plane: bool
    worker: bool
    ssh: dict[str, str] = field(default_factory=dict)
    password_variable: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class NewSite:
    """A whole site. origin: what it was, in words; config and services: the text of these files."""

    origin: str
    skus: tuple[NewSku, ...]
    machines: tuple[NewMachine, ...]
    config: str
    notes: tuple[Note, ...]
    services: str | None = None


def odd_control_planes(names: list[str]) -> tuple[int, list[Note]]:
    """How many of the masters, from the first, can stay control planes (1, 3 or 5); a note for each other."""
    count = len(names)
    kept = min(5, count - 1 if count and count % 2 == 0 else count)
    why = f"of {count} masters {kept} can be control planes: only 1, 3 or 5"
    return kept, [Note(f"the master role of {name}", why) for name in names[kept:]]
