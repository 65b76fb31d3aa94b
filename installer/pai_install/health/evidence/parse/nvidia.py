"""The four output formats of `nvidia-smi` (XML, -q text, CSV, table), parsed to a mapping path -> text for each GPU.

The XML is the main source, with paths below <gpu>. A container with a text instead of children ("GPU is lost") is a
path itself. The other formats have paths of their own, which `fields.py` lists beside those of the XML.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from io import StringIO
from xml.etree import ElementTree as ET

MAX_BYTES = 16 * 1024 * 1024
_BUS_ID = re.compile(r"^(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-9a-f]))?$")
# Long, never judged, and half of the document: cut before parsing.
_BULK = ("<supported_clocks>", "</supported_clocks>")
_GPU_LINE = re.compile(r"^GPU ((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$")
_TABLE_BUS = re.compile(
    r"\|\s*(?:\d+|ERR!)\s+(.+?)\s{2,}.*\|\s*([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])"
)


class ParseError(Exception):
    """The text is not in the form it was taken for."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """One process on a GPU. memory: MiB, or None."""

    pid: str
    kind: str
    name: str
    used_mib: float | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as printed. bus_id is normalised to dddd:bb:dd.f in lower case."""

    bus_id: str
    texts: Mapping[str, str]
    processes: tuple[GpuProcess, ...] = ()
    mig_devices: int = 0

    @property
    def process_gap(self) -> str:
        """Why it is not known which processes use the GPU, '' when it is: an empty list is an answer."""
        text = self.texts.get("processes")
        if self.processes or (text is not None and text.lower() in ("", "none")):
            return ""
        if text is not None:
            return f"processes reads {text!r}"
        listed = any(path.startswith("processes/") for path in self.texts)
        return "" if listed else "processes is missing from the driver's answer"


@dataclass(frozen=True, slots=True)
class SmiReport:
    """One output of nvidia-smi. attached: GPU count of its header, or ''. stray: lines around it."""

    gpus: tuple[Gpu, ...]
    driver_version: str = ""
    attached: str = ""
    stray: tuple[str, ...] = ()
    form: str = "xml"
    header: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=4096)  # a thousand machines of one kind have the same slots
def normalise_bus_id(text: str) -> str:
    """Normalises `00000000:0A:00.0`, `PCI:0000:0a:00`, and `0A:00.0` to `0000:0a:00.0`, and other text to
    lower case.
    """
    cleaned = text.strip().lower().removeprefix("pci:")
    match = _BUS_ID.match(cleaned)
    if not match:
        return cleaned
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}.{function or '0'}"


def parse_xml(text: str) -> SmiReport:
    """Parses `nvidia-smi -q -x`. Text around the document (infoROM warnings) goes to `stray`.

    Raises ParseError if the document is incomplete.
    """
    if len(text) > MAX_BYTES:
        raise ParseError(f"{len(text)} characters, more than {MAX_BYTES}")
    start, end = text.find("<nvidia_smi_log"), text.rfind("</nvidia_smi_log>")
    if start < 0 or end < start:
        raise ParseError("no complete <nvidia_smi_log>")
    end += len("</nvidia_smi_log>")
    try:
        root = ET.fromstring(_without_bulk(text[start:end]))  # noqa: S314 - no DOCTYPE: nothing to expand
    except ET.ParseError as error:
        raise ParseError(str(error)) from error
    header = {child.tag: (child.text or "").strip() for child in root if child.tag != "gpu"}
    return SmiReport(
        gpus=tuple(_xml_gpu(element, index) for index, element in enumerate(root.iterfind("gpu"))),
        driver_version=driver_version(header.get("driver_version", ""), header.get("kmd_version", "")),
        attached=header.get("attached_gpus", ""),
        stray=_stray(text[:start] + "\n" + text[end:]),
        header=header,
    )


def _without_bulk(text: str) -> str:
    first, *rest = text.split(_BULK[0])
    return first + "".join(part.partition(_BULK[1])[2] for part in rest)


def driver_version(driver: str, kmd: str) -> str:
    """Returns the version number under the old or new name of the field, or ''."""
    for candidate in (kmd, driver):
        match = re.match(r"\d+(?:\.\d+)+", candidate)
        if match:
            return match.group()
    return ""


def _stray(text: str) -> tuple[str, ...]:
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith(("<?xml", "<!DOCTYPE")))


def _xml_gpu(element: ET.Element, index: int) -> Gpu:
    texts: dict[str, str] = {}
    _flatten(element, "", texts)
    bus_id = element.get("id") or texts.get("pci/pci_bus_id") or f"gpu {index}"
    processes = tuple(
        GpuProcess(
            pid=(info.findtext("pid") or "").strip(),
            kind=(info.findtext("type") or "").strip(),
            name=(info.findtext("process_name") or "").strip(),
            used_mib=_mib(info.findtext("used_memory")),
        )
        for info in element.iterfind("processes/process_info")
    )
    return Gpu(normalise_bus_id(bus_id), texts, processes, len(element.findall("mig_devices/mig_device")))


