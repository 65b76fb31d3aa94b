"""What a check sees of a machine and of a GPU, with a record of everything it has looked at.

The record is what keeps a missing value from passing: a PASS whose check has read anything but a value is turned
into UNKNOWN or SKIP, whatever the check's author thought of (`GpuView.settle`, `NotObservedError`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pai_install.findings import Verdict
from pai_install.health.devices import Traits, traits_of
from pai_install.health.evidence import CommandResult, Evidence
from pai_install.health.fields import Field
from pai_install.health.limits import Limits
from pai_install.health.model import Judgement, NotObservedError, skipped, unknown
from pai_install.health.parse import kernel_log, links, nvidia
from pai_install.health.parse.host import KubernetesNode
from pai_install.health.reading import ABSENT, Reading, State, parse_reading
from pai_install.health.snapshot import Baseline, Expectation, GpuBaseline, Snapshot
from pai_install.health.xid import Incident, XidMeaning, merge


class GpuView:
    """One GPU, read by one check at a time."""

    __slots__ = ("_readings", "_touched", "baseline", "driver_major", "gpu", "traits")

    def __init__(self, gpu: nvidia.Gpu, driver_major: int, baseline: GpuBaseline | None) -> None:
        self.gpu = gpu
        self.traits: Traits = traits_of(gpu)
        self.driver_major = driver_major
        self.baseline = baseline
        self._readings: dict[str, Reading] = {}
        self._touched: list[tuple[Field, Reading]] = []

    @property
    def bus_id(self) -> str:
        """Normalised bus id."""
        return self.gpu.bus_id

    def begin(self) -> None:
        """Forgets what the check before has read."""
        self._touched.clear()

    def peek(self, field: Field) -> Reading:
        """The reading, without counting as read: to choose what to read, never to judge."""
        found = self._readings.get(field.name)
        if found is None:
            found = self._readings[field.name] = self._resolve(field)
        return found

    def _resolve(self, field: Field) -> Reading:
        texts = self.gpu.texts
        for path in field.paths:
            if path in texts:
                return parse_reading(texts[path])
        for path in field.paths:
            parts = path.split("/")
            for length in range(len(parts) - 1, 0, -1):  # "<remapped_rows>GPU is lost</remapped_rows>"
                reading = parse_reading(texts.get("/".join(parts[:length])))
                if reading.state in (State.ERROR, State.NOT_AVAILABLE):
                    return reading
        return ABSENT

    def reading(self, field: Field) -> Reading:
        """The reading; recorded."""
        found = self.peek(field)
        self._touched.append((field, found))
        return found

    def text(self, field: Field) -> str:
        """The text of a value, '' for anything else."""
        found = self.reading(field)
        return found.text if found.state is State.VALUE else ""

    def number(self, field: Field) -> float | None:
        """The number of a value; a value that is no number is recorded as an error."""
        found = self.peek(field)
        number = found.number
        if found.state is State.VALUE and number is None:
            found = Reading(State.ERROR, found.text)
        self._touched.append((field, found))
        return number

    def word(self, field: Field, *allowed: str) -> str:
        """The value in lower case when it is one of `allowed`, else ''; another word is recorded as an error."""
        found = self.peek(field)
        word = found.text.lower() if found.state is State.VALUE else ""
        if word and word not in allowed:
            found, word = Reading(State.ERROR, found.text), ""
        self._touched.append((field, found))
        return word

    def settle(self, judgement: Judgement) -> Judgement:
        """The judgement, or UNKNOWN or SKIP where it is a PASS that rests on something that is not a value."""
        if judgement.verdict is not Verdict.PASS:
            return judgement
        return self.missing() or judgement

    def missing(self) -> Judgement | None:
        """Why what was read is not enough; None when every reading is a value."""
        gaps = [(field, reading) for field, reading in self._touched if reading.state is not State.VALUE]
        for field, reading in gaps:
            if reading.state is State.ERROR:
                return unknown(f"{field.name} reads {reading.text!r}", reading.text)
        for field, reading in gaps:
            if reading.state is State.ABSENT and self.traits.must_report(field, self.driver_major):
                return unknown(f"{field.name} is missing from the driver's answer")
        for field, reading in gaps:
            if reading.state is State.NOT_AVAILABLE:
                return skipped(f"{field.name} is {reading.text} on this GPU")
            return skipped(f"this GPU or driver does not report {field.name}")
        return None

    @property
    def evidence(self) -> str:
        """The fields that were read."""
        return ", ".join(field.name for field, _ in self._touched)


class MachineView:
    """One machine, read by one check at a time."""

    def __init__(
        self,
        evidence: Evidence,
        *,
        limits: Limits,
        catalogue: Mapping[int, XidMeaning],
        expected: Expectation | None = None,
        baseline: Baseline | None = None,
        history: Sequence[Snapshot] = (),
    ) -> None:
        self._evidence = evidence
        self.limits = limits
        self.catalogue = catalogue
        self.expected = expected or Expectation()
        self.baseline = baseline
        self.history = history
        self._touched: list[str] = []
        self._sources: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The machine's name in the site."""
        return self._evidence.machine

    @property
    def collected_at(self) -> float:
        """When the evidence was collected, seconds since the epoch."""
        return self._evidence.collected_at

    @property
    def boot_id(self) -> str:
        """Changes with every boot."""
        return self._evidence.boot_id

    @property
    def boot_time(self) -> float | None:
        """Seconds since the epoch, None when the uptime was not collected."""
        return self._evidence.collected_at - self._evidence.uptime_s if self._evidence.uptime_s else None

    @property
    def previous(self) -> Snapshot | None:
        """The newest remembered run."""
        return self.history[-1] if self.history else None

    def begin(self) -> None:
        """Forgets what the check before has read."""
        self._touched.clear()
        self._sources.clear()

    @property
    def evidence(self) -> str:
        """The commands and files that were read."""
        return ", ".join(dict.fromkeys(self._touched))

    @property
    def threshold_source(self) -> str:
        """Whose thresholds were compared with."""
        return "; ".join(f"{name}: {source}" for name, source in self._sources.items())

    def limit(self, name: str, product: str = "") -> float:
        """A threshold that has a default."""
        found = self.optional_limit(name, product)
        assert found is not None, name  # noqa: S101 - thresholds.yml lacks a name that a check uses: a bug
        return found

    def optional_limit(self, name: str, product: str = "") -> float | None:
        """A threshold that only some products have."""
        found = self.limits.get(name, sku=self.expected.sku, product=product)
        if found is None:
            return None
        self._sources[name] = found.source
        return found.value

    def result(self, command: str) -> CommandResult | None:
        """What became of a command; None when it is not in the evidence."""
        self._touched.append(command)
        return self._evidence.commands.get(command)

    def output(self, command: str, *, missing: Verdict = Verdict.UNKNOWN, allowed: Iterable[int] = (0,)) -> str:
        """The standard output of a command that ended well.

        Raises NotObservedError: `missing` when there is no such program, UNKNOWN when it failed or was cut short.
        """
        result = self.result(command)
        if result is None:
            raise NotObservedError(missing, f"{command} was not collected")
        if result.missing:
            raise NotObservedError(missing, f"{command}: the program is not installed")
        if result.timed_out or result.not_started:
            raise NotObservedError(Verdict.UNKNOWN, f"{command}: no answer in time")
        if result.rc not in set(allowed):
            detail = (result.stderr or result.stdout).strip()[:160]
            raise NotObservedError(Verdict.UNKNOWN, f"{command} ended with status {result.rc}: {detail}")
        return result.stdout

    def available(self, command: str) -> bool:
        """Whether a program is there and ended well; does not count as read."""
        result = self._evidence.commands.get(command)
        return result is not None and result.rc == 0

    def file(self, path: str, *, missing: Verdict = Verdict.UNKNOWN) -> str:
        """The content of a file. Raises NotObservedError when it was not readable."""
        self._touched.append(path)
        if path not in self._evidence.files:
            raise NotObservedError(missing, f"{path} was not readable")
        return self._evidence.files[path]

    def files(self, prefix: str, group: str) -> dict[str, str]:
        """Files whose path starts with `prefix`; `group` is the reader that must have worked.

        Raises NotObservedError when it had not.
        """
        self._touched.append(group)
        if group in self._evidence.broken or group not in self._evidence.facts:
            raise NotObservedError(Verdict.UNKNOWN, f"{group} could not be read")
        return {path: text for path, text in self._evidence.files.items() if path.startswith(prefix)}

    def fact(self, name: str) -> object:
        """What one of the collector's readers found. Raises NotObservedError when it failed."""
        self._touched.append(name)
        if name not in self._evidence.facts:
            raise NotObservedError(Verdict.UNKNOWN, f"{name} could not be read")
        return self._evidence.facts[name]

    @cached_property
    def _smi(self) -> nvidia.SmiReport | NotObservedError:
        result = self._evidence.commands.get("nvidia_smi_xml")
        if result is None or result.missing:
            return NotObservedError(Verdict.UNKNOWN, "nvidia-smi is not installed")
        if result.timed_out:
            return NotObservedError(Verdict.UNKNOWN, "nvidia-smi gave no answer: the driver hangs")
        for command, parse in (
            ("nvidia_smi_xml", nvidia.parse_xml),
            ("nvidia_smi_text", nvidia.parse_text),
            ("nvidia_smi_table", nvidia.parse_table),
        ):
            answer = self._evidence.commands.get(command)
            try:
                report = parse(answer.stdout) if answer else None
            except nvidia.ParseError:
                continue
            if report:
                return report
        return NotObservedError(Verdict.UNKNOWN, f"nvidia-smi ended with status {result.rc} and no readable answer")

    @property
    def smi(self) -> nvidia.SmiReport:
        """The answer of nvidia-smi. Raises NotObservedError when there is none."""
        self._touched.append("nvidia_smi_xml")
        if isinstance(self._smi, NotObservedError):
            raise NotObservedError(self._smi.verdict, self._smi.reason)
        return self._smi

    @cached_property
    def gpus(self) -> tuple[GpuView, ...]:
        """Every GPU that nvidia-smi named, () when it did not answer."""
        if isinstance(self._smi, NotObservedError):
            return ()
        extra = {}
        if self.available("nvidia_smi_csv"):
            extra = nvidia.parse_csv(self._evidence.commands["nvidia_smi_csv"].stdout)
        major = self._smi.driver_version.split(".")[0]
        accepted = self.baseline.gpus if self.baseline else {}
        return tuple(
            GpuView(
                nvidia.Gpu(gpu.bus_id, {**extra.get(gpu.bus_id, {}), **gpu.texts}, gpu.processes, gpu.mig_devices),
                int(major) if major.isdecimal() else 0,
                accepted.get(gpu.bus_id),
            )
            for gpu in self._smi.gpus
        )

    @cached_property
    def _pci(self) -> tuple[links.PciDevice, ...] | None:
        if not self.available("lspci"):
            return None
        return links.parse_lspci(self._evidence.commands["lspci"].stdout)

    @property
    def pci(self) -> tuple[links.PciDevice, ...]:
        """The devices of lspci. Raises NotObservedError when it did not run."""
        self.output("lspci")
        return self._pci or ()

    @property
    def has_nvidia(self) -> bool:
        """Whether the site says that there are NVIDIA GPUs, or anything on the machine does."""
        return (
            self.expected.nvidia
            or bool(self.gpus)
            or bool(links.nvidia_gpus(self._pci or ()))
            or "/proc/driver/nvidia/version" in self._evidence.files
        )

    @property
    def bus_ids(self) -> frozenset[str]:
        """NVIDIA GPUs on the PCI bus, by lspci or by sysfs. Raises NotObservedError when neither could be read."""
        if self.available("lspci"):
            return frozenset(device.bus_id for device in links.nvidia_gpus(self.pci))
        files = self.files("/sys/bus/pci/devices/", "files_pci")
        found = set()
        for path, text in files.items():
            folder, _, name = path.rpartition("/")
            if name == "class" and text[:6] in ("0x0300", "0x0302") and files.get(f"{folder}/vendor") == "0x10de":
                found.add(nvidia.normalise_bus_id(folder.rpartition("/")[2]))
        return frozenset(found)

    @property
    def driver_visible(self) -> bool:
        """Whether the kernel shows an NVIDIA driver; where it does not, nvidia-smi is a stand-in or talks to a host."""
        return any(path.startswith(("/proc/driver/nvidia", "/dev/nvidia")) for path in self._evidence.files)

    @cached_property
    def _log(self) -> str | None:
        journal = self._evidence.commands.get("kernel_log")
        ring = self._evidence.commands.get("dmesg")
        if journal and journal.rc == 0 and (journal.stdout or not (ring and ring.rc == 0)):
            return journal.stdout
        return ring.stdout if ring and ring.rc == 0 else None

    @property
    def log(self) -> str:
        """The kernel's log of this boot. Raises NotObservedError when neither journal nor ring buffer was readable."""
        self._touched.append("kernel_log")
        if self._log is None:
            raise NotObservedError(Verdict.UNKNOWN, "neither the journal nor dmesg could be read")
        return self._log

    @cached_property
    def _events(self) -> tuple[kernel_log.LogEvent, ...]:
        return kernel_log.parse_events(self._log or "", self.boot_time)

    def events(self, *kinds: kernel_log.LogKind) -> tuple[kernel_log.LogEvent, ...]:
        """Log events of these kinds. Raises NotObservedError as `log` does."""
        assert self.log is not None  # noqa: S101 - reading records it and raises
        return tuple(event for event in self._events if event.kind in kinds)

    @cached_property
    def _incidents(self) -> tuple[Incident, ...]:
        xids = kernel_log.parse_xids(self._log or "", self.boot_time)
        return merge(xids, self.limits.number("xid-merge-seconds"))

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Xid incidents of this boot. Raises NotObservedError as `log` does."""
        assert self.log is not None  # noqa: S101 - reading records it and raises
        return self._incidents

    def delta(self, group: str, counter: str, value: float) -> tuple[float, float] | None:
        """(growth, seconds) of a counter since the last run in this boot; None without one or after a reset."""
        previous = self.previous
        if previous is None or previous.boot_id != self.boot_id:
            return None
        before = previous.counters.get(group, {}).get(counter)
        seconds = self.collected_at - previous.time
        if before is None or value < before or seconds <= 0:
            return None
        return value - before, seconds


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What is kept of a machine after its own checks, to compare it with others.

    traits: "driver" -> "580.105.08" and so on; a trait that was not observed is left out. gpus, mig_devices: None
    when nvidia-smi did not answer. clock_offset: seconds, None when not known.
    """

    name: str
    expected: Expectation
    nvidia: bool
    traits: Mapping[str, str]
    gpus: int | None
    mig_devices: int
    clock_offset: float | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """All machines of a run. nodes: what Kubernetes says, None when no control plane was asked."""

    machines: tuple[MachineFacts, ...]
    nodes: Mapping[str, KubernetesNode] | None
    limits: Limits
