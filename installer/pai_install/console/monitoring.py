"""Alerts and curves of the site's monitoring, which answers on the loopback of the control plane. Queries are fixed."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3

from pai_install.agents.common.values import InvalidJsonError, child, parse, rows, text
from pai_install.console.model.recent import Recent
from pai_install.console.settings import MonitoringSettings
from pai_install.kube.objects import words
from pai_install.monitoring.alertmanager import fair

_TIMEOUT = urllib3.Timeout(connect=1, read=2)
_MOST_BYTES = 4 * 1024 * 1024
_MOST_ALERTS, _ALERTS_S = 1_000, 10.0
# of a curve
POINTS = 120
# of a selection in a query
_MOST_NAMES = 500
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
# keys of curves, for their texts
CURVES = (
    *("max", "avg", "min", "held", "busy"),
    *("gpus", "gpu_memory", "cores", "memory", "disk", "received", "sent", "transferred"),
)
_ALERTS = "/api/v2/alerts?active=true&silenced=false&inhibited=false&unprocessed=false"


class NoMonitoringError(Exception):
    """The monitoring does not answer on this control plane."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over time. points: seconds since 1970 -> value, in order of time."""

    key: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A curve to draw. key: of its text. expression: in the language of Prometheus, with no text of a user."""

    key: str
    expression: str


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one set of labels."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class QueryWindow:
    """A time in seconds since 1970. step: seconds between two values."""

    start: float
    end: float
    step: float

    @property
    def fields(self) -> Mapping[str, str]:
        """Its fields in a request to Prometheus."""
        return {"start": f"{self.start:.0f}", "end": f"{self.end:.0f}", "step": f"{self.step:.0f}"}


class MonitoringReader:
    """Asks Prometheus and Alertmanager."""

    def __init__(self, settings: MonitoringSettings) -> None:
        self._settings = settings
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=False, maxsize=4)
        self._alerts = Recent(self._firing, _ALERTS_S)

    def alerts(self) -> tuple[Mapping[str, Any], ...]:
        """The firing alerts as Alertmanager lists them. Raises NoMonitoringError."""
        return self._alerts.get()

    def _firing(self) -> tuple[Mapping[str, Any], ...]:
        found = self._read(f"{self._settings.alertmanager}{_ALERTS}")
        return tuple(fair(rows(found))[:_MOST_ALERTS])

    def curves(self, queries: Iterable[Query], hours: float, now: float | None = None) -> tuple[Curve, ...]:
        """The curve of each query over the last hours, if it has values. Raises NoMonitoringError."""
        end = now if now is not None else time.time()
        span = QueryWindow(end - hours * 3600, end, hours * 3600 / POINTS)
        found = ((one.key, self.series(one.expression, span)[:1]) for one in queries)
        return tuple(Curve(key, first.points) for key, some in found for first in some if first.points)

    def series(self, expression: str, span: QueryWindow) -> tuple[Series, ...]:
        """All series of an expression with no text of a user. Raises NoMonitoringError."""
        query = urlencode({"query": expression, **span.fields})
        answer = self._read(f"{self._settings.prometheus}/api/v1/query_range?{query}")
        found = rows(child(answer, "data").get("result")) if isinstance(answer, Mapping) else []
        return tuple(Series(words(child(one, "metric")), tuple(_values(one.get("values")))) for one in found)

    def _read(self, url: str) -> Any:  # noqa: ANN401 - foreign JSON
        try:
            # Not loaded by urllib3: the answer is read up to a limit of bytes.
            answer = self._pool.request("GET", url, preload_content=False, redirect=False)
            try:
                content = answer.read(_MOST_BYTES + 1)
            finally:
                answer.release_conn()
            if answer.status != 200:
                raise NoMonitoringError
            return parse(content, max_size=_MOST_BYTES)
        except (urllib3.exceptions.HTTPError, InvalidJsonError) as error:
            raise NoMonitoringError from error


def _values(found: object) -> Iterator[tuple[float, float]]:
    for pair in found if isinstance(found, list) else ():
        if not isinstance(pair, list) or len(pair) != 2:
            continue
        try:
            at, value = float(pair[0]), float(text(pair[1]))
        except (TypeError, ValueError):
            continue
        # Prometheus writes NaN and Inf, which neither JSON nor a curve can show.
        if math.isfinite(at) and math.isfinite(value):
            yield at, value


def alerts_of(alerts: Sequence[Mapping[str, Any]], namespaces: frozenset[str] | None) -> list[Mapping[str, Any]]:
    """The alerts of namespaces, all for None. Alerts of the cluster have none, and are for administrators."""
    if namespaces is None:
        return list(alerts)
    return [one for one in alerts if text(child(one, "labels").get("namespace")) in namespaces]


def gpus_of_pods(namespace: str, pods: Iterable[str]) -> tuple[Query, ...]:
    """The use of the GPUs of pods in percent. None for names that are no names of Kubernetes."""
    chosen = _one_of(pods)
    # The name becomes a part of a query. A quote in it would read series of other groups.
    if not chosen or not _NAME.fullmatch(namespace):
        return ()
    series = f'DCGM_FI_DEV_GPU_UTIL{{namespace="{namespace}",pod=~"{chosen}"}}'
    return tuple(Query(name, f"{name}({series})") for name in CURVES[:3])


def idle_gpus(namespaces: Iterable[str] | None) -> str:
    """The use of the GPUs of each pod of groups below 10 percent, "" for no group. namespaces: None for all."""
    chosen = "" if namespaces is None else _one_of(namespaces)
    if namespaces is not None and not chosen:
        return ""
    place = f'namespace=~"{chosen}",' if chosen else ""
    use = f'avg_over_time(DCGM_FI_DEV_GPU_UTIL{{{place}pod!=""}}[10m])'
    return f"avg by (namespace, pod) ({use} < 10)"


def gpus_of_groups(namespaces: Iterable[str]) -> tuple[Query, ...]:
    """The GPUs that pods of groups hold, and how many of them are busy."""
    chosen = _one_of(namespaces)
    if not chosen:
        return ()
    series = f'DCGM_FI_DEV_GPU_UTIL{{namespace=~"{chosen}",pod!=""}}'
    return Query("held", f"count({series})"), Query("busy", f"sum({series}) / 100")


def load_of_node(node: str) -> tuple[Query, ...]:
    """The use of the GPUs, their memory, and the processors of a node, in percent."""
    memory = f'100 * sum(DCGM_FI_DEV_FB_USED{{node="{node}"}}) / sum(DCGM_FI_DEV_FB_TOTAL{{node="{node}"}})'
    return _of_node(
        node,
        Query("gpus", f'avg(DCGM_FI_DEV_GPU_UTIL{{node="{node}"}})'),
        Query("gpu_memory", memory),
        Query("cores", f'100 * (1 - avg(rate(node_cpu_seconds_total{{mode="idle",node="{node}"}}[5m])))'),
    )


def fill_of_node(node: str) -> tuple[Query, ...]:
    """The use of the memory and of the fullest file system of a node, in percent."""
    free = f'node_memory_MemAvailable_bytes{{node="{node}"}} / node_memory_MemTotal_bytes{{node="{node}"}}'
    return _of_node(
        node,
        Query("memory", f"100 * (1 - {free})"),
        Query("disk", f'100 * pai_node_filesystem_used_ratio{{node="{node}"}}'),
    )


def transfer_of_node(node: str) -> tuple[Query, ...]:
    """What a node receives and sends, and what its disks read and write together, in MB per second."""
    read, written = (f'pai_node_{name}_bytes_rate{{node="{node}"}}' for name in ("read", "written"))
    return _of_node(
        node,
        Query("received", f'pai_node_received_bytes_rate{{node="{node}"}} / 1e6'),
        Query("sent", f'pai_node_sent_bytes_rate{{node="{node}"}} / 1e6'),
        Query("transferred", f"({read} + {written}) / 1e6"),
    )


def _of_node(node: str, *queries: Query) -> tuple[Query, ...]:
    """The queries, or none for a name that is no name of Kubernetes: it would change them."""
    return queries if _NAME.fullmatch(node) else ()


def _one_of(names: Iterable[str]) -> str:
    """An expression that is one of the names."""
    usable = [name for name in names if _NAME.fullmatch(name)]
    # A dot is any character in an expression, and would select other pods.
    return "|".join(name.replace(".", "[.]") for name in usable[:_MOST_NAMES])