def _flatten(element: ET.Element, prefix: str, texts: dict[str, str]) -> None:
    for child in element:
        path = prefix + child.tag
        if len(child):
            _flatten(child, path + "/", texts)
        elif path not in texts:
            texts[path] = (child.text or "").strip()


def _mib(text: str | None) -> float | None:
    match = re.match(r"\s*(\d+(?:\.\d+)?)\s*MiB", text or "")
    return float(match.group(1)) if match else None


def parse_text(text: str) -> SmiReport:
    """Reads `nvidia-smi -q` (whole or with -d). Labels become paths: "ECC Mode / Current" -> ecc_mode/current.

    Raises ParseError when no GPU is in it.
    """
    header: dict[str, str] = {}
    gpus: list[tuple[str, list[str]]] = []
    stray: list[str] = []
    for line in text.splitlines():
        if match := _GPU_LINE.match(line):
            gpus.append((match.group(1), []))
        elif gpus and line.startswith(" "):
            gpus[-1][1].append(line)
        elif " : " in line and not gpus:
            label, _, value = line.partition(" : ")
            header[_label(label)] = value.strip()
        elif line.strip() and "NVSMI LOG" not in line:
            stray.append(line.strip())
    if not gpus:
        raise ParseError("no GPU in the text")
    return SmiReport(
        gpus=tuple(_text_gpu(bus_id, lines) for bus_id, lines in gpus),
        driver_version=driver_version(header.get("driver_version", ""), header.get("kmd_version", "")),
        attached=header.get("attached_gpus", ""),
        stray=tuple(stray),
        form="text",
        header=header,
    )


def _label(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.strip().lower()).strip("_")


def _text_gpu(bus_id: str, lines: list[str]) -> Gpu:
    texts: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    processes: list[dict[str, str]] = []
    for line in lines:
        if not line.strip():
            continue
        # In this form, indentation alone says what a label belongs to.
        indent = len(line) - len(line.lstrip())
        label, separator, value = line.partition(" : ")
        while stack and stack[-1][0] >= indent:
            stack.pop()
        stack.append((indent, _label(label)))
        path = "/".join(name for _, name in stack)
        if not separator:
            continue
        texts.setdefault(path, value.strip())
        if path.endswith("process_id"):
            processes.append({"pid": value.strip()})
        elif processes and "process_id/" in path:
            processes[-1][stack[-1][1]] = value.strip()
    found = tuple(
        GpuProcess(row["pid"], row.get("type", ""), row.get("name", ""), _mib(row.get("used_gpu_memory")))
        for row in processes
    )
    return Gpu(normalise_bus_id(bus_id), texts, found, sum(line.strip() == "MIG Device" for line in lines))


def parse_csv(text: str) -> dict[str, dict[str, str]]:
    """Returns bus id -> field -> text of `nvidia-smi --query-gpu=... --format=csv`, or {} for other text."""
    rows = list(csv.reader(StringIO(text), skipinitialspace=True))
    start = next((number for number, row in enumerate(rows) if "pci.bus_id" in row), None)
    if start is None:
        return {}
    names = [name.split(" [")[0].strip() for name in rows[start]]
    found = {}
    for row in rows[start + 1 :]:
        values = dict(zip(names, (cell.strip() for cell in row), strict=False))
        if len(row) == len(names):
            found[normalise_bus_id(values["pci.bus_id"])] = {f"csv/{name}": value for name, value in values.items()}
    return found


def parse_table(text: str) -> SmiReport:
    """Reads the plain `nvidia-smi` table: little, but it shows ERR! cells and infoROM warnings.

    Raises ParseError when no GPU row is in it.
    """
    lines = text.splitlines()
    gpus = []
    for number, line in enumerate(lines):
        if match := _TABLE_BUS.search(line):
            # Each GPU has two lines in the table, and the bus id is in the first.
            second = lines[number + 1] if number + 1 < len(lines) else ""
            # The name shares its column with the persistence mode.
            name = re.sub(r"\s+(On|Off|N/A|ERR!)\s*$", "", match.group(1)).strip()
            texts = {"product_name": name, "table/first": line.strip(), "table/second": second.strip()}
            gpus.append(Gpu(normalise_bus_id(match.group(2)), texts))
    if not gpus:
        raise ParseError("no GPU row in the table")
    version = re.search(r"Driver Version:\s*(\d+(?:\.\d+)+)", text)
    stray = tuple(line.strip() for line in lines if line.strip() and line[:1] not in "+|" and "infoROM" in line)
    return SmiReport(tuple(gpus), version.group(1) if version else "", "", stray, "table")
