"""The jobs of the model: views by UID, recomputed where an object of the job changed, with indexes for counts."""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection
from operator import attrgetter
from threading import RLock

from pai_install.console.model.query import JobQuery, page
from pai_install.console.model.shelf import Shelf
from pai_install.console.model.view import JobView
from pai_install.jobs.compile import names
from pai_install.jobs.state import JobState, states_of
from pai_install.jobs.warning_events import subjects_of, subjects_of_job
from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.scheduling.job_kinds import KINDS, POD, kind_of
from pai_install.scheduling.usage.amounts import requests_of_pod

_LOG = logging.getLogger("pai_install.console")
# namespace, kind, name in Kubernetes
JobKey = tuple[str, str, str]
_place = attrgetter("place")
PODS, EVENTS = "pods", "events"


class JobsModel:
    """Existing jobs, and records of deleted ones. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = RLock()
        self.pods = Shelf(PODS, self._pod_changed)
        self.events = Shelf(EVENTS, self._event_changed)
        self._jobs: dict[JobKey, tuple[Shelf, str]] = {}
        self._keys: dict[str, set[JobKey]] = {}
        self._pods: defaultdict[JobKey, set[str]] = defaultdict(set)
        self._said: defaultdict[JobKey, dict[str, Shelf]] = defaultdict(dict)
        self._others: set[str] = set()
        self._warned: dict[str, tuple[str, ...]] = {}
        self._subjects: dict[str, tuple[str, ...]] = {}
        self._warnings: defaultdict[str, set[str]] = defaultdict(set)
        self._dirty: set[JobKey] = set()
        self._views: dict[str, JobView] = {}
        self._existing: dict[JobKey, str] = {}
        self._alive: set[str] = set()
        self._records: dict[str, str] = {}
        self._recorded: dict[str, JobView] = {}
        self._order: list[JobView] = []
        self._named: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._counts: Counter[tuple[str, str, str, str]] = Counter()

    def shelf_of_jobs(self, kind: str) -> Shelf:
        """A shelf for jobs of a kind."""
        shelf = Shelf(kind, lambda uid, item: self._job_changed(shelf, uid, item))
        return shelf

    def shelf_of_status(self, kind: str) -> Shelf:
        """Objects of the scheduler with the states of jobs."""
        shelf = Shelf(kind, lambda uid, item: self._status_changed(shelf, uid, item))
        return shelf

    def put_record(self, name: str, job: JobState | None) -> None:
        """A record of a deleted job, or None for a record that is deleted. name: NAMESPACE/NAME of the ConfigMap."""
        with self._lock:
            before = self._records.pop(name, "")
            self._recorded.pop(before, None)
            if job is not None:
                self._records[name] = job.uid
                self._recorded[job.uid] = JobView.of(job, name.partition("/")[2])
            for uid in {before, job.uid if job is not None else ""} - {""} - self._alive:
                self._replace(uid, self._recorded.get(uid))

    def refresh(self) -> None:
        """Recomputes jobs with changes."""
        with self._lock:
            while self._dirty:
                self._recompute(self._dirty.pop())

    def find(self, user: str, name: str, namespaces: Collection[str] | None) -> tuple[JobView, ...]:
        """Jobs of a user by their name in the file or in Kubernetes. namespaces: visible ones, None for all."""
        with self._lock:
            self.refresh()
            found = [self._views[uid] for uid in self._named.get((user, name), ())]
        return tuple(one for one in found if namespaces is None or one.job.namespace in namespaces)

    def count(self, query: JobQuery, namespaces: Collection[str] | None) -> int:
        """The number of selected jobs in visible namespaces."""
        with self._lock:
            self.refresh()
            if not query.countable:
                return sum(query.selects(view) for view in self._visible(namespaces))
            return sum(
                number
                for (namespace, user, cluster, state), number in self._counts.items()
                if (namespaces is None or namespace in namespaces)
                and (not query.users or user in query.users)
                and (not query.clusters or cluster in query.clusters)
                and (not query.states or state in query.states)
            )

    def page(self, query: JobQuery, namespaces: Collection[str] | None) -> tuple[JobView, ...]:
        """The selected jobs of a page."""
        with self._lock:
            self.refresh()
            views = self._order.copy()
        return page(query, views, namespaces) if query.limit else ()

    def unfinished(self) -> tuple[JobState, ...]:
        """All jobs that have not ended."""
        with self._lock:
            self.refresh()
            return tuple(view.job for view in self._views.values() if not view.job.ended)

    def of_namespace(self, namespace: str) -> tuple[JobState, ...]:
        """All jobs of a namespace."""
        with self._lock:
            self.refresh()
            return tuple(view.job for view in self._visible({namespace}))

    def other_pods(self) -> list[JsonObject]:
        """Pods of no user that have devices."""
        with self._lock:
            return [pod for uid in self._others if (pod := self.pods.get(uid)) is not None]

    def status_of(self, job: JobState) -> list[JsonObject]:
        """The scheduler's objects about a job."""
        with self._lock:
            return self._status_at((job.namespace, job.kind.name, job.label))

    def __len__(self) -> int:
        with self._lock:
            self.refresh()
            return len(self._views)

    def _visible(self, namespaces: Collection[str] | None) -> list[JobView]:
        return [view for view in self._order if namespaces is None or view.job.namespace in namespaces]

    def _job_changed(self, shelf: Shelf, uid: str, item: JsonObject | None) -> None:
        with self._lock:
            if item is None:
                self._forget_job(uid)
                return
            kind, metadata = kind_of(item), child(item, "metadata")
            if kind is None or any(row.get("controller") for row in rows(metadata.get("ownerReferences"))):
                return
            key = (text(metadata.get("namespace")), kind.name, text(metadata.get("name")))
            self._keys[uid] = {key}
            self._jobs[key] = (shelf, uid)
            self._subjects[uid] = tuple(it for it in subjects_of_job(item) if "/" in it)
            for part in self._subjects[uid]:
                self._keys[part] = {key}
            self._dirty.add(key)

    def _forget_job(self, uid: str) -> None:
        for part in self._subjects.pop(uid, ()):
            self._keys.pop(part, None)
        for key in self._keys.pop(uid, ()):
            if self._jobs.get(key, (None, ""))[1] == uid:
                del self._jobs[key]
                self._dirty.add(key)

    def _pod_changed(self, uid: str, item: JsonObject | None) -> None:
        with self._lock:
            for key in self._keys.get(uid, set()):
                self._pods[key].discard(uid)
                self._dirty.add(key)
            self._others.discard(uid)
            if item is None:
                self._forget_job(uid)
                return
            labels = child(item, "metadata", "labels")
            if names.USER not in labels:
                if any("/" in resource for resource in requests_of_pod(child(item, "spec"))):
                    self._others.add(uid)
                return
            namespace = text(child(item, "metadata").get("namespace"))
            marked = ((kind.name, text(labels.get(kind.marks.job))) for kind in KINDS if kind.marks is not None)
            keys = {(namespace, kind, label) for kind, label in marked if label}
            if not any(row.get("controller") for row in rows(child(item, "metadata").get("ownerReferences"))):
                own = (namespace, POD.name, text(child(item, "metadata").get("name")))
                self._jobs[own] = (self.pods, uid)
                keys.add(own)
            for key in keys:
                self._pods[key].add(uid)
            self._keys[uid] = keys
            self._dirty |= keys

    def _status_changed(self, shelf: Shelf, uid: str, item: JsonObject | None) -> None:
        with self._lock:
            for key in self._keys.pop(uid, ()):
                self._said[key].pop(uid, None)
                self._dirty.add(key)
            if item is None:
                return
            metadata = child(item, "metadata")
            namespace = text(metadata.get("namespace"))
            owners = rows(metadata.get("ownerReferences"))[:16]
            keys = {(namespace, text(row.get("kind")), text(row.get("name"))) for row in owners}
            for key in keys:
                self._said[key][uid] = shelf
            self._keys[uid] = keys
            self._dirty |= keys

    def _event_changed(self, uid: str, item: JsonObject | None) -> None:
        with self._lock:
            before, now = self._warned.pop(uid, ()), subjects_of(item) if item is not None else ()
            for about in before:
                self._warnings[about].discard(uid)
            if now:
                self._warned[uid] = now
            for about in now:
                self._warnings[about].add(uid)
            for about in (*before, *now):
                self._dirty |= self._keys.get(about, set())
                if not self._warnings.get(about):
                    self._warnings.pop(about, None)

    def _recompute(self, key: JobKey) -> None:
        view = None
        try:
            view = self._computed(key)
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
            _LOG.exception("job %s/%s cannot be read", key[0], key[2])
        uid = view.job.uid if view is not None else ""
        before = self._existing.pop(key, "")
        if before and before != uid:
            self._alive.discard(before)
            self._replace(before, self._recorded.get(before))
        if view is not None and uid:
            self._existing[key] = uid
            self._alive.add(uid)
            self._replace(uid, view)
        for index in (self._pods, self._said):
            if not index.get(key):
                index.pop(key, None)

    def _computed(self, key: JobKey) -> JobView | None:
        shelf, uid = self._jobs.get(key, (None, ""))
        job = shelf.get(uid) if shelf is not None else None
        if job is None:
            return None
        pods = [pod for one in self._pods.get(key, ()) if (pod := self.pods.get(one)) is not None]
        subjects = {*subjects_of_job(job), *self._pods.get(key, ())}
        about = {it for one in subjects for it in self._warnings.get(one, ())}
        events = [event for it in about if (event := self.events.get(it))]
        jobs = [] if shelf is self.pods else [job]
        found = states_of(jobs, pods, self._status_at(key), events)
        return next((JobView.of(one) for one in found if one.uid == uid), None)

    def _status_at(self, key: JobKey) -> list[JsonObject]:
        found = (shelf.get(uid) for uid, shelf in self._said.get(key, {}).items())
        return [one for one in found if one is not None]

    def _replace(self, uid: str, view: JobView | None) -> None:
        """Puts a view into all indexes in place of an earlier one."""
        before = self._views.pop(uid, None)
        if before is not None:
            self._index(before, -1)
            del self._order[bisect_left(self._order, before.place, key=_place)]
        if view is not None:
            self._views[uid] = view
            self._index(view, 1)
            insort(self._order, view, key=_place)

    def _index(self, view: JobView, step: int) -> None:
        job = view.job
        place = (job.namespace, job.user, job.cluster, view.state)
        self._counts[place] += step
        if not self._counts[place]:
            del self._counts[place]
        for name in {job.name, job.label}:
            named = self._named[job.user, name]
            (named.add if step > 0 else named.discard)(job.uid)
            if not named:
                del self._named[job.user, name]
