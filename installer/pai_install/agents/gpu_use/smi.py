"""Values of each GPU, from nvidia-smi."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_FORMAT = "--format=csv,noheader,nounits"
_BASE = ("index", "uuid", "utilization.gpu")
# what metrics have beside it
FIELDS = (
    "pci.bus_id",
    "memory.used",
    "memory.free",
    "memory.total",
    "temperature.gpu",
    "temperature.memory",
    "power.draw",
    "clocks.current.sm",
    "clocks.current.memory",
    "pstate",
    "clocks_throttle_reasons.active",
    "ecc.errors.corrected.volatile.total",
    "ecc.errors.uncorrected.volatile.total",
    "pcie.link.gen.current",
    "pcie.link.width.current",
    "pcie.link.width.max",
)
QUERY = (f"--query-gpu={','.join(_BASE)}", _FORMAT)
FULL_QUERY = (f"--query-gpu={','.join((*_BASE, *FIELDS))}", _FORMAT)
REMAP_FIELDS = ("correctable", "uncorrectable", "pending", "failure")
REMAP_QUERY = (
    f"--query-remapped-rows=gpu_uuid,{','.join(f'remapped_rows.{name}' for name in REMAP_FIELDS)}",
    _FORMAT,
)
# a driver that hangs holds its callers; it is process again only when the last one has ended
_TIMEOUT_S = 10
_NUMBER = re.compile(r"P?(\d{1,15}(?:\.\d{1,6})?)")
_BITS = re.compile(r"0x[0-9a-fA-F]{1,16}")


@dataclass(frozen=True)
class Gpu:
    """busy: percent, or None without a value from the driver, as for a GPU that is split into slices (MIG).

    values: field -> number, without those that the driver does not give. bus: PCI address in the words of the kernel.
    """

    index: str
    busy: float | None
    values: Mapping[str, float] = field(default_factory=dict)
    bus: str = ""


def parse(text: str) -> dict[str, Gpu]:
    """UUID -> GPU. Other lines are left out."""
    found: dict[str, Gpu] = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) < len(_BASE) or not words[0].isdigit() or not words[1].startswith("GPU-"):
            continue
        more = dict(zip(FIELDS, words[len(_BASE) :]))
        bus = more.pop("pci.bus_id", "")
        # nvidia-smi writes eight digits of the PCI domain, and the kernel log writes four.
        found[words[1]] = Gpu(words[0], _percent(words[2]), numbers(more), bus.lower()[-12:])
    return found


def parse_remapped(text: str) -> dict[str, dict[str, float]]:
    """UUID -> what its rows are -> number. Other lines are left out."""
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        if words[0].startswith("GPU-"):
            answers = {name: {"Yes": "1", "No": "0"}.get(word, word) for name, word in zip(REMAP_FIELDS, words[1:])}
            found[words[0]] = numbers(answers)
    return found


def numbers(words: Mapping[str, str]) -> dict[str, float]:
    """Returns the words that are numbers, performance states, or bits."""
    found: dict[str, float] = {}
    for name, word in words.items():
        number = _NUMBER.fullmatch(word)
        if number is not None:
            found[name] = float(number.group(1))
        elif _BITS.fullmatch(word):
            found[name] = float(int(word, 16))
    return found


def _percent(word: str) -> float | None:
    return float(word) if word.isdigit() and int(word) <= 100 else None


class Smi:
    """Runs nvidia-smi, at most once at a time.

    full: with the values of metrics, unless the driver does not know them. hangs: a process that has not ended. While
    the driver hangs, it often cannot be killed, and waiting would hang, too.
    """

    def __init__(
        self, program: Sequence[str] = ("nvidia-smi",), timeout_s: float = _TIMEOUT_S, *, full: bool = False
    ) -> None:
        self._program = tuple(program)
        self._timeout_s = timeout_s
        self._full = full
        self._silent_since: float | None = None
        self.hangs: subprocess.Popen[str] | None = None

    @property
    def hanging_s(self) -> float:
        """Seconds since the first request without an end, whether or not it could be killed, else 0."""
        return 0.0 if self._silent_since is None else time.monotonic() - self._silent_since

    def query(self) -> Mapping[str, Gpu]:
        """Returns the GPU of each UUID, none if nvidia-smi fails."""
        text = self._query(FULL_QUERY if self._full else QUERY)
        if text is None and self._full and self.hangs is None:
            # An old driver rejects the whole query for one unknown field.
            text = self._query(QUERY)
            self._full = text is None
        return {} if text is None else parse(text)

    def remapped(self) -> Mapping[str, Mapping[str, float]]:
        """Returns the remapped rows of each UUID, none if the driver does not know them."""
        text = self._query(REMAP_QUERY)
        return {} if text is None else parse_remapped(text)

    def _query(self, words: Sequence[str]) -> str | None:
        # One process per sample would pile up behind a driver that hangs.
        if self.hangs is not None and self.hangs.poll() is None:
            return None
        self.hangs, began = None, time.monotonic()
        try:
            process = subprocess.Popen(
                (*self._program, *words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError:
            return None
        try:
            text, _ = process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            self.hangs = process
            self._silent_since = began if self._silent_since is None else self._silent_since
            return None
        self._silent_since = None
        return text if process.returncode == 0 else None
