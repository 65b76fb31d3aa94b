"""The data of an old site before its conversion to the current form."""

from __future__ import annotations

from dataclasses import dataclass, field

# what `gpu_type` and `gpu.type` of old files mean as a device plugin's resource
RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "enflame": "enflame.com/dtu"}
UNKNOWN_HARDWARE = "CHECK: the old site did not say what these machines have; preflight compares it with the machines"


@dataclass(frozen=True, slots=True)
class Note:
    """A dropped or changed entry. what: name and place. why: a sentence without a full stop."""

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
    """An entry of machine-sku. comment: points for the reader to check, or ""."""

    name: str
    mem: str
    vcore: str
    device: NewDevice | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class NewMachine:
    """An entry of machine-list. ssh: its own keys below `ssh`. comment as in NewSku."""

    hostname: str
    hostip: str
    sku: str
    control_plane: bool
    worker: bool
    storage: bool = False
    ssh: dict[str, str] = field(default_factory=dict)
    password_variable: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of config.yaml that comes from another file. comment: information for the reader, or ""."""

    key: str
    value: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class NewMachines:
    """The machines in old files. origin: description of the files.

    layout: text of a layout.yaml in the current form. Then skus and machines are empty.
    """

    origin: str
    skus: tuple[NewSku, ...] = ()
    machines: tuple[NewMachine, ...] = ()
    notes: tuple[Note, ...] = ()
    layout: str | None = None


def kept_masters(count: int) -> int:
    """How many of the masters, from the first, can stay control planes: 1, 3 or 5."""
    return min(5, count - 1 if count and count % 2 == 0 else count)


def why_no_control_plane(count: int) -> str:
    """Why a master of `count` does not become a control plane."""
    return f"of {count} masters {kept_masters(count)} can be control planes: only 1, 3 or 5"
