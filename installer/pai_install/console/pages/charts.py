"""Charts as SVG that the server draws: they need no script. Pure but for the queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pai_install.console.endpoint import ApiCall
from pai_install.console.monitoring import Curve, NoMonitoringError, Query

WIDTH, HEIGHT = 640, 160
# a longer time without a value, in parts of the whole time, is a gap
_GAP = 1 / 30
_MOST_CURVES = 3


@dataclass(frozen=True, slots=True)
class Line:
    """A curve. pieces: points of each piece, as SVG writes them. low, mean, high, last: its values."""

    key: str
    pieces: tuple[str, ...]
    low: float
    mean: float
    high: float
    last: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. state: "on", or why there is none: "off" or "silent". top: the highest value of its axis."""

    state: str
    lines: tuple[Line, ...] = ()
    top: int = 100
    since: str = ""
    until: str = ""


def chart(call: ApiCall, queries: Iterable[Query], hours: float, *, percent: bool = True) -> Chart:
    """The chart of queries. percent: whether its axis ends at 100."""
    monitoring = call.services.monitoring
    if monitoring is None:
        return Chart("off")
    try:
        curves = monitoring.curves(queries, hours)
    except NoMonitoringError:
        return Chart("silent")
    return drawn(curves[:_MOST_CURVES], hours, percent=percent)


def drawn(curves: Sequence[Curve], hours: float, *, percent: bool) -> Chart:
    """The chart of curves."""
    if not curves:
        return Chart("on")
    end = max(curve.points[-1][0] for curve in curves)
    start = min(end - hours * 3600, *(curve.points[0][0] for curve in curves))
    top = 100 if percent else max(1, round(max(value for curve in curves for _, value in curve.points) + 0.5))
    lines = tuple(_line(curve, start, end, top) for curve in curves)
    return Chart("on", lines, top, _time(start), _time(end))


def _line(curve: Curve, start: float, end: float, top: int) -> Line:
    values = [value for _, value in curve.points]
    pieces = tuple(" ".join(piece) for piece in _pieces(curve, start, end, top))
    return Line(curve.key, pieces, min(values), sum(values) / len(values), max(values), values[-1])


def _pieces(curve: Curve, start: float, end: float, top: int) -> Iterator[list[str]]:
    length = max(1.0, end - start)
    piece: list[str] = []
    last = start
    for at, value in curve.points:
        if piece and at - last > length * _GAP:
            yield piece
            piece = []
        x, y = (at - start) / length * WIDTH, HEIGHT - min(max(value, 0), top) / top * HEIGHT
        piece.append(f"{x:.1f},{y:.1f}")
        last = at
    if piece:
        yield piece


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
