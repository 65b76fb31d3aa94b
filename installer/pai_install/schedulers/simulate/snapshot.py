"""What the API says of machines, pods and the scheduler's objects -> the cluster as a job would find it. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pai_install.kube.objects import (
    JsonObject,
    child,
    conditions,
    number,
    quantities,
    quantity,
    rows,
    state_of,
    text,
    words,
)
from pai_install.schedulers.hived import usage as hived
from pai_install.schedulers.kubernetes import usage as default
from pai_install.schedulers.kueue import usage as kueue
from pai_install.schedulers.simulate.manifest import CELLS
from pai_install.schedulers.simulate.model import Amounts, ClusterNow, MachineNow, RunningJob
from pai_install.schedulers.volcano import usage as volcano
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.scheduling.usage.amounts import asked_by_pod
from pai_install.scheduling.usage.pods import Whose, alive, full_name, node_of

_JOBSET = "jobset.sigs.k8s.io/jobset-name"
_KINDS: Mapping[Backend, tuple[str, ...]] = {
    "kueue": (kueue.KINDS[1],),
    "volcano": (volcano.KINDS[0],),
    "hived": (),
    "default": (),
}
Found = Mapping[str, Sequence[JsonObject]]
_Sums = defaultdict[str, defaultdict[str, float]]


def snapshot_kinds(backend: Backend) -> tuple[str, ...]:
    """What to ask the cluster for, as kubectl names it, in all namespaces."""
    return ("nodes", "pods", *_KINDS[backend])


def snapshot_of(scheduling: Scheduling, answers: Sequence[Sequence[JsonObject]]) -> ClusterNow:
    """answers: the objects of each of `snapshot_kinds`."""
    found = dict(zip(snapshot_kinds(scheduling.backend), answers, strict=True))
    found["pods"] = alive(found["pods"])
    spaces = _sums()
    for pod in found["pods"]:
        _add(spaces[text(child(pod, "metadata").get("namespace"))], asked_by_pod(child(pod, "spec")))
    jobs, waiting = _JOBS[scheduling.backend](scheduling, found)
    return ClusterNow(tuple(_machines(scheduling, found)), tuple(jobs), spaces, waiting)


def _sums() -> _Sums:
    return defaultdict(lambda: defaultdict(float))


def _add(total: defaultdict[str, float], asked: Amounts) -> None:
    for name, amount in asked.items():
        total[name] += amount


def _machines(scheduling: Scheduling, found: Found) -> Iterator[MachineNow]:
    """Those of the site; one that is no node of the cluster is there, and takes no pods."""
    nodes = {text(child(node, "metadata").get("name")): node for node in found["nodes"]}
    used = _sums()
    for pod in found["pods"]:
        _add(used[node_of(pod)], asked_by_pod(child(pod, "spec")))
    for one in hived.hived_pods(found["pods"]) if scheduling.backend == "hived" else ():
        used[one.node][CELLS] += one.units
    for name, sku in scheduling.skus.items():
        node = nodes.get(name, {})
        cells = {CELLS: float(scheduling.supply[sku].units)} if scheduling.backend == "hived" else {}
        whole = {**quantities(child(node, "status").get("allocatable")), **cells}
        free = {key: max(0.0, amount - used[name].get(key, 0.0)) for key, amount in whole.items()}
        taints = [
            (text(row.get("key")), text(row.get("value")), text(row.get("effect")))
            for row in rows(child(node, "spec").get("taints"))
        ]
        labels = words(child(node, "metadata").get("labels"))
        yield MachineNow(name, sku, whole, free, labels, tuple(taints), _away(node))


def _away(node: JsonObject) -> str:
    if not node:
        return "is no node of the cluster"
    if child(node, "spec").get("unschedulable"):
        return "is cordoned"
    ready = state_of(conditions(child(node, "status").get("conditions")), "Ready")
    return "" if ready is True else "is not Ready"


def _job_name(pod: JsonObject) -> str:
    """As Kueue's Workload and people call it: of pods of a JobSet, that."""
    metadata = child(pod, "metadata")
    jobset = words(metadata.get("labels")).get(_JOBSET)
    return f"{text(metadata.get('namespace'))}/{jobset}" if jobset else full_name(pod)


