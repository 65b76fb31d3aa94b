"""A job's record as two ConfigMaps in the namespace of its group: last state, and last log lines. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pai_install.agents.common.values import (
    InvalidJsonError,
    Json,
    child,
    fitting,
    meta,
    number,
    parse_object,
    rows,
    text,
)

# on the ConfigMaps: state or logs, and whose record it is. No user may write one that has the first.
RECORD, JOB = "pai-install/record", "pai-install/job"
STATE, LOGS = "state", "logs"
VERSION = 1
# characters of a label
MAX_LABEL = 63
# ConfigMaps have 1 MiB at most
_MOST_BYTES, _MAX_RECORD = 768 * 1024, 1024 * 1024
_DAY_S = 86400


@dataclass(frozen=True)
class Removed:
    """When a job's object went, in seconds since 1970, and who stopped it and why, where that was said."""

    at: float
    by: str = ""
    why: str = ""


@dataclass(frozen=True)
class Preemption:
    """A loss of devices that is no failure of the job.

    at: time in Kubernetes' format, empty for an unknown time. why: cause, in the words of the scheduler. by:
    NAMESPACE/NAME of the job that has the devices now, empty for none.
    """

    at: str
    why: str
    by: str = ""


@dataclass(frozen=True)
class Record:
    """The record of one job. pods: place -> the last pod there. removed: None while its object exists.

    failed, lost: attempts with a pod that failed, and with one that lost its devices, where the recorder counts them.
    """

    job: Json
    pods: Mapping[str, Json] = field(default_factory=dict)
    removed: Removed | None = None
    preemptions: tuple[Preemption, ...] = ()
    failed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def namespace(self) -> str:
        """Where the job was, and the record is."""
        return meta(self.job, "namespace")

    @property
    def uid(self) -> str:
        """The job's."""
        return meta(self.job, "uid")


def name_of(job: Json) -> str:
    """Returns the name of a record's ConfigMap. It has the UID, because names of jobs are used again."""
    return f"job-{meta(job, 'name')[:200]}-{meta(job, 'uid')[:13]}"


def state_map(record: Record) -> dict[str, Any]:
    """Returns the ConfigMap with the last state. Pods beyond its size limit are left out."""
    removed = record.removed
    removal = None if removed is None else {"at": removed.at, "by": removed.by, "why": removed.why}
    pods = fitting(record.pods, _MOST_BYTES)
    body = {"version": VERSION, "job": record.job, "pods": pods, "left_out": len(record.pods) - len(pods)}
    body |= {"removed": removal, "preemptions": [asdict(one) for one in record.preemptions]}
    body |= {"failed": list(record.failed), "lost": list(record.lost)}
    return _config_map(record.job, STATE, {"record": json.dumps(body, separators=(",", ":"))})


def logs_map(job: Json, logs: Mapping[str, str]) -> dict[str, Any]:
    """The ConfigMap of last lines. logs: pod -> its last lines."""
    return _config_map(job, LOGS, fitting(logs, _MOST_BYTES))


def _config_map(job: Json, what: str, data: Mapping[str, str]) -> dict[str, Any]:
    name = name_of(job) if what == STATE else f"{name_of(job)}.{LOGS}"
    labels = {
        "app.kubernetes.io/managed-by": "pai-install",
        RECORD: what,
        JOB: meta(job, "name")[:MAX_LABEL].rstrip("-."),
    }
    # no label of a user: what has one is the user's to change
    metadata = {"name": name, "namespace": meta(job, "namespace"), "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def read_record(item: Json) -> Record | None:
    """Returns the record in a ConfigMap, or None without a readable one."""
    try:
        found = parse_object(text(child(item, "data").get("record")), max_size=_MAX_RECORD)
    except InvalidJsonError:
        return None
    job, pods, removed = child(found, "job"), child(found, "pods"), found.get("removed")
    # the record of another namespace or job is forged
    own = (meta(job, "namespace"), name_of(job)) == (meta(item, "namespace"), meta(item, "name"))
    if number(found.get("version")) != VERSION or not meta(job, "uid") or not own:
        return None
    places = {place: pod for place, pod in pods.items() if isinstance(pod, Mapping)}
    preemptions = tuple(
        Preemption(text(row.get("at")), text(row.get("why")), text(row.get("by")))
        for row in rows(found.get("preemptions"))
    )
    failed, lost = (tuple(map(text, _items(found.get(name)))) for name in ("failed", "lost"))
    return Record(job, places, None if removed is None else _removed(child(removed)), preemptions, failed, lost)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _removed(value: Json) -> Removed:
    at = value.get("at")
    return Removed(float(at) if isinstance(at, (int, float)) else 0, text(value.get("by")), text(value.get("why")))


def outdated(records: Iterable[Record], keep_days: float, most: int, now: float) -> Iterator[Record]:
    """Records to drop: of jobs that went too long ago, and in each namespace the oldest beyond `most`."""
    gone = [record for record in records if record.removed is not None]
    spaces: dict[str, int] = {}
    for record in sorted(gone, key=_went, reverse=True):
        spaces[record.namespace] = spaces.get(record.namespace, 0) + 1
        if now - _went(record) > keep_days * _DAY_S or spaces[record.namespace] > most:
            yield record


def _went(record: Record) -> float:
    return record.removed.at if record.removed is not None else 0.0
