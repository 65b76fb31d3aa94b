"""A cluster in memory whose scheduler keeps its promises, or breaks one of them, on a clock of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from pai_install.cluster.client import ApiError, Patch, Select
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.schedulers.self_test.model import GANG, PLACES, PREFIX
from pai_install.schedulers.self_test.objects import PRIORITIES, class_name

JOBS = ("Job", "JobSet")
MACHINES = ("w1", "w2")


@dataclass(frozen=True)
class Behaviour:
    """How the scheduler behaves. reclaim: how an owner's devices come back. requeue_s: 0 for never.

    gangs: False: pod by pod. alive: whether anything starts at all. down: whether other pods start without it.
    """

    alive: bool = True
    gangs: bool = True
    quota: bool = True
    lends: bool = True
    reclaim: Literal["whole", "pods", "late", "never"] = "whole"
    ranks: bool = True
    topology: bool = True
    requeue_s: float = 20.0
    replaces: bool = True
    returns: bool = True
    down: bool = True


@dataclass
class SimulatedPod:
    """A pod. since: when its state began."""

    name: str
    uid: str
    node: str = ""
    phase: str = "Pending"
    ending: bool = False
    since: float = 0.0


@dataclass
class SimulatedGang:
    """A job, with what the scheduler knows of it."""

    item: JsonObject
    size: int
    resource: str
    seconds: float
    rank: int
    born: int
    pods: list[SimulatedPod] = field(default_factory=list)
    admitted: bool = False
    since: float = 0.0
    back_at: float = 0.0
    evicted: bool = False

    @property
    def namespace(self) -> str:
        return str(self.item["metadata"]["namespace"])

    @property
    def queue(self) -> str:
        return str(self.item["metadata"]["labels"].get("kueue.x-k8s.io/queue-name", ""))

    @property
    def held(self) -> list[SimulatedPod]:
        return [pod for pod in self.pods if pod.node and pod.phase in ("Pending", "Running")]

    @property
    def kept(self) -> list[SimulatedPod]:
        return [pod for pod in self.held if not pod.ending]

    @property
    def done(self) -> bool:
        return sum(pod.phase == "Succeeded" for pod in self.pods) == self.size


def template_of(item: JsonObject) -> tuple[int, Mapping[str, Any]]:
    """Pods of a job, and their spec."""
    if item["kind"] == "Pod":
        return 1, item["spec"]
    if item["kind"] == "Job":
        return item["spec"]["parallelism"], item["spec"]["template"]["spec"]
    jobs = [row["template"]["spec"] for row in item["spec"]["replicatedJobs"]]
    return sum(job["parallelism"] for job in jobs), jobs[0]["template"]["spec"]


@dataclass
class SimulatedCluster:
    """Takes the objects of the self-test for Kueue.

    silent: looks that are not answered. refuses: a kind of object. held: the name of one that does not go.
    """

    behaviour: Behaviour = field(default_factory=Behaviour)
    objects: dict[Ref, dict[str, Any]] = field(default_factory=dict)
    gangs: dict[tuple[str, str], SimulatedGang] = field(default_factory=dict)
    devices: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in MACHINES})
    silent: int = 0
    refuses: str = ""
    stopped: bool = False
    held: str = ""
    at: float = 0.0
    log: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def clock(self) -> float:
        return self.at

    def pause(self, seconds: float) -> None:
        self.at += seconds
        self.tick()

    # what the test asks

    def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
        if self.silent and "pods" in selects[0].kinds:
            self.silent -= 1
            raise ApiError("no answer")
        return tuple(tuple(self._listed(select)) for select in selects)

    def _listed(self, select: Select) -> Iterator[JsonObject]:
        for kind in select.kinds:
            if kind == "nodes":
                yield from (
                    {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": dict(found)}}
                    for name, found in self.devices.items()
                )
            elif kind == "pods":
                yield from self._pods()
            elif kind.startswith("workloads"):
                yield {"status": {"conditions": [{"type": "QuotaReserved", "status": "False", "message": "no room"}]}}
            elif kind in ("jobs.batch", "jobsets.jobset.x-k8s.io"):
                wanted = "Job" if kind == "jobs.batch" else "JobSet"
                yield from (self._job(gang) for gang in self.gangs.values() if gang.item["kind"] == wanted)
            else:
                here = (item for ref, item in self.objects.items() if ref.kind == kind)
                yield from (item for item in here if _fits(item, select))

    def _pods(self) -> Iterator[JsonObject]:
        for gang in self.gangs.values():
            labels = {GANG: gang.item["metadata"]["labels"][GANG]}
            for pod in gang.pods:
                metadata = {"name": pod.name, "namespace": gang.namespace, "uid": pod.uid, "labels": labels}
                ending = {"deletionTimestamp": "now"} if pod.ending else {}
                status = {"phase": pod.phase}
                yield {
                    "kind": "Pod",
                    "metadata": {**metadata, **ending},
                    "spec": {"nodeName": pod.node},
                    "status": status,
                }

    @staticmethod
    def _job(gang: SimulatedGang) -> JsonObject:
        kind = {"Job": "Complete", "JobSet": "Completed"}[gang.item["kind"]]
        conditions = [{"type": kind, "status": "True"}] if gang.done else []
        return {**gang.item, "status": {"conditions": conditions}}

    def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        if taken := [item for item in objects if self.ref(item) in self.objects]:
            raise ApiError(f"{taken[0]['metadata']['name']} exists", reason="AlreadyExists")
        return self.apply(objects, force=True)

    def apply(self, objects: Sequence[JsonObject], *, force: bool = False) -> tuple[JsonObject, ...]:
        assert force
        for item in objects:
            if item["kind"] == self.refuses:
                raise ApiError(f"{self.refuses} is refused", reason="Forbidden")
            metadata = item["metadata"]
            if item["kind"] in (*JOBS, "Pod"):
                size, spec = template_of(item)
                (container,) = spec["containers"]
                (resource,) = container["resources"]["requests"]
                slept = container["command"][-1].split("sleep ")[1].split()[0]
                rank = next(
                    value for name, value in PRIORITIES.items() if class_name(name) == spec["priorityClassName"]
                )
                self.gangs[metadata["namespace"], metadata["name"]] = SimulatedGang(
                    item, size, resource, float(slept), rank, next(self.numbers)
                )
            else:
                self.objects[self.ref(item)] = dict(item)
        return tuple(objects)

    @staticmethod
    def ref(item: JsonObject) -> Ref:
        group, slash, _ = item["apiVersion"].partition("/")
        kind = item["kind"].lower()
        word = {"topology": "topologies", "priorityclass": "priorityclasses",
                "workloadpriorityclass": "workloadpriorityclasses"}.get(kind, f"{kind}s")  # fmt: skip
        return Ref(
            f"{word}.{group}" if slash else word, item["metadata"]["name"], item["metadata"].get("namespace", "")
        )

    def delete(self, refs: Sequence[Ref], *, wait_s: float = 0) -> None:
        del wait_s
        for ref in refs:
            self.log.append(f"delete {ref}")
            if ref.kind == "pods":
                pods = [pod for gang in self.gangs.values() if gang.namespace == ref.namespace for pod in gang.pods]
                self._end([pod for pod in pods if pod.name == ref.name])
            elif ref.kind.startswith("job"):
                self.gangs[ref.namespace, ref.name].admitted = False
                self.gangs[ref.namespace, ref.name].size = 0
                self._end(self.gangs[ref.namespace, ref.name].pods)
            elif ref.name not in self.held:
                del self.objects[ref]
                if ref.kind == "namespaces":
                    self.gangs = {key: gang for key, gang in self.gangs.items() if gang.namespace != ref.name}
                    self.objects = {key: item for key, item in self.objects.items() if key.namespace != ref.name}

    def patch(self, patches: Sequence[Patch]) -> tuple[JsonObject, ...]:
        for patch in patches:
            assert isinstance(patch.body, Mapping)
            if patch.ref.kind == "node":
                assert patch.part == "status"
                changed = {**self.devices[patch.ref.name], **patch.body["status"]["capacity"]}
                self.devices[patch.ref.name] = {name: value for name, value in changed.items() if value is not None}
            else:
                self._scale(patch)
        return ()

    def _scale(self, patch: Patch) -> None:
        assert isinstance(patch.body, Mapping)
        item = self.objects[patch.ref]
        notes = {**item["metadata"].get("annotations", {}), **patch.body["metadata"]["annotations"]}
        item["metadata"]["annotations"] = {name: value for name, value in notes.items() if value is not None}
        item["spec"] = dict(patch.body["spec"])
        self.log.append(f"scale {patch.ref.name} to {item['spec']['replicas']}")
        self.stopped = item["spec"]["replicas"] == 0

    def wait(self, select: Select | Sequence[Ref], condition: str, timeout_s: float) -> bool:
        del select, condition, timeout_s
        return True

    # what the scheduler does

    def tick(self) -> None:
        for gang in self.gangs.values():
            self._age(gang)
        if self.behaviour.alive:
            order = sorted(self.gangs.values(), key=lambda one: (-one.rank * self.behaviour.ranks, one.born))
            for gang in order:
                self._place(gang)

    def _age(self, gang: SimulatedGang) -> None:
        gang.pods = [pod for pod in gang.pods if not (pod.ending and self.at - pod.since >= 1)]
        for pod in gang.pods:
            if pod.ending or not pod.node:
                continue
            if pod.phase == "Pending" and self.at - pod.since >= 1:
                pod.phase, pod.since = "Running", self.at
            elif pod.phase == "Running" and self.at - pod.since >= gang.seconds:
                pod.phase = "Succeeded"
        whole = len(gang.kept) + sum(pod.phase == "Succeeded" for pod in gang.pods) == gang.size
        timeout = self.behaviour.requeue_s
        if gang.admitted and not whole and timeout and self.at - gang.since >= timeout:
            self._evict(gang)

    def _place(self, gang: SimulatedGang) -> None:
        if not gang.size or gang.done or self.at < gang.back_at or (gang.evicted and not self.behaviour.returns):
            return
        if self.stopped and (gang.queue or not self.behaviour.down):
            return
        if gang.admitted:
            self._replace(gang)
        elif not self.behaviour.gangs:
            self._one_by_one(gang)
        elif self._has_quota(gang, gang.size) and (self._free(gang) >= gang.size or not self._by_place(gang)):
            self._admit(gang)
        else:
            self._take_back(gang)

    def _admit(self, gang: SimulatedGang) -> None:
        gang.admitted, gang.since = True, self.at
        gang.pods = [self._pod(gang, number) for number in range(gang.size)]
        self._give(gang)

    def _give(self, gang: SimulatedGang) -> None:
        for pod in gang.pods:
            if not pod.node and self._free(gang) > 0:
                pod.node, pod.since = MACHINES[0], self.at

    def _one_by_one(self, gang: SimulatedGang) -> None:
        waiting = gang.size - len(gang.pods)
        gang.pods += [self._pod(gang, len(gang.pods) + number) for number in range(waiting)]
        for pod in gang.pods:
            if not pod.node and self._has_quota(gang, 1) and self._free(gang) > 0:
                pod.node, pod.since = MACHINES[0], self.at

    def _replace(self, gang: SimulatedGang) -> None:
        if self.behaviour.replaces:
            gang.pods += [self._pod(gang, len(gang.pods) + number) for number in range(gang.size - len(gang.pods))]
        self._give(gang)

    def _take_back(self, gang: SimulatedGang) -> None:
        units, _ = self._quota(gang)
        if self.behaviour.reclaim == "never" or self._used(gang.namespace, gang.queue) + gang.size > units:
            return
        if self.behaviour.reclaim == "late" and self.at - gang.born < 1000 and not gang.since:
            gang.since = self.at
            gang.back_at = self.at + 45
            return
        for other in self.gangs.values():
            borrows = self._used(other.namespace, other.queue) > self._quota(other)[0] if other.queue else False
            if other.namespace == gang.namespace and other.queue != gang.queue and borrows:
                if self.behaviour.reclaim == "pods":
                    self._end(other.kept[: gang.size])
                    other.admitted = False
                    other.back_at = self.at + 1000
                else:
                    self._evict(other)

    def _evict(self, gang: SimulatedGang) -> None:
        self._end(gang.pods)
        gang.admitted, gang.evicted, gang.back_at = False, True, self.at + 2

    def _end(self, pods: Sequence[SimulatedPod]) -> None:
        for pod in pods:
            pod.ending, pod.since = True, self.at

    def _pod(self, gang: SimulatedGang, number: int) -> SimulatedPod:
        return SimulatedPod(f"{gang.item['metadata']['name']}-{number}", f"uid-{next(self.numbers)}")

    def _free(self, gang: SimulatedGang) -> int:
        if gang.resource == "cpu":
            return 100
        total = sum(int(found.get(gang.resource, 0)) for found in self.devices.values())
        return total - sum(len(one.held) for one in self.gangs.values() if one.resource == gang.resource)

    def _used(self, namespace: str, queue: str) -> int:
        inside = (one for one in self.gangs.values() if (one.namespace, one.queue) == (namespace, queue))
        return sum(one.size if one.admitted and not one.done else len(one.kept) for one in inside)

    def _quota(self, gang: SimulatedGang) -> tuple[int, int]:
        """Guaranteed, and with what it may borrow."""
        spec = self._queue(gang)["spec"]
        (row,) = spec["resourceGroups"][0]["flavors"][0]["resources"]
        units = number_of(row["nominalQuota"])
        return units, units + (number_of(row.get("borrowingLimit", "0")) if "cohortName" in spec else 0)

    def _queue(self, gang: SimulatedGang) -> Mapping[str, Any]:
        return self.objects[Ref("clusterqueues.kueue.x-k8s.io", f"{title_of(gang)}-{gang.queue}")]

    def _has_quota(self, gang: SimulatedGang, pods: int) -> bool:
        if not gang.queue or not self.behaviour.quota:
            return True
        units, most = self._quota(gang)
        used = self._used(gang.namespace, gang.queue)
        if used + pods <= units:
            return self._cohort(gang) + pods <= self._total(gang)
        return self.behaviour.lends and used + pods <= most and self._cohort(gang) + pods <= self._total(gang)

    def _cohort(self, gang: SimulatedGang) -> int:
        queues = {one.queue for one in self.gangs.values() if one.namespace == gang.namespace and one.queue}
        return sum(self._used(gang.namespace, queue) for queue in queues)

    def _total(self, gang: SimulatedGang) -> int:
        specs = [
            item["spec"] for ref, item in self.objects.items()
            if ref.kind.startswith("clusterqueues") and ref.name.startswith(f"{title_of(gang)}-")
        ]  # fmt: skip
        rows = [spec["resourceGroups"][0]["flavors"][0]["resources"][0] for spec in specs]
        return sum(number_of(row["nominalQuota"]) for row in rows)

    def _by_place(self, gang: SimulatedGang) -> bool:
        flavor = self.objects[Ref("resourceflavors.kueue.x-k8s.io", title_of(gang))]
        return "topologyName" in flavor["spec"] and self.behaviour.topology


def number_of(quantity: str) -> int:
    """Units: "2" of devices, "20m" of cores, where one unit is 10m."""
    return int(quantity[:-1]) // 10 if quantity.endswith("m") else int(quantity)


def title_of(gang: SimulatedGang) -> str:
    """What begins the names of its scenario's objects."""
    return gang.namespace.replace(PLACES, PREFIX)


def _fits(item: JsonObject, select: Select) -> bool:
    labels = item["metadata"].get("labels", {})
    wanted = dict(part.split("=", 1) for part in select.labels.split(",") if part)
    return select.namespace in ("", item["metadata"].get("namespace", "")) and wanted.items() <= labels.items()
