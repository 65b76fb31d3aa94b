"""A check's view of a machine, which records the commands and files that the check reads.

Missing evidence raises NotObservedError, so that a check cannot interpret it as healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from pai_install.checks.evidence import NotObservedError, Record
from pai_install.checks.limits import Limit, Limits
from pai_install.checks.verdict import Verdict
from pai_install.health.evidence import fields
from pai_install.health.evidence.document import CommandResult, HealthEvidence
from pai_install.health.evidence.parse import kernel_log, links, nvidia
from pai_install.health.evidence.parse.numbers import whole
from pai_install.health.judge.expectation import Expectation
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.meaning import XidMeaning
from pai_install.health.judge.xid import Incident, merge
from pai_install.health.memory.snapshot import Baseline, GpuBaseline, Snapshot, card_of, with_current_uuids

# of two GPUs, either could be the odd one
FEWEST_PEERS = 3
# nvidia-smi's own: GPU not found, power cables, interrupts, infoROM, off the bus
_STATUS_OF_GPUS = (6, 8, 10, 14, 15)


def _own(baseline: GpuBaseline | None, gpu: nvidia.Gpu) -> GpuBaseline | None:
    """The slot's baseline, unless it is that of another card."""
    if baseline is None:
        return None
    uuid = next((gpu.texts[path] for path in fields.UUID.paths if path in gpu.texts), "")
    then, now = card_of(baseline.uuid), card_of(uuid)
    return None if then and now and then != now else baseline


