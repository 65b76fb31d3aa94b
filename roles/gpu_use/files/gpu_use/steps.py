"""How busy something was, minute by minute, in few numbers: since when it was never busier than that. Pure.

Steps are pairs of an end and a level, the oldest first: until that end there was a minute of that level, and after it
none as busy. So ends grow and levels fall, and since when it was below any limit can be read from them. What is not
known counts as BUSY: no one may take it for idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

# percent; no limit is above CEILING, so what is busier is all the same, and there are few steps
BUSY, CEILING = 100, 50
# seconds: of what is called a minute here, and that it may last without anything missing
MINUTE_S, LATE_S = 60, 90
Step = tuple[int, int]


@dataclass(frozen=True)
class Steps:
    """at: seconds since 1970, until when it is known."""

    at: int
    steps: tuple[Step, ...]

    def then(self, end: int, level: Optional[float]) -> Steps:
        """With a minute that ended at `end`. level: percent; None where no one knows."""
        before = self
        if not self.at < end <= self.at + LATE_S:
            before = begin(end - MINUTE_S)  # something is missing, or the clock was set: what was before is not known
        height = _height(level)
        kept = tuple(step for step in before.steps if step[1] > height)
        return Steps(end, (*kept, (end, height)))

    @property
    def now(self) -> int:
        """The level of the last minute."""
        return self.steps[-1][1]


def begin(at: int) -> Steps:
    """Before anything was measured: whatever it did until now is not known."""
    return Steps(at, ((at, BUSY),))


def _height(level: Optional[float]) -> int:
    return BUSY if level is None or not 0 <= level < CEILING else int(level)


def read(at: object, rows: object) -> Optional[Steps]:
    """Steps as `plain` writes them; None for anything else."""
    if not _is_count(at) or not isinstance(rows, list) or not rows:
        return None
    found: list[Step] = []
    for row in rows:
        if not isinstance(row, list) or len(row) != 2 or not (_is_count(row[0]) and _is_count(row[1])):
            return None
        if row[0] > at or row[1] > BUSY or (found and not (row[0] > found[-1][0] and row[1] < found[-1][1])):
            return None
        found.append((row[0], row[1]))
    return Steps(int(at), tuple(found))  # type: ignore[call-overload]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def plain(steps: Steps) -> list[list[int]]:
    """For JSON."""
    return [list(step) for step in steps.steps]


def highest(levels: Sequence[Union[float, None]]) -> Optional[float]:
    """Of several devices the busiest; None where one is not known."""
    known = [level for level in levels if level is not None]
    return max(known) if known and len(known) == len(levels) else None
