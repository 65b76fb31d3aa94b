"""Numbers of the bridge in Prometheus' text format."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

Labels = tuple[tuple[str, str], ...]
# seconds; the last one is above all timeouts
BUCKETS = (0.005, 0.02, 0.1, 0.5, 1.0, 3.0, 10.0)


class Kind(NamedTuple):
    """What is known of a metric before it has a value."""

    type: Literal["counter", "gauge", "histogram"]
    help: str


METRICS: Mapping[str, Kind] = {
    "hived_bridge_calls_total": Kind("counter", "Calls of kube-scheduler, by verb and outcome"),
    "hived_bridge_call_seconds": Kind("histogram", "How long calls of kube-scheduler took, delays included"),
    "hived_bridge_hived_errors_total": Kind("counter", "Calls to HiveD without a usable answer, by call"),
    "hived_bridge_api_errors_total": Kind("counter", "Calls to the API server without a usable answer, by call"),
    "hived_bridge_evictions_total": Kind("counter", "Pods that HiveD wanted evicted, by outcome"),
    "hived_bridge_gangs_evicted_total": Kind("counter", "Gangs that were evicted"),
    "hived_bridge_delays_total": Kind("counter", "Calls that waited for HiveD's informer, by reason"),
    "hived_bridge_hived_up": Kind("gauge", "1 while HiveD answers"),
    "hived_bridge_configuration_current": Kind(
        "gauge", "1 while HiveD runs what the ConfigMap says; 0: its last good one"
    ),
}


class Metrics:
    """All values; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Counts. Raises KeyError for a metric that is not declared."""
        self._add(name, amount, labels)

    def set(self, name: str, value: float) -> None:
        """Sets a gauge."""
        with self._lock:
            self._values[name][()] = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Puts a duration in seconds into a histogram."""
        for bound in BUCKETS:
            # Buckets of Prometheus are cumulative, and one without observations still has to be there.
            self._add(name, float(value <= bound), {**labels, "le": f"{bound:g}"}, "_bucket")
        for suffix, amount, more in (("_bucket", 1.0, {"le": "+Inf"}), ("_count", 1.0, {}), ("_sum", value, {})):
            self._add(name, amount, {**labels, **more}, suffix)

    def value(self, name: str, **labels: str) -> float:
        """One value, 0 where there is none yet."""
        with self._lock:
            return self._values[name].get(tuple(labels.items()), 0.0)

    def _add(self, name: str, amount: float, labels: Mapping[str, str], suffix: str = "") -> None:
        if name not in METRICS:
            raise KeyError(name)
        with self._lock:
            self._values[f"{name}{suffix}"][tuple(labels.items())] += amount

    def text(self) -> str:
        """What /metrics answers."""
        with self._lock:
            return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        for name, kind in METRICS.items():
            yield f"# HELP {name} {kind.help}"
            yield f"# TYPE {name} {kind.type}"
            suffixes = ("_bucket", "_sum", "_count") if kind.type == "histogram" else ("",)
            for suffix in suffixes:
                for labels, value in self._values.get(f"{name}{suffix}", {}).items():
                    yield f"{name}{suffix}{_shown(labels)} {value:g}"


def _shown(labels: Labels) -> str:
    """Values of labels are words of ours: nothing in them needs to be escaped."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}" if labels else ""
