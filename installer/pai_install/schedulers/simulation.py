"""A job that is not submitted yet beside the quotas: whether it fits, borrows, preempts, waits, or can never run. Pure.

The answer is the same for all schedulers: it counts units of quota (devices, or cores where a machine type has none),
not places on machines. Each scheduler decides by itself which jobs it preempts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pai_install.jobs.capacity import Capacity, InstanceRequest
from pai_install.json_schema import Count
from pai_install.profile.model import ClusterProfile
from pai_install.schedulers.hived.placement import PodGroup, refusal
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.admission import allowed, clusters_at
from pai_install.scheduling.amounts import CPU, MEMORY, devices_of, pinned
from pai_install.scheduling.job_queue import leaf_types
from pai_install.scheduling.job_request import JobRequest, PodRequest
from pai_install.scheduling.model import PRIORITIES, Scheduling, Share, Supply, VirtualCluster
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.scheduling.usage.amounts import resource_of, units_of
from pai_install.scheduling.usage.model import UnfinishedJob, Use

# fits: within the guarantee. borrows: with idle quota of others. preempts: others return what they borrowed, or jobs
# of lower priority end. waits: for quota in use. never: more than there is. refused: by the API server.
Outcome = Literal["fits", "borrows", "preempts", "waits", "never", "refused"]
_ORDER: tuple[Outcome, ...] = ("fits", "borrows", "preempts", "waits")


@dataclass(frozen=True, slots=True)
class QuotaState:
    """Units of a machine type for one virtual cluster. requested: by the job. idle: of all, now.

    borrowable: beyond the guarantee, now. preemptible: of its own jobs with a lower priority.
    """

    sku: str
    requested: Count
    guaranteed: Count
    used: Count
    borrowed: Count
    idle: Count
    borrowable: Count
    preemptible: Count


@dataclass(frozen=True, slots=True)
class Simulation:
    """The answer. holders: jobs that use the same quota, those of the own virtual cluster first.

    notes: what the answer takes for granted.
    """

    request: JobRequest
    outcome: Outcome
    reasons: tuple[str, ...] = ()
    quotas: tuple[QuotaState, ...] = ()
    holders: tuple[UnfinishedJob, ...] = ()
    notes: tuple[str, ...] = ()


def simulate(profile: ClusterProfile, rules: QuotaRules, usage: Usage, request: JobRequest) -> Simulation:
    """Judges one job. rules: of the site's scheduler."""
    scheduling = profile.require_scheduling()
    request, notes = _with_defaults(scheduling, request)
    refusals = tuple(_refusals(scheduling, request))
    if refusals:
        return Simulation(request, "refused", refusals, notes=notes)
    cluster = scheduling.cluster(request.queue.cluster)
    judge = _Judge(scheduling, rules, usage, cluster, _priority_of(request))
    excess = tuple(_excess(profile, judge, request))
    if excess:
        return Simulation(request, "never", excess, notes=notes)
    quotas = judge.quotas(request.pods)
    outcomes = {one.sku: judge.outcome(one) for one in quotas}
    # A job starts as a whole, so its slowest role decides.
    worst = max(outcomes.values(), key=_ORDER.index, default=_ORDER[0])
    reasons = tuple(judge.reason(one) for one in quotas if outcomes[one.sku] == worst)
    notes = (*notes, *(str(one) for one in usage.unmet if one.sku in outcomes))
    return Simulation(request, worst, reasons, quotas, tuple(judge.holders(outcomes)), notes)


def _with_defaults(scheduling: Scheduling, request: JobRequest) -> tuple[JobRequest, tuple[str, ...]]:
    """The request with the only virtual cluster of its namespace, and with the first namespace of its cluster."""
    queue, notes = request.queue, []
    at = clusters_at(scheduling).get(request.namespace, ())
    if not queue.cluster and len(at) == 1:
        queue = replace(queue, cluster=at[0].name)
        notes.append(f"no virtual cluster is named: {queue.cluster}, the only one of the namespace, is assumed")
    known = _known(scheduling, queue.cluster)
    namespace = request.namespace
    if known is not None and not namespace and known.namespaces:
        namespace = known.namespaces[0]
        notes.append(f"no namespace is named: {namespace} is assumed")
    if known is not None and not queue.priority and queue.number is None:
        queue = replace(queue, priority=known.usual)
        notes.append(f"no priority is named: {known.usual}, the usual one of {known.name}, is assumed")
    return replace(request, namespace=namespace, queue=queue), tuple(notes)


