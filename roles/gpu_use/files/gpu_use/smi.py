"""What nvidia-smi says of each GPU: its UUID, its number, and how much of the time it computed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

QUERY = ("--query-gpu=index,uuid,utilization.gpu", "--format=csv,noheader,nounits")
# a driver that hangs holds its callers; it is asked again only when the last one has ended
_TIMEOUT_S = 10


@dataclass(frozen=True)
class Gpu:
    """busy: percent; None where the driver does not say, as for one that is split into slices (MIG)."""

    index: str
    busy: Optional[float]


def parse(text: str) -> dict[str, Gpu]:
    """UUID -> what is said of it; lines that are none are left out."""
    found: dict[str, Gpu] = {}
    for line in text.splitlines():
        index, _, rest = line.partition(",")
        uuid, _, busy = rest.partition(",")
        if index.strip().isdigit() and uuid.strip().startswith("GPU-"):
            found[uuid.strip()] = Gpu(index.strip(), _percent(busy.strip()))
    return found


def _percent(word: str) -> Optional[float]:
    return float(word) if word.isdigit() and int(word) <= 100 else None


class Smi:
    """Asks it, never twice at once.

    hangs: what was asked and has not ended; while its driver hangs, nothing can kill it, and to wait would hang, too.
    """

    def __init__(self, program: Sequence[str] = ("nvidia-smi",), timeout_s: float = _TIMEOUT_S) -> None:
        self._words = (*program, *QUERY)
        self._timeout_s = timeout_s
        self.hangs: Optional[subprocess.Popen[str]] = None

    def ask(self) -> Mapping[str, Gpu]:
        """UUID -> what is said of it; nothing where it does not answer."""
        if self.hangs is not None and self.hangs.poll() is None:
            return {}
        self.hangs = None
        try:
            asked = subprocess.Popen(
                self._words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            return {}
        try:
            text, _ = asked.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            asked.kill()
            self.hangs = asked
            return {}
        return parse(text) if asked.returncode == 0 else {}
