"""monitoring: metrics of the cluster, alerts, and who is told of them. An extension."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from pai_install.documents.scalars import invalid, read_size, read_text, read_whole, read_word_boolean, shown
from pai_install.site.services.section import Count, Hidden, KebabSection, ListOf, Url, Word

_MOST_DAYS, _MOST_REPLICAS = 3650, 3
_AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
_DAYS = re.compile(r"[0-9]{1,4}d?")


def _read_days(value: object) -> int:
    word = read_text(value)
    if not _DAYS.fullmatch(word) or not 1 <= int(word.rstrip("d")) <= _MOST_DAYS:
        raise invalid("range", f"{shown(word)} is not from 1d to {_MOST_DAYS}d", "write days, for example 15d")
    return int(word.rstrip("d"))


def _read_amount(value: object) -> float:
    word = read_text(value)
    if not _AMOUNT.fullmatch(word):
        raise invalid("number", f"{shown(word)} is not a number from 0", "write a number such as 20 or 0.5")
    return float(word)


def _read_replicas(value: object) -> int:
    number = read_whole(value)
    if not 1 <= number <= _MOST_REPLICAS:
        raise invalid("range", f"{number} is not from 1 to {_MOST_REPLICAS}", f"write 1 to {_MOST_REPLICAS}")
    return number


def read_switch(value: object) -> object:
    """Returns an empty mapping for true, None for false, and everything else unchanged."""
    if value is None or isinstance(value, dict | KebabSection):
        return value
    return {} if read_word_boolean(value) else None


Days = Annotated[int, BeforeValidator(_read_days), WithJsonSchema({"type": ["integer", "string"]})]
Amount = Annotated[float, BeforeValidator(_read_amount), WithJsonSchema({"type": ["number", "string"], "minimum": 0})]
Size = Annotated[int, BeforeValidator(read_size), WithJsonSchema({"type": "string"})]
Replicas = Annotated[
    int, BeforeValidator(_read_replicas), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": _MOST_REPLICAS})
]


class Thresholds(KebabSection):
    """monitoring.thresholds: when alerts fire."""

    filesystem_warn_percent: Amount = 20.0
    """Free space of a file system in percent, for a warning."""
    filesystem_error_percent: Amount = 5.0
    """Free space of a file system in percent, for an error."""
    inodes_percent: Amount = 5.0
    """Free inodes of a file system in percent."""
    memory_percent: Amount = 95.0
    """Used memory of a node in percent."""
    cpu_percent: Amount = 98.0
    """Used CPUs of a node in percent."""
    clock_seconds: Amount = 0.05
    """Offset of a clock."""
    network_error_percent: Amount = 1.0
    """Packets with errors."""
    infiniband_errors: Amount = 10.0
    """Symbol errors of an InfiniBand port in 15 minutes."""
    corrected_memory_errors: Amount = 100.0
    """Corrected errors of memory modules in an hour."""
    gpu_corrected_errors: Amount = 100.0
    """Corrected errors of the memory of a GPU in an hour."""
    gpu_celsius: Amount = 90.0
    """Temperature of a GPU."""
    nvidia_smi_seconds: Amount = 40.0
    """Time of a request to the driver."""
    gpu_idle_percent: Amount = 10.0
    """Utilization below which a GPU is idle."""
    gpu_idle_minutes: Count = 120
    """Minutes after which a pod with idle GPUs is reported."""
    volume_percent: Amount = 3.0
    """Free space of a volume in percent."""
    job_wait_hours: Amount = 24.0
    """Time until the admission of jobs."""
    preemptions: Amount = 50.0
    """Preempted jobs of a queue in an hour."""
    api_error_percent: Amount = 1.0
    """Failed requests that the API server may have."""
    etcd_fsync_seconds: Amount = 0.5
    """Time of a write of etcd."""
    etcd_percent: Amount = 80.0
    """Used quota of etcd."""
    certificate_warn_days: Amount = 30.0
    """Days until a certificate expires, for a warning."""
    certificate_error_days: Amount = 7.0
    """Days until a certificate expires, for an error."""
    backup_hours: Amount = 48.0
    """Age of the last snapshot of etcd."""
    registry_error_percent: Amount = 5.0
    """Failed requests to the registry cache."""
    series: Count = 3_000_000
    """Series of Prometheus."""
    store_percent: Amount = 95.0
    """Used part of monitoring.disk."""
    remote_write_seconds: Amount = 300.0
    """Delay of remote write."""
    maintenance_hours: Count = 24
    """Hours after which a cordoned node sends its alerts again."""


class WebHook(KebabSection):
    """monitoring.web-hooks[]: an HTTP service that gets alerts as JSON of Alertmanager."""

    name: Word
    """Name of the receiver, for routes."""
    url: Hidden
    """Address. A secret, because it often contains a token."""
    token: Hidden | None = None
    """Bearer token of the requests."""


class RemoteWrite(KebabSection):
    """monitoring.remote-write[]: a store of metrics outside of the cluster, which gets a copy of all metrics."""

    name: Word
    """Name of the store, for alerts."""
    url: Url
    """Address of its remote-write API."""
    token: Hidden | None = None
    """Bearer token of the requests."""


class Monitoring(KebabSection):
    """monitoring: true for Prometheus, Alertmanager, and exporters with defaults, or a mapping of these keys."""

    retention: Days = 15
    """Days that metrics are kept, such as 15d."""
    disk: Size = 50 * 2**30
    """Maximum size of the metrics on disk. The oldest are deleted first."""
    replicas: Replicas = 1
    """Number of control-plane nodes that store metrics and send alerts."""
    thresholds: Thresholds = Thresholds()
    """When alerts fire."""
    web_hooks: Annotated[tuple[WebHook, ...], ListOf] = Field(default=())
    """Receivers of all alerts from severity warn."""
    remote_write: Annotated[tuple[RemoteWrite, ...], ListOf] = Field(default=())
    """Stores outside of the cluster, such as Thanos or Mimir."""
