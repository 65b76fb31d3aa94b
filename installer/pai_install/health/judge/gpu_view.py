"""A check's view of a GPU, which records every value that the check reads.

The record enforces the rule of evidence (checks/evidence.py): PASS becomes UNKNOWN or SKIP if the check has read
anything but a value.
"""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath

from pai_install.checks.evidence import Record
from pai_install.checks.verdict import Verdict
from pai_install.health.evidence.devices import Traits, traits_of
from pai_install.health.evidence.fields import DRAIN_AND_RESET, IDLE, RECOVERY, RESET_REQUIRED, UTILISATION, Field
from pai_install.health.evidence.parse import nvidia
from pai_install.health.evidence.reading import ABSENT, Reading, State, is_nvml_error, parse_reading
from pai_install.health.memory.snapshot import GpuBaseline

# Processes and CSV repeat what stands elsewhere; power_smoothing needs more than root.
_AT_WORK = 50  # percent of utilization
# Python 3.11 runs code for each use of State.VALUE
_VALUE, _ERROR = State.VALUE, State.ERROR
_NOT_OWN = ("processes", "accounted_processes", "csv/", "power_smoothing", "table/")


@cache  # of constants
def _parents(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the paths above, the nearest first: "<remapped_rows>GPU is lost</remapped_rows>"."""
    return tuple(str(parent) for path in paths for parent in list(PurePosixPath(path).parents)[:-1])


class GpuView:
    """One GPU, read by one check at a time."""

    __slots__ = ("_errors", "_readings", "baseline", "driver_major", "gpu", "record", "traits")

    def __init__(self, gpu: nvidia.Gpu, driver_major: int, baseline: GpuBaseline | None) -> None:
        self.gpu = gpu
        self.traits: Traits = traits_of(gpu)
        self.driver_major = driver_major
        self.baseline = baseline
        self._readings: dict[str, Reading] = {}
        self.record = Record()
        self._errors: dict[str, str] | None = None

    @property
    def bus_id(self) -> str:
        """Normalised bus id."""
        return self.gpu.bus_id

    @property
    def errors(self) -> dict[str, str]:
        """Path -> text of everything that is an error word, judged or not."""
        if self._errors is None:
            self._errors = {
                path: text
                for path, text in self.gpu.texts.items()
                if parse_reading(text).state is _ERROR
                and not path.startswith(_NOT_OWN)
                and not (path.startswith("fabric/") and is_nvml_error(text))  # gpu-fabric judges that
            }
            if "ERR!" in self.gpu.texts.get("table/first", "") + self.gpu.texts.get("table/second", ""):
                self._errors["table"] = "ERR!"
        return self._errors

    @property
    def recovery_action(self) -> str:
        """Returns the recovery action that the GPU requests, in lower case ("gpu reset", "drain p2p"), or ''."""
        if self.peek(RESET_REQUIRED).text.lower() == "yes":
            return "gpu reset"
        if self.peek(DRAIN_AND_RESET).text.lower() == "yes":
            return "drain and reset"
        found = self.peek(RECOVERY)
        return found.text.lower() if found.state is _VALUE and found.text.lower() != "none" else ""

    @property
    def needs_reset(self) -> bool:
        """Returns whether this GPU requests a reset. Then unreadable values need no reboot."""
        required = any("requires reset" in text.lower() for text in self.errors.values())
        return required or self.recovery_action in ("gpu reset", "reset", "bus reset", "drain and reset")

    @property
    def works(self) -> bool:
        """Returns whether the GPU computes most of the time, and does not call itself idle."""
        return (self.peek(UTILISATION).number or 0) >= _AT_WORK and self.peek(IDLE).text.lower() != "active"

    def peek(self, field: Field) -> Reading:
        """Returns the reading without recording it. Use it to choose fields, never for a verdict."""
        found = self._readings.get(field.name)
        if found is None:
            found = self._readings[field.name] = self._resolve(field)
        return found

    def _resolve(self, field: Field) -> Reading:
        texts = self.gpu.texts
        for path in field.paths:
            if path in texts:
                return parse_reading(texts[path])
        for path in _parents(field.paths):
            if path in texts:
                reading = parse_reading(texts[path])
                if reading.state in (_ERROR, State.NOT_AVAILABLE):
                    return reading
        return ABSENT

    def _record(self, field: Field, reading: Reading) -> None:
        if reading.state is _VALUE:
            self.record.read(field.name)
        else:
            self._record_gap(field, reading)

    def _record_gap(self, field: Field, reading: Reading) -> None:
        """Notes a reading that is no value: UNKNOWN where it is an error or must be there, else SKIP."""
        name = field.name
        if reading.state is _ERROR:
            self.record.gap(name, f"{name} reads {reading.text!r}", value=reading.text)
        elif reading.state is State.NOT_AVAILABLE:
            self.record.gap(name, f"{name} is {reading.text} on this GPU", verdict=Verdict.SKIP)
        elif self.traits.must_report(field, self.driver_major):
            self.record.gap(name, f"{name} is missing from the driver's answer")
        else:
            self.record.gap(name, f"this GPU or driver does not report {name}", verdict=Verdict.SKIP)

    def reading(self, field: Field) -> Reading:
        """The reading; recorded."""
        found = self.peek(field)
        self._record(field, found)
        return found

    def text(self, field: Field) -> str:
        """The text of a value, '' for anything else."""
        found = self.reading(field)
        return found.text if found.state is _VALUE else ""

    def number(self, field: Field) -> float | None:
        """Returns the number of a value. Records an error if it is no number, or beyond the limits of the field."""
        found = self.peek(field)
        if found.state is _VALUE and (found.number is None or not field.least <= found.number <= field.most):
            found = Reading(_ERROR, found.text)
        self._record(field, found)
        return found.number

    def word(self, field: Field, *allowed: str) -> str:
        """Returns the value in lower case if it is one of `allowed`, else '' and records an error."""
        found = self.peek(field)
        word = found.text.lower() if found.state is _VALUE else ""
        if word and word not in allowed:
            found, word = Reading(_ERROR, found.text), ""
        self._record(field, found)
        return word
