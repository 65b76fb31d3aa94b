"""UUID, index, and utilization of each GPU, from nvidia-smi."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

QUERY = ("--query-gpu=index,uuid,utilization.gpu", "--format=csv,noheader,nounits")
# a driver that hangs holds its callers; it is process again only when the last one has ended
_TIMEOUT_S = 10


@dataclass(frozen=True)
class Gpu:
    """busy: percent, or None without a value from the driver, as for a GPU that is split into slices (MIG)."""

    index: str
    busy: float | None


def parse(text: str) -> dict[str, Gpu]:
    """UUID -> GPU. Other lines are left out."""
    found: dict[str, Gpu] = {}
    for line in text.splitlines():
        index, _, rest = line.partition(",")
        uuid, _, busy = rest.partition(",")
        if index.strip().isdigit() and uuid.strip().startswith("GPU-"):
            found[uuid.strip()] = Gpu(index.strip(), _percent(busy.strip()))
    return found


def _percent(word: str) -> float | None:
    return float(word) if word.isdigit() and int(word) <= 100 else None


class Smi:
    """Runs nvidia-smi, at most once at a time.

    hangs: a process that has not ended. While the driver hangs, it cannot be killed, and waiting would hang, too.
    """

    def __init__(self, program: Sequence[str] = ("nvidia-smi",), timeout_s: float = _TIMEOUT_S) -> None:
        self._words = (*program, *QUERY)
        self._timeout_s = timeout_s
        self.hangs: subprocess.Popen[str] | None = None

    def query(self) -> Mapping[str, Gpu]:
        """Returns the GPU of each UUID, none if nvidia-smi fails."""
        if self.hangs is not None and self.hangs.poll() is None:
            return {}
        self.hangs = None
        try:
            process = subprocess.Popen(
                self._words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            return {}
        try:
            text, _ = process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            self.hangs = process
            return {}
        return parse(text) if process.returncode == 0 else {}