def _known(scheduling: Scheduling, name: str) -> VirtualCluster | None:
    return next((it for it in scheduling.clusters if it.name == name), None)


def _refusals(scheduling: Scheduling, request: JobRequest) -> Iterator[str]:
    queue, known = request.queue, _known(scheduling, request.queue.cluster)
    if known is None:
        names = ", ".join(it.name for it in scheduling.clusters)
        yield f"{queue.cluster or 'no virtual cluster'} is named: the site has {names} (use --vc)"
        return
    if request.namespace not in known.namespaces:
        names = ", ".join(known.namespaces) or "none"
        yield f"namespace {request.namespace or '(none)'} may not use {known.name}: its namespaces are {names}"
    if scheduling.backend not in request.kind.queued:
        yield f"{scheduling.backend} does not queue {request.kind.shown}"
    number = _priority_of(request)
    if number > PRIORITIES[known.highest] or (queue.number is None and queue.priority not in allowed(known)):
        yield f"{known.name} allows the priorities {', '.join(allowed(known))}, not {queue.priority or number}"


def _priority_of(request: JobRequest) -> int:
    queue = request.queue
    if queue.number is not None:
        return queue.number
    return next((value for name, value in PRIORITIES.items() if name == queue.priority), 0)


def _excess(profile: ClusterProfile, judge: _Judge, request: JobRequest) -> Iterator[str]:
    """Why machines could never hold the job, all of them idle."""
    borrows = judge.is_opportunistic or not judge.rules.lends_to_oppo
    capacity = Capacity(profile, judge.cluster, borrows, judge.rules)
    requests = [_instance_request(judge, one) for one in request.pods]
    misfits = [one for request_of_pod in requests if (one := capacity.refuses_instance(request_of_pod)) is not None]
    gang = None if misfits else capacity.refuses_gang(requests)
    found = [one.message for one in (*misfits, *([gang] if gang is not None else []))]
    yield from found or _without_cells(judge, request)


def _without_cells(judge: _Judge, request: JobRequest) -> Iterator[str]:
    """Why no cells of HiveD could ever hold pods that it places together."""
    scheduling = judge.scheduling
    if scheduling.backend != "hived":
        return
    groups: dict[tuple[str, str, str], Counter[int]] = {}
    for pods in request.pods:
        counted = groups.setdefault((pods.group or pods.role, pods.sku, pods.pin), Counter())
        counted[max(1, pods.cells)] += pods.count if pods.group else 1
    for (_, sku, pin), counted in groups.items():
        group = PodGroup(counted, leaf_types(scheduling.supply).get(sku, sku), pin)
        if why := refusal(scheduling, judge.cluster.name, group, opportunistic=judge.is_opportunistic):
            yield why


def _instance_request(judge: _Judge, pods: PodRequest) -> InstanceRequest:
    resources = devices_of(judge.scheduling)
    devices = pods.cells or int(sum(amount for name, amount in pods.resources.items() if name in resources))
    skus = [supply.sku for supply in judge.candidates(pods)] if pods.sku else []
    cpu, memory = pods.resources.get(CPU, 0.0), pods.resources.get(MEMORY, 0.0)
    sku = (skus or [pods.sku])[0] if pods.sku else None
    return InstanceRequest(pods.role, pods.count, devices, round(cpu * 1000), int(memory), sku)