def _placed(pods: Iterable[JsonObject]) -> Mapping[str, _Sums]:
    """Job -> machine -> what its pods have there."""
    found: defaultdict[str, _Sums] = defaultdict(_sums)
    for pod in pods:
        if node_of(pod):
            _add(found[_job_name(pod)][node_of(pod)], asked_by_pod(child(pod, "spec")))
    return found


_Jobs = tuple[list[RunningJob], Mapping[str, int]]


def _kueue(_scheduling: Scheduling, found: Found) -> _Jobs:
    placed, jobs, waiting = _placed(found["pods"]), [], Counter[str]()
    for workload in found[_KINDS["kueue"][0]]:
        spec, status = child(workload, "spec"), child(workload, "status")
        states = conditions(status.get("conditions"))
        admission = child(status, "admission")
        if state_of(states, "Finished") is True:
            continue
        if state_of(states, "QuotaReserved") is not True:
            waiting[text(spec.get("queueName"))] += spec.get("active") is not False
            continue
        uses: defaultdict[tuple[str, str], float] = defaultdict(float)
        for pods in rows(admission.get("podSetAssignments")):
            usage = child(pods, "resourceUsage")
            for resource, flavor in words(pods.get("flavors")).items():
                uses[flavor, resource] += quantity(usage.get(resource)) or 0.0
        name = full_name(workload)
        cluster, priority = text(admission.get("clusterQueue")), number(spec.get("priority")) or 0
        since = _since(status.get("conditions"), "QuotaReserved")
        jobs.append(RunningJob(cluster, name, priority, placed.get(name, {}), dict(uses), since))
    return jobs, waiting


def _since(states: object, kind: str) -> str:
    return next((text(row.get("lastTransitionTime")) for row in rows(states) if row.get("type") == kind), "")


def _by_pods(pods: Sequence[JsonObject], whose: Whose) -> _Jobs:
    """Jobs that have a machine for a pod; what they ask for counts, of all pods."""
    of: defaultdict[tuple[str, str], list[JsonObject]] = defaultdict(list)
    for pod in pods:
        if (cluster := whose(pod)) is not None:
            of[cluster, _job_name(pod)].append(pod)
    jobs, waiting = [], Counter[str]()
    for (cluster, name), members in of.items():
        if not any(map(node_of, members)):
            waiting[cluster] += 1
            continue
        uses: defaultdict[tuple[str, str], float] = defaultdict(float)
        for pod in members:
            for resource, amount in asked_by_pod(child(pod, "spec")).items():
                uses["", resource] += amount
        priority = max(number(child(pod, "spec").get("priority")) or 0 for pod in members)
        since = min(text(child(pod, "status").get("startTime")) for pod in members)
        jobs.append(RunningJob(cluster, name, priority, _placed(members)[name], dict(uses), since))
    return jobs, waiting


def _volcano(_scheduling: Scheduling, found: Found) -> _Jobs:
    groups = found[_KINDS["volcano"][0]]
    jobs, _ = _by_pods(found["pods"], volcano.queue_of(groups))
    phases = [(text(child(it, "spec").get("queue")), text(child(it, "status").get("phase"))) for it in groups]
    return jobs, Counter(queue for queue, phase in phases if phase in ("", "Pending", "Inqueue"))


def _default(scheduling: Scheduling, found: Found) -> _Jobs:
    owners = default.owners_of(scheduling)
    return _by_pods(found["pods"], lambda pod: owners.get(text(child(pod, "metadata").get("namespace"))))


def _hived(scheduling: Scheduling, found: Found) -> _Jobs:
    of: defaultdict[tuple[str, str], list[hived.HivedPod]] = defaultdict(list)
    for one in hived.hived_pods(found["pods"]):
        of[one.cluster, one.job].append(one)
    jobs, waiting = [], Counter[str]()
    for (cluster, name), members in of.items():
        placed = [it for it in members if it.node in scheduling.skus]
        if not placed:
            waiting[cluster] += 1
            continue
        on, uses = _sums(), defaultdict[tuple[str, str], float](float)
        for it in placed:
            on[it.node][CELLS] += it.units
            uses[scheduling.skus[it.node], CELLS] += it.units
        lowest = any(it.borrows for it in members)
        jobs.append(RunningJob(cluster, name, placed[0].priority, on, dict(uses), borrows=lowest))
    return jobs, waiting


_JOBS: Mapping[Backend, Callable[[Scheduling, Found], _Jobs]] = {
    "kueue": _kueue,
    "volcano": _volcano,
    "default": _default,
    "hived": _hived,
}
