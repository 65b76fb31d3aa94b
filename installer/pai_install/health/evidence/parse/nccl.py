"""The output of all_reduce_perf of nccl-tests."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_install.health.evidence.parse.numbers import whole

COMMAND = "nccl_all_reduce"  # under this name its output is part of a machine's evidence
# size, count, type, redop, root; then time, algbw, busbw, #wrong out of place and again in place
_ROW = re.compile(
    r"^\s*(\d{1,18})\s+\d+\s+\S+\s+\S+\s+-?\d+"
    r"\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+(\S+)"
    r"\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+(\S+)\s*$",
    re.MULTILINE,
)
_RANK = re.compile(r"^#\s+Rank\s+\d+\b.*", re.MULTILINE)
_BOUNDS = re.compile(r"^# Out of bounds values : (\d{1,18})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AllReduce:
    """One run. bus_gbs: bus bandwidth in GB/s at the largest message, the better of in and out of place.

    wrong: values that came out wrong, None when they were not checked.
    """

    bus_gbs: float
    message_bytes: int
    ranks: int
    wrong: int | None


def parse_all_reduce(text: str) -> AllReduce | None:
    """Returns the result, or None if the output has none."""
    rows = [match.groups() for match in _ROW.finditer(text)]
    if not rows:
        return None
    size, outside, _, inside, _ = max(rows, key=lambda row: int(row[0]))
    counts = [count for row in rows for word in (row[2], row[4]) if (count := whole(word)) is not None]
    bounds = _BOUNDS.search(text)
    if bounds:
        counts.append(int(bounds.group(1)))
    return AllReduce(
        max(float(outside), float(inside)), int(size), len(_RANK.findall(text)), max(counts) if counts else None
    )
