"""State of all jobs, and the actions that follow from it: read a log, write a record, drop a record. Pure.

It keeps the last state of each job and pod, also after they were deleted.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pai_install.agents.common.records import Preemption, Record, Removed, outdated
from pai_install.agents.common.values import Json, child, meta, rows, text
from pai_install.agents.job_recorder import objects
from pai_install.agents.job_recorder.failures import Attempts, is_spent, with_pod
from pai_install.agents.job_recorder.orders import Action, Drop, End, Read, WriteLogs, WriteState
from pai_install.agents.job_recorder.preemptions import (
    disruption_of,
    kueue_preemption,
    taken_by,
    with_disruption,
    with_kueue_preemption,
)

# seconds: between two writes of one record; until logs of a job that goes on are written; until a log is read again
# of a pod that runs, and of one that ends; how long a job that is gone waits for its pods' last words
WRITE_S, WRITE_LOGS_S, READ_S, READ_LAST_S, SETTLE_S = 10, 300, 120, 2, 60
PODS = "pods"
# logs that are read at once, and attempts at one whose pod has ended
AT_ONCE, ATTEMPTS = 8, 5
_MOST_LOGS = 640 * 1024
_MOST_PODS = 2000


@dataclass(frozen=True)
class Rules:
    """Retention: time and size. namespaces: of groups. Jobs elsewhere are not recorded.

    kinds: of recorded jobs, GROUP/RESOURCE.
    """

    keep_days: float
    most: int
    log_bytes: int
    namespaces: frozenset[str]
    kinds: frozenset[str] = frozenset()


# namespace, user, group of the kind, name: pods are of a job only if they are of the same user
_Key = tuple[str, str, str, str]


@dataclass
class _Live:
    """A pod that is there. read_at: 0 before its log was read. failures: of reading it, in a row."""

    name: str
    place: str
    container: str
    wrote: bool
    over: bool
    deleting: bool
    read_at: float = 0
    reading: bool = False
    final: bool = False
    failures: int = 0

    def waits(self, now: float) -> bool:
        """Whether its log is to be read."""
        if self.reading or self.final or not self.wrote:
            return False
        soon = self.urgent and self.failures < ATTEMPTS  # a machine that is silent is asked no more often than others
        return not self.read_at or now - self.read_at >= (READ_LAST_S if soon else READ_S)

    @property
    def urgent(self) -> bool:
        """Whether it may be gone soon."""
        return self.over or self.deleting


@dataclass
class _Tracked:
    """One job. job: None while only its pods were seen. logs: by pod."""

    job: dict[str, Any] | None = None
    pods: dict[str, Json] = field(default_factory=dict)
    live: dict[str, _Live] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    removed: Removed | None = None
    preemptions: tuple[Preemption, ...] = ()
    attempts: Attempts = field(default_factory=Attempts)
    end_at: float = 0
    born: float = 0
    written: str = ""
    written_at: float = 0
    logs_changed: bool = False
    logs_urgent: bool = False
    logs_at: float = 0

    @property
    def uid(self) -> str:
        return meta(self.job or {}, "uid")

    @property
    def created(self) -> str:
        return meta(self.job or {}, "creationTimestamp")

    def facts(self) -> str:
        preemptions = [(one.at, one.by) for one in self.preemptions]
        state = [self.job, self.pods, self.removed and self.removed.at, preemptions, self.attempts.lists()]
        return json.dumps(state, sort_keys=True)

    def settled(self, now: float) -> bool:
        """Whether nothing more will be heard of a job that is gone."""
        return self.removed is not None and (not self.live or now - self.removed.at > SETTLE_S)


class Store:
    """All jobs. Times are seconds since 1970."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._jobs: dict[_Key, list[_Tracked]] = {}
        self._kept: dict[str, Record] = {}
        # machine -> jobs that lost devices there and do not know to whom
        self._freed: dict[str, list[_Tracked]] = {}
        self._reads = 0

    # what was kept before

    def recall(self, record: Record, logs: Mapping[str, str], now: float) -> None:
        """Adds a record from the cluster. Its job may be deleted or still exist."""
        self._kept[record.uid] = record
        key = self._key(record.job)
        if record.removed is not None or key is None:
            return
        job = dict(record.job)
        found = _Tracked(job, dict(record.pods), logs=dict(logs), born=now, written_at=now, logs_at=now)
        found.preemptions = record.preemptions
        found.attempts = Attempts(frozenset(record.failed), frozenset(record.lost))
        found.written = found.facts()
        if _resource(job) not in self.rules.kinds:
            _remove(found, now)  # the site no longer has such jobs, so nothing would ever say that it is gone
        self._jobs.setdefault(key, []).append(found)

    # what the API server says

    def see_job(self, item: Json, now: float) -> None:
        """A job as it is now."""
        key = self._key(item)
        if key is None or not objects.is_job(item):
            return
        slot = self._jobs.setdefault(key, [])
        found = next((one for one in slot if one.uid == meta(item, "uid")), None)
        if found is None:
            # A name is used again only after the older job is gone, also if the watch missed its end.
            for other in slot:
                if other.job is not None and other.removed is None and other.job["kind"] == item.get("kind"):
                    _remove(other, now)
            found = next((one for one in slot if one.job is None), None)
        if found is None:
            found = _Tracked(born=now)
            slot.append(found)
        found.job, found.removed = objects.kept_job(item), None

    def job_gone(self, item: Json, now: float) -> None:
        """A job's object was deleted. item: its last state."""
        self.see_job(item, now)
        for one in self._slot(item):
            if one.uid == meta(item, "uid") and one.removed is None:
                _remove(one, now)

    def see_pod(self, item: Json, now: float) -> None:
        """A pod as it is now."""
        if objects.is_job(item):
            self.see_job(item, now)
        found = self._home(item, now)
        if found is None:
            return
        place, uid, name = objects.pod_key(item), meta(item, "uid"), meta(item, "name")
        before = found.pods.get(place)
        if before is not None and meta(before, "creationTimestamp") > meta(item, "creationTimestamp"):
            return  # of an earlier attempt
        # A replacement has a new log. The one of the pod before it would look like its own.
        if before is not None and meta(before, "uid") != uid:
            found.logs.pop(meta(before, "name"), None)
        # A ConfigMap holds 1 MiB, and memory must not grow with the pods of one user.
        if before is None and len(found.pods) >= _MOST_PODS:
            return
        found.pods[place] = objects.kept_pod(item)
        self._note_preemption(found, item)
        found.attempts = with_pod(found.attempts, item)
        live = found.live.setdefault(uid, _Live(name, place, "", wrote=False, over=False, deleting=False))
        if name in found.logs and before is not None and objects.is_over(before):
            live.final = True  # it was read before the recorder was started again
        live.container = objects.container_of(item)
        # Attempts while the pod ran say nothing about its last lines.
        if objects.is_over(item) and not live.over:
            live.failures = 0
        live.wrote, live.over, live.deleting = (
            objects.has_written(item),
            objects.is_over(item),
            objects.is_deleting(item),
        )

    def _note_preemption(self, found: _Tracked, pod: Json) -> None:
        if (disruption := disruption_of(pod)) is not None:
            found.preemptions = with_disruption(found.preemptions, disruption)
            # A pod says that it lost its devices, but not to whom. The next pod on that machine tells it.
            losers = self._freed.setdefault(disruption.machine, []) if disruption.machine else [found]
            if found not in losers:
                losers.append(found)
            return
        machine = text(child(pod, "spec").get("nodeName"))
        for loser in list(self._freed.get(machine, ())):
            before = loser.preemptions
            if loser is not found:
                loser.preemptions = taken_by(before, objects.job_of(pod)[1], pod)
            if loser.preemptions != before or not before or before[-1].by:
                self._freed[machine].remove(loser)

    def see_workload(self, item: Json) -> None:
        """An object of Kueue's, which says when its job lost its devices to which other. Pods of such jobs only end."""
        found = kueue_preemption(item)
        owners = {text(row.get("uid")) for row in rows(child(item, "metadata").get("ownerReferences"))}
        if found is None:
            return
        for one in self._all():
            if one.uid in owners and meta(one.job or {}, "namespace") == meta(item, "namespace"):
                new = replace(found[0], by=self._name_of(found[1]))
                one.preemptions = with_kueue_preemption(one.preemptions, new)

    def _name_of(self, uid: str) -> str:
        """NAMESPACE/NAME of a job, or ""."""
        job = next((one.job for one in self._all() if uid and one.uid == uid), None)
        return f"{meta(job, 'namespace')}/{meta(job, 'name')}"[: objects.MAX_TEXT] if job is not None else ""

    def pod_gone(self, item: Json, now: float) -> None:
        """A pod was deleted. item: its last state."""
        self.see_pod(item, now)
        for one in self._slot(item):
            one.live.pop(meta(item, "uid"), None)
        if objects.is_job(item):
            self.job_gone(item, now)

    def retain(self, resource: str, uids: Container[str], now: float) -> None:
        """Jobs and pods of a kind with other UIDs were deleted. resource: GROUP/RESOURCE, or PODS."""
        for one in self._all():
            if resource == PODS:
                one.live = {uid: live for uid, live in one.live.items() if uid in uids}
            if one.job is not None and one.removed is None and _resource(one.job) == resource and one.uid not in uids:
                _remove(one, now)

    # what was done

    def log_read(self, action: Read, lines: str | None, now: float) -> None:
        """The requested last lines were read. lines: None if the machine did not return them."""
        # Before all else: a read whose job is gone must give its slot back, too.
        self._reads -= 1
        found = next((one for one in self._all() if one.uid == action.job), None)
        if found is None:
            return
        live = next((one for one in found.live.values() if one.name == action.pod), None)
        if live is not None:
            live.reading, live.read_at = False, now
            live.failures = live.failures + 1 if lines is None else 0
            live.final = action.last and (lines is not None or live.failures >= ATTEMPTS)
        if lines and lines != found.logs.get(action.pod):
            found.logs[action.pod] = lines
            found.logs_changed = True
        found.logs_urgent = found.logs_urgent or action.last

    def not_written(self, action: WriteState | WriteLogs, now: float) -> None:
        """A record could not be written: once more, after a while."""
        uid = action.record.uid if isinstance(action, WriteState) else meta(action.job, "uid")
        for one in self._all():
            if one.uid == uid and isinstance(action, WriteState):
                one.written, one.written_at = "", now
            elif one.uid == uid:
                one.logs_changed, one.logs_at, one.logs_urgent = True, now, False

    # what is to be done

    def due(self, now: float) -> list[Action]:
        """Returns the actions to take now. They count as done, except by `not_written` and `log_read`."""
        actions: list[Action] = []
        for key, slot in list(self._jobs.items()):
            for one in list(slot):
                written = list(self._writes(one, now))
                actions += [*written, *_ends(one, now)]
                if not written and (one.settled(now) or _lost(one, now)):
                    slot.remove(one)
            if not slot:
                del self._jobs[key]
        actions += self._read_next(now)
        actions += self._outdated(now)
        return actions

    def _writes(self, one: _Tracked, now: float) -> Iterator[Action]:
        if one.job is None:
            return
        last, facts = one.settled(now), one.written
        # facts() costs time for a large job, so it is made only when a write is due.
        if now - one.written_at >= WRITE_S or (last and one.written):
            facts = one.facts()
        changed = facts != one.written
        waited = now - one.logs_at >= (WRITE_S if one.logs_urgent or one.removed else WRITE_LOGS_S)
        # whoever reads that the job is gone reads its last lines, too: they come first
        if one.logs_changed and (waited or last or (changed and one.removed)):
            one.logs_changed, one.logs_urgent, one.logs_at = False, False, now
            # All pods of a job share one ConfigMap, so many pods get fewer lines each.
            most = min(self.rules.log_bytes, _MOST_LOGS // max(len(one.logs), 1))
            yield WriteLogs(one.job, {pod: tail(lines, most) for pod, lines in sorted(one.logs.items())})
        if changed:
            one.written, one.written_at = facts, now
            record = Record(one.job, dict(one.pods), one.removed, one.preemptions, *one.attempts.lists())
            self._kept[one.uid] = record
            yield WriteState(record)

    def _read_next(self, now: float) -> Iterator[Read]:
        waiting = [(live, one) for one in self._all() if one.job for live in one.live.values() if live.waits(now)]
        # A pod that ends may be deleted within seconds, with its log.
        waiting.sort(key=lambda it: (not it[0].urgent, it[0].read_at))
        for live, one in waiting[: max(AT_ONCE - self._reads, 0)]:
            live.reading = True
            self._reads += 1
            yield Read(one.uid, meta(one.job or {}, "namespace"), live.name, live.container, live.over)

    def _outdated(self, now: float) -> Iterator[Drop]:
        for record in list(outdated(self._kept.values(), self.rules.keep_days, self.rules.most, now)):
            del self._kept[record.uid]
            yield Drop(record)

    # where things belong

    def _all(self) -> Iterator[_Tracked]:
        return (one for slot in list(self._jobs.values()) for one in slot)

    def _key(self, item: Json) -> _Key | None:
        namespace, owner = meta(item, "namespace"), objects.owner_of(item)
        return (namespace, owner, *objects.job_of(item)) if owner and namespace in self.rules.namespaces else None

    def _slot(self, item: Json) -> list[_Tracked]:
        key = self._key(item)
        return self._jobs.get(key, []) if key is not None else []

    def _home(self, pod: Json, now: float) -> _Tracked | None:
        """The job that a pod belongs to: of several of one name the newest that was there before the pod."""
        key = self._key(pod)
        if key is None:
            return None
        slot = self._jobs.setdefault(key, [])
        known = [one for one in slot if meta(pod, "uid") in one.live]
        # A pod cannot be older than its job. An older pod belongs to the job that had the name before.
        fit = known or [one for one in slot if one.job is None or one.created <= meta(pod, "creationTimestamp")]
        if not fit:
            slot.append(_Tracked(born=now))
            return slot[-1]
        return max(fit, key=lambda one: (one.job is not None, one.created))


def _remove(one: _Tracked, now: float) -> None:
    one.removed = Removed(now, *objects.stopped_by(one.job or {}))


def _ends(one: _Tracked, now: float) -> Iterator[End]:
    """The end of a job that failed too often. It is repeated until the job has ended."""
    if one.job is not None and one.removed is None and is_spent(one.job, one.attempts) and now >= one.end_at:
        one.end_at = now + WRITE_S
        yield End(one.job)


def _lost(one: _Tracked, now: float) -> bool:
    """Whether these are pods of a job that was never seen."""
    return one.job is None and not one.live and now - one.born > SETTLE_S


def _resource(job: Json) -> str:
    """Returns GROUP/RESOURCE of an object, or PODS for a pod."""
    group = text(job.get("apiVersion")).rpartition("/")[0]
    resource = f"{text(job.get('kind')).lower()}s"
    return f"{group}/{resource}" if group else resource


def tail(lines: str, most: int) -> str:
    """The last `most` bytes, from the start of a line where there is one."""
    content = lines.encode()
    if len(content) <= most:
        return lines
    cut = content[-most:]
    _, found, rest = cut.partition(b"\n")
    return (rest if found and rest else cut).decode(errors="ignore")
