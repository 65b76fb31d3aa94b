"""NVLink, PCI, InfiniBand and fabric manager texts -> plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from pai_install.health.evidence.parse.numbers import whole
from pai_install.health.evidence.parse.nvidia import normalise_bus_id
from pai_install.health.evidence.reading import parse_reading

_GPU = re.compile(r"^GPU (\d{1,18}): (.*?)(?: \(UUID: ([^)]+)\))?\s*$")
_ERROR = re.compile(r"^\s*Link (\d+): (.+?): (\d{1,18})\s*$")
_LSPCI = re.compile(
    r"^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]) .*?\[([0-9a-f]{4})\]: "
    r".*\[([0-9a-f]{4}):([0-9a-f]{4})\](.*)$"
)


@dataclass(frozen=True, slots=True)
class NvLinks:
    """`nvidia-smi nvlink -s` of one GPU. speeds: link -> GB/s, None for an inactive one. note: a text instead."""

    index: int
    uuid: str
    name: str
    speeds: Mapping[int, float | None] = field(default_factory=dict)
    note: str = ""


def parse_nvlink_status(text: str) -> tuple[NvLinks, ...]:
    """One entry per GPU, in order."""
    found: list[tuple[re.Match[str], dict[int, float | None], list[str]]] = []
    for line in text.splitlines():
        if line.startswith("GPU") and (match := _GPU.match(line)):
            found.append((match, {}, []))
        elif found and (text := line.strip()):
            number, speed = _link(text)
            if number is None:
                found[-1][2].append(text)
            else:
                found[-1][1][number] = speed
    return tuple(
        NvLinks(int(head.group(1)), head.group(3) or "", head.group(2), speeds, " ".join(notes))
        for head, speeds, notes in found
    )


@lru_cache(maxsize=4096)  # a thousand machines of one kind print the same lines
def _link(line: str) -> tuple[int | None, float | None]:
    """Returns the number and the speed of a link. The number is None for other text."""
    link, _, state = line.partition(": ")
    number = whole(link.removeprefix("Link "))
    return (number, parse_reading(state).number) if state else (None, None)


def parse_nvlink_errors(text: str) -> dict[int, dict[str, int]]:
    """GPU index -> "link N: counter" -> value of `nvidia-smi nvlink -e`."""
    found: dict[int, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in text.splitlines():
        if match := _GPU.match(line):
            current = found.setdefault(int(match.group(1)), {})
        elif match := _ERROR.match(line):
            current[f"link {match.group(1)}: {match.group(2)}"] = int(match.group(3))
    return found


@dataclass(frozen=True, slots=True)
class LspciDevice:
    """One line of `lspci -Dnn`. lost: the device answers ff to everything."""

    bus_id: str
    device_class: str
    vendor: str
    device: str
    lost: bool


def parse_lspci(text: str) -> tuple[LspciDevice, ...]:
    """Every device of the bus."""
    found = []
    for line in text.splitlines():
        if match := _LSPCI.match(line.strip()):
            bus_id, device_class, vendor, device, rest = match.groups()
            found.append(LspciDevice(normalise_bus_id(bus_id), device_class, vendor, device, "rev ff" in rest))
    return tuple(found)


def parse_sysfs(files: Mapping[str, str]) -> tuple[LspciDevice, ...]:
    """The devices below /sys/bus/pci/devices, of which the collector reads those of NVIDIA."""
    found = []
    for path, text in sorted(files.items()):
        folder, _, name = path.rpartition("/")
        if name == "class" and folder.startswith("/sys/bus/pci/devices/") and text.startswith("0x"):
            vendor, config = files.get(f"{folder}/vendor", ""), files.get(f"{folder}/config", "")
            bus_id = normalise_bus_id(folder.rpartition("/")[2])
            found.append(LspciDevice(bus_id, text[2:6], vendor.removeprefix("0x"), "", config == "ffffffff"))
    return tuple(found)


def nvidia_gpus(devices: tuple[LspciDevice, ...]) -> tuple[LspciDevice, ...]:
    """NVIDIA display and 3D controllers."""
    return tuple(device for device in devices if device.vendor == "10de" and device.device_class in ("0300", "0302"))


def nvswitches(devices: tuple[LspciDevice, ...]) -> tuple[LspciDevice, ...]:
    """NVIDIA bridges: the NVSwitches of a board."""
    return tuple(device for device in devices if device.vendor == "10de" and device.device_class == "0680")


@dataclass(frozen=True, slots=True)
class FabricPort:
    """One port below /sys/class/infiniband. rate in Gb/s, None when unreadable.

    board: the identifier of the card's type. interfaces: operational states of the network interfaces of the card.
    """

    name: str
    state: str
    phys_state: str
    rate: float | None
    link_layer: str
    firmware: str
    counters: Mapping[str, int]
    board: str = ""
    interfaces: tuple[str, ...] = ()

    @property
    def is_up(self) -> bool:
        """Whether it has a link that carries data."""
        return _carries(self.state, self.phys_state)


@lru_cache(maxsize=64)
def _carries(state: str, phys_state: str) -> bool:
    return "ACTIVE" in state.upper() and "LINKUP" in phys_state.upper().replace(" ", "")


_PORT = re.compile(r"(?:^|/)([^/]+)/ports/(\d+)/(.+)$")
_CARD = re.compile(r"(?:^|/)([^/]+)/(fw_ver|board_id|device/net/[^/]+/operstate)$")


def parse_infiniband(files: Mapping[str, str]) -> tuple[FabricPort, ...]:
    """Ports from the paths and contents of the sysfs tree (paths may start anywhere above the device)."""
    ports: dict[tuple[str, str], dict[str, str]] = {}
    cards: dict[str, dict[str, str]] = {}
    for path, text in files.items():
        if match := _PORT.search(path):
            ports.setdefault((match.group(1), match.group(2)), {})[match.group(3)] = text.strip()
        elif match := _CARD.search(path):
            cards.setdefault(match.group(1), {})[match.group(2)] = text.strip()
    return tuple(
        _port(device, number, values, cards.get(device, {})) for (device, number), values in sorted(ports.items())
    )


def _port(device: str, number: str, values: Mapping[str, str], card: Mapping[str, str]) -> FabricPort:
    rate = re.match(r"(\d+(?:\.\d+)?)", values.get("rate", ""))
    counters = {
        path.rsplit("/", 1)[1]: count
        for path, text in values.items()
        if path.startswith(("counters/", "hw_counters/")) and (count := whole(text)) is not None
    }
    return FabricPort(
        f"{device}/{number}",
        values.get("state", ""),
        values.get("phys_state", ""),
        float(rate.group(1)) if rate else None,
        values.get("link_layer", ""),
        card.get("fw_ver", ""),
        counters,
        card.get("board_id", ""),
        tuple(text for path, text in sorted(card.items()) if path.startswith("device/net/")),
    )


@dataclass(frozen=True, slots=True)
class FabricError:
    """One error of the fabric manager's log. time: seconds since the epoch, None when the line has none."""

    text: str
    fatal: bool
    time: float | None = None


_FABRIC_ERRORS = (
    (re.compile(r"detected NVSwitch fatal error (\d+)"), True),
    (re.compile(r"detected NVSwitch non-fatal error (\d+)"), False),
    (re.compile(r"failed to find the GPU handle \d+ in the multicast team"), True),
    (re.compile(r"detected number of NVSwitches don't match with any supported system topology"), True),
)


_FABRIC_TIME = re.compile(r"^\[([A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d)\]")


def parse_fabric_log(text: str, zone: tzinfo = UTC) -> tuple[FabricError, ...]:
    """Returns the error lines of the log. zone: time zone of the machine, because the log has local time."""
    found = []
    for line in text.splitlines():
        for pattern, fatal in _FABRIC_ERRORS:
            if pattern.search(line):
                found.append(FabricError(line.strip()[:300], fatal, _fabric_time(line, zone)))
                break
    return tuple(found)


def _fabric_time(line: str, zone: tzinfo) -> float | None:
    match = _FABRIC_TIME.match(line)
    try:
        return (
            datetime.strptime(match.group(1), "%b %d %Y %H:%M:%S").replace(tzinfo=zone).timestamp() if match else None
        )
    except ValueError:
        return None
