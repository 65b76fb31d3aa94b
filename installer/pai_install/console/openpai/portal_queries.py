"""The queries that OpenPAI's web portal 1.8.1 sends to Prometheus, and ours in their place. Pure.

No text of a request becomes a part of our queries: a portal's query only chooses one of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from pai_install.console.monitoring import POINTS, QueryWindow, Series

# of the home of administrators
IDLE_JOBS = "avg(avg_over_time(task_gpu_percent[10m]) < 10) by (job_name)"
# of the list of machines, with their names
NODES = "node_uname_info"
# all others are of a range
INSTANT = frozenset({IDLE_JOBS, NODES})
_HOURS = 24
_DAY_S = _HOURS * 3600
# a clock of a browser may be ahead
_AHEAD_S = 300
_NUMBER = re.compile(r"[0-9]{1,11}([.][0-9]{1,9})?")
# the portal takes the length of a rate from its settings. Ours is fixed
_RANGE, _RANGES = "[RANGE]", r"\[[1-9][0-9]{0,3}[sm]\]"
_FREE = "node_memory_MemFree_bytes - node_memory_Buffers_bytes - node_memory_Cached_bytes"
# query of the page Hardware -> ours, by node
_OF_NODES: Mapping[str, str] = {
    NODES: 'max by (node) (node_uname_info{node!=""})',
    f'100 - (avg by (instance)(irate(node_cpu_seconds_total{{mode="idle"}}{_RANGE})) * 100)': (
        "100 * pai_node_cpu_busy_ratio"
    ),
    f"node_memory_MemTotal_bytes - {_FREE}": f"max by (node) (node_memory_MemTotal_bytes - {_FREE})",
    "node_memory_MemTotal_bytes": "max by (node) (node_memory_MemTotal_bytes)",
    "avg by (instance)(gpu_utilization)": "pai_node_gpu_busy_percent",
    "avg by (instance)(gpu_mem_utilization)": "100 * pai_node_gpu_memory_ratio",
    f"sum by (instance)(rate(node_disk_read_bytes_total{_RANGE}))": "pai_node_read_bytes_rate",
    f"sum by (instance)(rate(node_disk_written_bytes_total{_RANGE}))": "pai_node_written_bytes_rate",
    f"sum by (instance)(rate(node_network_receive_bytes_total{_RANGE}))": "pai_node_received_bytes_rate",
}
_SHAPES = tuple(
    (re.compile(re.escape(query).replace(re.escape(_RANGE), _RANGES)), ours) for query, ours in _OF_NODES.items()
)


def query_of_nodes(query: str) -> str:
    """Our query in place of one of the page Hardware, "" for any other."""
    return next((ours for shape, ours in _SHAPES if shape.fullmatch(query)), "")


def instant(fields: Mapping[str, str], now: float) -> QueryWindow | None:
    """The time of a query, now without one. None for a time that is none of the last day."""
    at = _seconds(fields["time"]) if "time" in fields else now
    return _span(at, at, 1, now)


def span(fields: Mapping[str, str], now: float) -> QueryWindow | None:
    """The time of a query of a range. None for a wrong, long, or dense one."""
    start, end, step = (_seconds(fields.get(name, "")) for name in ("start", "end", "step"))
    return _span(start, end, step, now)


def _seconds(text: str) -> float:
    """Not a number for another text."""
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _span(start: float, end: float, step: float, now: float) -> QueryWindow | None:
    # every comparison with a missing number is false
    if not (now - _DAY_S <= start <= end <= now + _AHEAD_S and 1 <= step <= _DAY_S):
        return None
    return QueryWindow(start, end, step) if (end - start) / step <= POINTS else None


def of_nodes(found: Sequence[Series]) -> list[tuple[dict[str, str], Series]]:
    """Series with the labels that the page Hardware reads."""
    named = ((one.labels.get("node", ""), one) for one in found)
    return [({"instance": node, "nodename": node}, one) for node, one in named if node and one.points]


def of_jobs(found: Sequence[Series], jobs: Mapping[tuple[str, str], str]) -> list[tuple[dict[str, str], Series]]:
    """The mean of the pods of each job. jobs: namespace and pod -> USER~NAME."""
    last: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        job = jobs.get((one.labels.get("namespace", ""), one.labels.get("pod", "")), "")
        if job and one.points:
            last.setdefault(job, []).append(one.points[-1])
    means = {job: sum(value for _, value in points) / len(points) for job, points in last.items()}
    return [({"job_name": job}, Series({}, ((last[job][0][0], mean),))) for job, mean in means.items()]


def content(found: Sequence[tuple[Mapping[str, str], Series]], *, ranged: bool) -> dict[str, object]:
    """An answer in Prometheus' form."""
    rows = [
        {"metric": labels, "values": values} if ranged else {"metric": labels, "value": values[-1]}
        for labels, one in found
        if (values := [[at, f"{value:.10g}"] for at, value in one.points])
    ]
    return {"status": "success", "data": {"resultType": "matrix" if ranged else "vector", "result": rows}}
