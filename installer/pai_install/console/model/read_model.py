"""All watches of one replica, and what routes ask of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Any

from pai_install.app.job_quota import states_of_seen
from pai_install.app.node_health import NodeGpus, node_findings, nodes_with_gpus
from pai_install.checks.finding import Finding
from pai_install.cluster.client import ClusterClient, Select
from pai_install.console.caller import Caller, Clients
from pai_install.console.errors import not_ready
from pai_install.console.memory import keep_loaded_objects
from pai_install.console.model.jobs import JobsModel
from pai_install.console.model.profiles import read_profile
from pai_install.console.model.recent import Recent
from pai_install.console.model.records import RecordSink
from pai_install.console.model.shelf import Shelf
from pai_install.console.model.visibility import Visibility
from pai_install.console.model.watching import KindWatch, Sink
from pai_install.errors import PaiError
from pai_install.jobs.anomalies import abnormal
from pai_install.jobs.compile import names
from pai_install.jobs.history import selector
from pai_install.jobs.state import JobState
from pai_install.jobs.warning_events import FIELDS
from pai_install.kube.objects import JsonObject
from pai_install.profile.model import ClusterProfile
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.usage import Usage, kinds_of, usage_of
from pai_install.scheduling.job_kinds import JobKind, queued_at

_LOG = logging.getLogger("pai_install.console")
NODES = "nodes"
_READS = "the console reads the cluster"
# seconds until objects that changed meanwhile are taken out of the searches for garbage, too
_KEEP_S = 3600.0
_PROFILE_S, _REFRESH_S, _USAGE_S, _ABNORMAL_S = 15.0, 0.5, 5.0, 15.0


@dataclass
class _Contents:
    """The objects of one set of kinds. It is replaced as a whole when the scheduler or the groups change.

    namespaces: of groups, with records of deleted jobs.
    """

    namespaces: tuple[str, ...]
    kinds: tuple[JobKind, ...]
    jobs: JobsModel
    shelves: Mapping[str, Shelf]
    watches: tuple[KindWatch, ...]


@dataclass
class ReadModel:
    """Objects of the cluster in memory. Start it once. Several threads may ask it."""

    clients: Clients
    clock: Callable[[], float] = time.monotonic
    _profile: ClusterProfile | None = None
    _contents: _Contents | None = None
    _ended: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.visibility = Visibility(self.clients, self.clock)
        self._usage = Recent(self._use, _USAGE_S, self.clock)
        self._counted = Recent(self._count_jobs, _USAGE_S, self.clock)
        self._gpus = Recent(self._find_gpus, _USAGE_S, self.clock)
        self._findings = Recent(self._find_findings, _USAGE_S, self.clock)
        self._abnormal = Recent(self._find_abnormal, _ABNORMAL_S, self.clock)

    def start(self) -> None:
        """Reads in threads that end with the process."""
        for one in self._recent:
            one.renewed = True
        Thread(target=self._run, name="model", daemon=True).start()

    def stop(self) -> None:
        """Ends the threads soon."""
        self._ended.set()
        for watch in self._contents.watches if self._contents is not None else ():
            watch.ended.set()

    @property
    def profile(self) -> ClusterProfile:
        """The site. Raises RestError before the first reading."""
        if self._profile is None:
            raise not_ready(_READS)
        return self._profile

    @property
    def jobs(self) -> JobsModel:
        """The jobs. Raises RestError before the first reading."""
        return self._ready.jobs

    @property
    def kinds(self) -> tuple[JobKind, ...]:
        """Kinds of jobs that the scheduler queues."""
        return self._ready.kinds

    @property
    def is_ready(self) -> bool:
        """Whether all kinds were listed once."""
        found = self._contents
        return found is not None and all(watch.ready for watch in found.watches)

    @property
    def age(self) -> float:
        """Seconds for which a kind may be out of date. 0 while all watches are alive."""
        broken = [it.broken_since for it in self._ready.watches if it.broken_since is not None]
        return self.clock() - min(broken) if broken else 0.0

    def visible(self, caller: Caller) -> frozenset[str] | None:
        """Namespaces whose jobs a caller may list, None for all. Raises PaiError and RestError."""
        spaces = dict.fromkeys(group.namespace for group in self.profile.groups)
        return self.visibility.namespaces(caller, self.kinds[0], spaces)

    def nodes(self) -> list[JsonObject]:
        """Reduced nodes."""
        return list(self._ready.shelves[NODES].objects())

    def pods(self) -> list[JsonObject]:
        """Reduced pods of all namespaces that have not ended."""
        return list(self._ready.jobs.pods.unfinished())

    def usage(self) -> Usage:
        """The use of virtual clusters, some seconds old. Raises PaiError for a site without any."""
        return self._usage.get()

    def counted_jobs(self) -> Mapping[str, JobState]:
        """Jobs by the names that the scheduler counts them by, some seconds old."""
        return self._counted.get()

    def gpus(self) -> tuple[NodeGpus, ...]:
        """Nodes with their GPUs, some seconds old."""
        return self._gpus.get()

    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the nodes, the worst first, some seconds old."""
        return self._findings.get()

    def abnormal_jobs(self) -> tuple[JobState, ...]:
        """Jobs that hold GPUs for long or for nothing, the longest first."""
        return self._abnormal.get()

    def forget(self) -> None:
        """The next request computes all values again."""
        for one in self._recent:
            one.forget()

    @property
    def _recent(self) -> tuple[Recent[Any], ...]:
        return self._usage, self._counted, self._gpus, self._findings, self._abnormal

    def _use(self) -> Usage:
        scheduling, shelves = self.profile.require_scheduling(), self._ready.shelves
        answers = [list(shelves[kind].unfinished()) for kind in kinds_of(scheduling.backend)]
        return usage_of(scheduling, answers, self.profile.absent)

    def _count_jobs(self) -> Mapping[str, JobState]:
        return dict(states_of_seen(self.usage().jobs, self.jobs.unfinished()))

    def _find_gpus(self) -> tuple[NodeGpus, ...]:
        jobs = self.jobs
        return nodes_with_gpus(self.profile.require_scheduling(), self.nodes(), jobs.other_pods(), jobs.unfinished())

    def _find_findings(self) -> tuple[Finding, ...]:
        return node_findings(self.profile.require_scheduling(), self.nodes())

    def _find_abnormal(self) -> tuple[JobState, ...]:
        return abnormal(self.jobs.unfinished(), datetime.now(UTC), self.profile.limits_of)

    def load(self) -> None:
        """Reads the profile, and starts watches for its kinds. Raises PaiError."""
        profile = read_profile(self.clients.own())
        if profile is None:
            _LOG.warning("the cluster has no profile of the site: run pai-install apply")
            return
        self._profile = profile
        if profile.scheduling is None:
            return
        kinds = queued_at(profile.scheduling.backend, operator=profile.training_operator)
        namespaces = tuple(dict.fromkeys(group.namespace for group in profile.groups))
        if self._contents is None or (self._contents.kinds, self._contents.namespaces) != (kinds, namespaces):
            before, self._contents = self._contents, self._watching(profile, kinds, namespaces)
            for watch in before.watches if before is not None else ():
                watch.ended.set()
            for watch in self._contents.watches:
                watch.start()

    def _run(self) -> None:
        due = keep_due = 0.0
        while not self._ended.wait(_REFRESH_S):
            try:
                if self.clock() >= due:
                    due = self.clock() + _PROFILE_S
                    self.load()
                if self._contents is not None:
                    self._contents.jobs.refresh()
                if self.is_ready:
                    for one in self._recent:
                        one.refresh()
                    if self.clock() >= keep_due:
                        keep_due = self.clock() + _KEEP_S
                        keep_loaded_objects()
            except PaiError as error:
                _LOG.warning("cannot read the profile of the site: %s", error.message)
            except Exception:
                _LOG.exception("the model failed")

    @property
    def _ready(self) -> _Contents:
        if self._contents is None or not self.is_ready:
            raise not_ready(_READS)
        return self._contents

    def _watching(self, profile: ClusterProfile, kinds: tuple[JobKind, ...], namespaces: tuple[str, ...]) -> _Contents:
        scheduling = profile.require_scheduling()
        jobs, status = JobsModel(), backend_of(scheduling.backend).status_resource
        shelves = {"pods": jobs.pods, "events": jobs.events, NODES: Shelf(NODES, lambda _uid, _item: None)}
        shelves |= {kind.full_name: jobs.shelf_of_jobs(kind.full_name) for kind in kinds}
        if status:
            shelves[status] = jobs.shelf_of_status(status)
        for kind in kinds_of(scheduling.backend):
            shelves.setdefault(kind, Shelf(kind, lambda _uid, _item: None))
        selects = {
            "events": Select(("events",), fields=FIELDS),
            **{kind.full_name: Select((kind.full_name,), labels=names.USER) for kind in kinds},
        }
        sinks: dict[Select, Sink] = {selects.get(kind, Select((kind,))): shelf for kind, shelf in shelves.items()}
        # the console reads no other ConfigMaps
        sinks |= {Select(("configmaps",), it, selector()): RecordSink(jobs.put_record) for it in namespaces}
        own: Callable[[], ClusterClient] = self.clients.own
        return _Contents(
            namespaces, kinds, jobs, shelves, tuple(KindWatch(it, own, sink) for it, sink in sinks.items())
        )