class MachineView:
    """One machine, read by one check at a time."""

    def __init__(
        self,
        evidence: HealthEvidence,
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
        self._history = history
        self.record = Record()
        self._limits: dict[tuple[str, str], Limit | None] = {}
        self._below: dict[str, dict[str, str]] = {}

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

    @cached_property
    def history(self) -> tuple[Snapshot, ...]:
        """Returns the stored runs, oldest first, with this run's names for their cards."""
        texts = [gpu.peek(fields.UUID).text for gpu in self.gpus]
        words = {card: text for text in texts if (card := card_of(text))}
        return tuple(with_current_uuids(snapshot, words) for snapshot in self._history)

    @property
    def known_cards(self) -> dict[str, str]:
        """Bus id -> the card that last said who it is there in an earlier run."""
        return {slot: card for snapshot in self.history for slot, card in snapshot.gpus.items()}

    @property
    def previous(self) -> Snapshot | None:
        """The newest remembered run."""
        return self.history[-1] if self.history else None

    def limit(self, name: str, product: str = "") -> float:
        """A threshold that has a default."""
        found = self.optional_limit(name, product)
        assert found is not None, name  # noqa: S101 - thresholds.yml lacks a name that a check uses: a bug
        return found

    def optional_limit(self, name: str, product: str = "") -> float | None:
        """A threshold that only some products have."""
        key = (name, product)
        if key not in self._limits:
            self._limits[key] = self.limits.get(name, sku=self.expected.sku, product=product)
        found = self._limits[key]
        if found is None:
            return None
        self.record.limit(name, found.source)
        return found.value

    def result(self, command: str) -> CommandResult | None:
        """Returns the result of a command, or None if it is not in the evidence."""
        self.record.read(command)
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
        if result.refused:
            raise NotObservedError(Verdict.UNKNOWN, f"{command}: it cannot be started: {result.refused}")
        if result.timed_out or result.not_started:
            raise NotObservedError(Verdict.UNKNOWN, f"{command}: no answer in time")
        if result.rc not in set(allowed):
            detail = (result.stderr or result.stdout).strip()[:160]
            raise NotObservedError(Verdict.UNKNOWN, f"{command} ended with status {result.rc}: {detail}")
        return result.stdout

    @property
    def exhausted(self) -> str:
        """Returns the kernel's message if the machine could start no further process, or ''."""
        return self._evidence.exhausted

    def available(self, command: str) -> bool:
        """Returns whether a program exists and succeeded, without recording it."""
        result = self._evidence.commands.get(command)
        return result is not None and result.rc == 0

    def file(self, path: str, *, missing: Verdict = Verdict.UNKNOWN) -> str:
        """The content of a file. Raises NotObservedError when it was not readable."""
        self.record.read(path)
        if path not in self._evidence.files:
            raise NotObservedError(missing, f"{path} was not readable")
        return self._evidence.files[path]

    def files(self, prefix: str, group: str) -> Mapping[str, str]:
        """Returns the files with this path prefix. `group`: the reader that collected them.

        Raises NotObservedError if the reader failed.
        """
        self.record.read(group)
        self._require_reader(group)
        return self._files_below(prefix)

    def _files_below(self, prefix: str) -> Mapping[str, str]:
        found = self._below.get(prefix)
        if found is None:
            files = self._evidence.files
            found = self._below[prefix] = {path: files[path] for path in files if path.startswith(prefix)}
        return found

    def file_of(self, path: str, group: str) -> str | None:
        """Returns one file of the reader `group`, or None if the machine lacks it.

        Raises NotObservedError if the reader failed.
        """
        self.record.read(group)
        self._require_reader(group)
        return self._evidence.files.get(path)

    def _require_reader(self, group: str) -> None:
        if group in self._evidence.broken or group not in self._evidence.facts:
            raise NotObservedError(Verdict.UNKNOWN, f"{group} could not be read")

    @cached_property
    def _ports(self) -> tuple[links.FabricPort, ...]:
        return links.parse_infiniband(self._files_below("/sys/class/infiniband/"))

    @property
    def ports(self) -> tuple[links.FabricPort, ...]:
        """Every InfiniBand or RoCE port. Raises NotObservedError when they could not be read."""
        self.record.read("files_infiniband")
        self._require_reader("files_infiniband")
        return self._ports

    def unused(self, interface: str) -> bool:
        """Whether a network interface has no link now and is part of no bond or bridge. Unknown counts as used."""
        folder = f"/sys/class/net/{interface}"
        files = self._evidence.files
        return files.get(f"{folder}/operstate") == "down" and f"{folder}/master/ifindex" not in files

    def fact(self, name: str) -> object:
        """Returns the result of one of the collector's readers. Raises NotObservedError if it failed."""
        self.record.read(name)
        if name not in self._evidence.facts:
            raise NotObservedError(Verdict.UNKNOWN, f"{name} could not be read")
        return self._evidence.facts[name]

    @cached_property
    def _smi(self) -> nvidia.SmiReport | NotObservedError:
        result = self._evidence.commands.get("nvidia_smi_xml")
        if result is None or result.missing:
            return NotObservedError(Verdict.UNKNOWN, "nvidia-smi is not installed")
        if result.refused:
            return NotObservedError(Verdict.UNKNOWN, f"nvidia-smi cannot be started: {result.refused}")
        if result.timed_out:
            return NotObservedError(Verdict.UNKNOWN, "nvidia-smi did not answer: the driver hangs")
        # The XML has the most fields. Where it cannot be parsed, the other forms still name the GPUs.
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
        self.record.read("nvidia_smi_xml")
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
                # The XML wins. The CSV only adds what is missing there.
                replace(gpu, texts={**extra[gpu.bus_id], **gpu.texts}) if gpu.bus_id in extra else gpu,
                whole(major) or 0,
                _own(accepted.get(gpu.bus_id), gpu),
            )
            for gpu in self._smi.gpus
        )

    def peers(self, gpu: GpuView) -> list[GpuView]:
        """The other GPUs of the same model in this machine."""
        model = gpu.peek(fields.PRODUCT).text
        return [other for other in self.gpus if other is not gpu and other.peek(fields.PRODUCT).text == model]

    @cached_property
    def _pci(self) -> tuple[links.LspciDevice, ...] | None:
        if not self.available("lspci"):
            return None
        return links.parse_lspci(self._evidence.commands["lspci"].stdout)

    @cached_property
    def _sysfs(self) -> tuple[links.LspciDevice, ...]:
        return links.parse_sysfs(self._files_below("/sys/bus/pci/devices/"))

    @property
    def pci(self) -> tuple[links.LspciDevice, ...]:
        """The devices of lspci. Raises NotObservedError when it did not run."""
        self.output("lspci")
        return self._pci or ()

    @property
    def has_nvidia(self) -> bool:
        """Whether the site says that there are NVIDIA GPUs, or anything on the machine does."""
        return (
            self.expected.nvidia
            or bool(self.gpus)
            or bool(links.nvidia_gpus(self._pci or self._sysfs))
            or "/proc/driver/nvidia/version" in self._evidence.files
            or self._smi_speaks_of_gpus
            or self._log_speaks_of_gpus
        )

    @property
    def _log_speaks_of_gpus(self) -> bool:
        """Returns whether the kernel log mentions a GPU, including a GPU that the driver failed to attach."""
        kinds = kernel_log.LogKind
        started = (event.text for event in self._events if event.kind is kinds.GPU_START)
        return bool(self._incidents) or any("No NVIDIA" not in text for text in started)

    @property
    def _smi_speaks_of_gpus(self) -> bool:
        """Whether nvidia-smi hangs, or ended with a status that only a machine with a GPU gives."""
        result = self._evidence.commands.get("nvidia_smi_xml")
        if result is None or "No devices were found" in result.text:
            return False
        return result.timed_out or result.rc in _STATUS_OF_GPUS

    @property
    def nvidia_pci(self) -> tuple[links.LspciDevice, ...]:
        """NVIDIA devices on the PCI bus, by lspci or by sysfs. Raises NotObservedError if neither could be read."""
        if self.available("lspci"):
            return tuple(device for device in self.pci if device.vendor == "10de")
        self.record.read("files_pci")
        self._require_reader("files_pci")
        return self._sysfs

    @property
    def bus_ids(self) -> frozenset[str]:
        """NVIDIA GPUs on the PCI bus. Raises NotObservedError as `nvidia_pci` does."""
        return frozenset(device.bus_id for device in links.nvidia_gpus(self.nvidia_pci))

    @property
    def driver_visible(self) -> bool:
        """Returns whether the kernel shows an NVIDIA driver. If not, nvidia-smi is a stand-in or talks to a host."""
        return any(path.startswith(("/proc/driver/nvidia", "/dev/nvidia")) for path in self._evidence.files)

    @cached_property
    def _log(self) -> CommandResult | None:
        """Returns the journal, or the ring buffer if the journal has no kernel lines, or None if both are empty."""
        found = [self._evidence.commands.get(name) for name in ("kernel_log", "dmesg")]
        logs = [log for log in found if log and log.rc == 0 and (log.lines or log.stdout)]
        return next((log for log in logs if log.stdout), logs[0] if logs else None)

    @property
    def log(self) -> str:
        """The kernel's log of this boot.

        Raises NotObservedError when neither journal nor ring buffer was readable, or both are empty: every kernel
        that was just booted has said something.
        """
        self.record.read("kernel_log")
        if self._log is None:
            raise NotObservedError(Verdict.UNKNOWN, "neither the journal nor dmesg holds a line of the kernel")
        if self._log.truncated:
            self.record.gap("kernel_log", "the kernel log was cut; what is left of it shows nothing")
        return self._log.stdout

    @cached_property
    def _events(self) -> tuple[kernel_log.LogEvent, ...]:
        return kernel_log.parse_events(self._log.stdout if self._log else "", self.boot_time)

    def events(self, *kinds: kernel_log.LogKind) -> tuple[kernel_log.LogEvent, ...]:
        """Log events of these kinds. Raises NotObservedError as `log` does."""
        assert self.log is not None  # noqa: S101 - reading records it and raises
        return tuple(event for event in self._events if event.kind in kinds)

    @cached_property
    def _incidents(self) -> tuple[Incident, ...]:
        xids = kernel_log.parse_xids(self._log.stdout if self._log else "", self.boot_time)
        return merge(xids, self.limits.number("xid-merge-seconds"), self.catalogue)

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Xid incidents of this boot. Raises NotObservedError as `log` does."""
        assert self.log is not None  # noqa: S101 - reading records it and raises
        return self._incidents

    def recent(self, time: float | None) -> bool:
        """Returns whether a log event is recent. Events without a time stamp are."""
        return time is None or self.collected_at - time <= self.limit("xid-window-hours") * 3600

    @property
    def young(self) -> bool:
        """Whether the machine came up a moment ago, so that services may still be on their way."""
        return 0 < self._evidence.uptime_s < self.limit("boot-seconds")

    def vanished(self, group: str, present: Iterable[str]) -> set[str]:
        """Counters of the last run in this boot that this one does not show: they cannot be said not to grow."""
        previous = self.previous
        if previous is None or previous.boot_id != self.boot_id:
            return set()
        return set(previous.counters.get(group, {})) - set(present)

    def delta(self, group: str, counter: str, value: float) -> tuple[float, float] | None:
        """Returns (growth, seconds) of a counter since the last run in this boot, or None without one or
        after a reset.
        """
        previous = self.previous
        # A boot sets all counters back, so only runs of the same boot can be compared.
        if previous is None or previous.boot_id != self.boot_id:
            return None
        before = previous.counters.get(group, {}).get(counter)
        seconds = self.collected_at - previous.time
        if before is None or value < before or seconds <= 0:
            return None
        return value - before, seconds