@dataclass(frozen=True, slots=True)
class _Judge:
    scheduling: Scheduling
    rules: QuotaRules
    usage: Usage
    cluster: VirtualCluster
    priority: int

    @property
    def is_opportunistic(self) -> bool:
        """Whether the job has no guarantee, and lives on what is idle."""
        return self.rules.lends_to_oppo and self.priority == PRIORITIES["oppo"]

    def candidates(self, pods: PodRequest) -> Sequence[Supply]:
        """Machine types for a pod; those without devices first where it requests none."""
        leaves = leaf_types(self.scheduling.supply)
        named = [it for it in self.scheduling.supply.values() if pods.sku in ("", it.sku, leaves[it.sku])]
        devices = [it for it in named if it.resource and (it.resource in pods.resources or pods.cells)]
        return devices or sorted(named, key=lambda it: bool(it.resource))

    def quotas(self, pods: Sequence[PodRequest]) -> tuple[QuotaState, ...]:
        """The machine types that the job would use, the best for each role, large pods first."""
        # Large pods choose first: small ones fit in more places.
        requested: Counter[str] = Counter()
        for role in sorted(pods, key=lambda it: max(it.resources.values(), default=0.0), reverse=True):
            choices = {it.sku: _units(it, role) * role.count for it in self.candidates(role)}
            states = {sku: self._state(sku, requested[sku] + units) for sku, units in choices.items()}
            best = min(choices, key=lambda sku: _ORDER.index(self.outcome(states[sku])))
            requested[best] += choices[best]
        return tuple(self._state(sku, units) for sku, units in requested.items() if units)

    def _state(self, sku: str, requested: int) -> QuotaState:
        share = self.cluster.share(sku)
        units = share.units if share is not None and not self.is_opportunistic else 0
        use, idle = self._use(self.cluster, sku), self._idle(sku)
        left = max(0, units - use.kept)
        own = pinned(self.scheduling, self.cluster, sku).units
        return QuotaState(
            sku,
            requested,
            units + own,
            use.units,
            use.borrowed,
            idle + own - use.own,
            max(0, min(self._limit(share, use, idle), idle - left - self._reserved(sku))),
            self._lower(sku) if self.rules.preempts else 0,
        )

    def _limit(self, share: Share | None, use: Use, idle: int) -> int:
        """Units that the virtual cluster may still borrow, whether they are idle or not."""
        if self.is_opportunistic:
            return idle
        if share is None or not self.rules.has_limits:
            return 0
        return idle if share.borrow is None else max(0, share.borrow - use.borrowed)

    def _use(self, cluster: VirtualCluster, sku: str) -> Use:
        return self.usage.uses.get((cluster.name, sku), Use(cluster.name, sku, 0))

    def _idle(self, sku: str) -> int:
        """Units on machines that are pinned to no one."""
        taken = sum(use.units - use.own for (_, of), use in self.usage.uses.items() if of == sku)
        return max(0, self.scheduling.free(sku) - taken)

    def _reserved(self, sku: str) -> int:
        """Idle units that others do not lend."""
        if not self.rules.has_limits:
            return 0
        others = [(it, share) for it in self.scheduling.clusters if it != self.cluster and (share := it.share(sku))]
        return sum(max(0, share.units - share.lend - self._use(it, sku).kept) for it, share in others)

    def _lower(self, sku: str) -> int:
        resource = self.scheduling.supply[sku].resource
        return sum(
            job.units.get(resource, job.units.get("devices", 0))
            for job in self.usage.jobs
            if job.cluster == self.cluster.name and not job.waits and job.priority < self.priority
        )

    def outcome(self, quota: QuotaState) -> Outcome:
        """Of one machine type."""
        left = self._left(quota)
        if quota.requested <= min(left, quota.idle):
            return "fits"
        if quota.requested <= min(left + quota.borrowable, quota.idle):
            return "borrows"
        if (quota.requested <= left and self.rules.lends) or quota.requested <= left + quota.preemptible:
            return "preempts"
        return "waits"

    @staticmethod
    def _left(quota: QuotaState) -> int:
        return max(0, quota.guaranteed - (quota.used - quota.borrowed))

    def reason(self, quota: QuotaState) -> str:
        """The numbers behind an outcome."""
        return (
            f"{quota.sku}: requests {quota.requested}, {self._left(quota)} of {quota.guaranteed} guaranteed are left, "
            f"{quota.idle} idle, {quota.borrowable} to borrow"
        )

    def holders(self, skus: Mapping[str, Outcome]) -> Iterator[UnfinishedJob]:
        """Running jobs that use the same resources."""
        resources = {"devices", *(self.scheduling.supply[sku].resource for sku in skus)}
        running = [job for job in self.usage.jobs if not job.waits and resources & job.units.keys()]
        yield from sorted(
            running, key=lambda job: (job.cluster != self.cluster.name, job.cluster, job.priority, job.name)
        )


def _units(supply: Supply, pods: PodRequest) -> int:
    return pods.cells or units_of(supply, pods.resources.get(resource_of(supply), 0.0))
