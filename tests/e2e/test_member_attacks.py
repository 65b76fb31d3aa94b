"""Attacks of a member on running schedulers: whatever is answered, no pod has a device that no queue counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pai_install.scheduling.device_quota import QUOTA
from pai_install.scheduling.job_kinds import JOB, JOBSET, POD, VOLCANO_JOB, JobKind
from pai_install.scheduling.job_queue import CLUSTER_LABEL, PRIORITY_LABEL, QUEUE_LABEL, QUEUE_NOTE
from pai_install.scheduling.model import Backend
from pai_install.scheduling.pod_limits import MAX_GRACE_S
from pai_install.site.groups import RECORD_LABEL, USER_LABEL
from pai_install.users.kinds import kinds_at
from tests.integration.users.attacks import JOBS, NUMBERS, OF_JOBS, PODS, templates_of, too_many
from tests.integration.users.tenants import QUEUED

from .conftest import Cluster, equip, until
from .job_site import JOBS_GROUP as GROUP
from .job_site import MASTER, ONE, OTHER
from .test_jobs import GPU_NAME, shown
from .test_jobs import job as job_verb
from .test_scheduler_switch import switch
from .test_users import ask, user

pytestmark = pytest.mark.lab

Json = dict[str, Any]
QUEUE = "default"
# the attacker, and a colleague of the same group
MEMBERS = ("alice", "bob")
# of policies, roles, the kind itself, the admission of priorities and accounts, and Kueue
REFUSED = (
    "ValidatingAdmissionPolicy",
    "immutable",
    "Unsupported value",
    "no PriorityClass",
    "cannot ",
    "not allow",
    "looking up service account",
    '"own" not found',
)
NAMESPACE = f"--namespace={GROUP}"
# where the controllers of jobs are
CONTROLLERS = {"kueue": ("pai-kueue", "pai-jobset"), "volcano": ("pai-volcano",)}
# with Kueue in each run of the tests
BACKENDS = ["kueue", pytest.param("volcano", marks=pytest.mark.soak)]
SLEEP = "trap 'exit 0' TERM; sleep 600 & wait"
# kubectl would ask for it otherwise
JOB_PATH = f"/apis/batch/v1/namespaces/{GROUP}/jobs"


@dataclass(frozen=True)
class Scheduled(Cluster):
    """A cluster with a scheduler."""

    backend: Backend

    @property
    def kinds(self) -> tuple[JobKind, ...]:
        """What members of it create that becomes pods."""
        return (*(kind for kind in kinds_at(self.backend) if not kind.operated), POD)

    @property
    def all_kinds(self) -> str:
        return ",".join(kind.full_name for kind in self.kinds)


@dataclass(frozen=True)
class Member:
    """A user of the group with a kubeconfig. cluster: as its administrator sees it. image: that all machines have."""

    cluster: Scheduled
    name: str
    file: Path
    image: str

    def ask(self, *words: str, entry: Json | None = None) -> str:
        """Why kubectl is refused, empty where it is not."""
        done = ask(self.cluster, self.file, *words, entry=entry)
        return "" if done.returncode == 0 else done.stderr

    def create(self, *objects: Json) -> str:
        """Why objects are refused, in lines that name them."""
        entry = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self.ask("create", "--validate=false", "-f", "-", entry=entry)

    def patch(self, what: str, change: object, how: str = "merge") -> str:
        return self.ask("patch", what, f"--type={how}", f"--patch={json.dumps(change)}")

    def made(self, kind: JobKind, name: str, gpus: int = 1, script: str = SLEEP, pods: int = 1) -> Json:
        """A job as members write it, with a device and a queue if queues know its kind."""
        own = {"labels": {USER_LABEL: self.name}}
        container: Json = {"name": "main", "image": self.image, "command": ["/bin/busybox", "sh", "-c", script]}
        container["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"}}
        if gpus:
            container["resources"]["limits"] = {GPU_NAME: str(gpus)}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
        template: Json = {"metadata": deepcopy(own), "spec": spec}
        metadata: Json = {"name": name, "namespace": GROUP, "labels": {**own["labels"]}}
        made: Json = {"apiVersion": kind.api, "kind": kind.name, "metadata": metadata, "spec": spec}
        if kind is not POD:
            metadata["labels"][CLUSTER_LABEL] = QUEUE
            made["spec"] = self._spec(kind, template, pods)
        QUEUED[self.cluster.backend](made, kind, QUEUE)
        return made

    def _spec(self, kind: JobKind, template: Json, pods: int) -> Json:
        if kind is VOLCANO_JOB:
            return {"minAvailable": pods, "tasks": [{"name": "a", "replicas": pods, "template": template}]}
        one = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": template}
        if kind is JOB:
            return {**one, "suspend": self.cluster.backend == "kueue"}
        own = deepcopy({"labels": template["metadata"]["labels"]})
        return {"replicatedJobs": [{"name": "a", "template": {"metadata": own, "spec": one}}]}


@pytest.fixture(scope="module", params=BACKENDS)
def scheduled(job_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Scheduled]:
    """The cluster with the scheduler of the parameter; with its own one afterwards."""
    services = job_cluster.site / "services-configuration.yaml"
    before = services.read_text()
    (own,) = (name for name in CONTROLLERS if f"  type: {name}\n" in before)
    if request.param != own:
        services.write_text(before.replace(f"  type: {own}\n", f"  type: {request.param}\n"))
        equip(job_cluster.site)
        services.write_text(before)
    to(job_cluster, request.param, own)
    try:
        yield Scheduled(job_cluster.site, job_cluster.quickstart, request.param)
    finally:
        to(job_cluster, own, request.param)


def to(cluster: Cluster, backend: str, before: str) -> None:
    if backend != before:
        code, _report, said = switch(cluster, backend, "--yes", "--force")
        assert code == 0, said


@pytest.fixture(scope="module")
def members(scheduled: Scheduled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Member]]:
    """Both of them; gone afterwards."""
    image = scheduled.on(ONE, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    found = {}
    try:
        for name in MEMBERS:
            file = tmp_path_factory.mktemp("members") / f"{name}.kubeconfig"
            for words in (("add", name, "--group", GROUP, "--yes"), ("kubeconfig", name, "--output", str(file))):
                made = user(scheduled, *words)
                assert made.returncode == 0, made.stderr
            found[name] = Member(scheduled, name, file, image)
        yield found
    finally:
        for name in MEMBERS:
            user(scheduled, "remove", name, "--yes")


@pytest.fixture
def alice(members: Mapping[str, Member]) -> Iterator[Member]:
    """The attacker, before and after whom the group has no job; services go on, and no device was uncounted."""
    cluster = members["alice"].cluster
    end_all(cluster)
    before = starts(cluster)
    yield members["alice"]
    assert until(lambda: uncounted(cluster) <= 0, 90), (held(cluster), counted(cluster))
    assert on_control_plane(cluster) == []
    end_all(cluster)
    assert until(lambda: counted(cluster) == 0), "the queue counts what is gone"
    assert starts(cluster) == before


def end_all(cluster: Scheduled) -> None:
    cluster.kubectl("delete", cluster.all_kinds, "--all", NAMESPACE, "--timeout=300s")


def items(cluster: Cluster, *words: str) -> list[Json]:
    found: list[Json] = json.loads(cluster.kubectl("get", *words, "--output=json"))["items"]
    return found


def held(cluster: Cluster) -> dict[str, int]:
    """Pod of any group on a machine -> devices that it has, until it has ended."""
    return {
        pod["metadata"]["name"]: sum(devices)
        for pod in items(cluster, "pods", "--all-namespaces")
        if pod["spec"].get("nodeName") and pod["status"]["phase"] not in ("Succeeded", "Failed")
        if any(devices := [devices_of(it) for it in containers_of(pod)])
    }


def containers_of(pod: Json) -> list[Json]:
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]


def devices_of(container: Json) -> int:
    return int(container.get("resources", {}).get("limits", {}).get(GPU_NAME, 0))


def counted(cluster: Scheduled) -> int:
    """Devices that the scheduler has given to jobs of all queues."""
    return sum(COUNTED[cluster.backend](cluster))


def by_kueue(cluster: Cluster) -> Iterator[int]:
    for queue in items(cluster, "clusterqueues"):
        for flavor in queue.get("status", {}).get("flavorsReservation", []):
            yield from (int(it["total"]) for it in flavor["resources"] if it["name"] == GPU_NAME)


def by_volcano(cluster: Cluster) -> Iterator[int]:
    for queue in items(cluster, "queues.scheduling.volcano.sh"):
        # the queue above all others counts their devices again
        if queue["metadata"]["name"] != "root":
            yield int(queue.get("status", {}).get("allocated", {}).get(GPU_NAME, 0))


COUNTED = {"kueue": by_kueue, "volcano": by_volcano}


def uncounted(cluster: Scheduled) -> int:
    """Devices that pods have and no queue counts. Read first: a queue counts a job before its pods start."""
    return sum(held(cluster).values()) - counted(cluster)


def is_counted(cluster: Scheduled) -> None:
    """Fails if a pod has a device that no queue counts. Kueue writes its count in batches, Volcano after the start."""
    late_s = 90 if cluster.backend == "volcano" else 15
    assert until(lambda: uncounted(cluster) <= 0, late_s), (held(cluster), counted(cluster))


def only(member: Member, *backends: Backend) -> None:
    if member.cluster.backend not in backends:
        pytest.skip(f"of {' and '.join(backends)}")


def running(cluster: Cluster, name: str) -> list[str]:
    """Pods of a job that run."""
    found = items(cluster, "pods", NAMESPACE, "--field-selector=status.phase=Running")
    return [pod for it in found if (pod := str(it["metadata"]["name"])).startswith(f"{name}-")]


def on_control_plane(cluster: Cluster) -> list[str]:
    return [it["metadata"]["name"] for it in items(cluster, "pods", NAMESPACE) if it["spec"].get("nodeName") == MASTER]


def starts(cluster: Scheduled) -> tuple[int, str]:
    """How often controllers of jobs and the recorder were started, but for a lost lease: a busy box takes it."""
    pods = [it for name in CONTROLLERS[cluster.backend] for it in items(cluster, "pods", f"--namespace={name}")]
    counts = [0 if lost_lease(cluster, pod) else restarts(pod) for pod in pods]
    assert counts
    recorder = cluster.on(MASTER, "systemctl show pai-job-recorder --property=NRestarts,ActiveState")
    assert "ActiveState=active" in recorder
    return sum(counts), recorder


def restarts(pod: Json) -> int:
    return sum(it["restartCount"] for it in pod["status"]["containerStatuses"])


def lost_lease(cluster: Cluster, pod: Json) -> bool:
    """Whether its last end was that of a leader that could not renew in time."""
    if not restarts(pod):
        return False
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    last = cluster.kubectl("logs", name, f"--namespace={namespace}", "--previous", "--tail=50")
    return re.search(r"leader ?election lost", last) is not None


def state(cluster: Cluster, name: str, kind: str = "job") -> Json:
    found: Json = json.loads(cluster.kubectl("get", kind, name, NAMESPACE, "--output=json"))
    return found


def started(member: Member, made: Json, pods: int = 1) -> Json:
    """Creates a good job; as the cluster has it, once its pods run."""
    assert member.create(made) == ""
    name = made["metadata"]["name"]
    assert until(lambda: len(running(member.cluster, name)) == pods, 300), member.cluster.kubectl(
        "get", f"{member.cluster.all_kinds},events", NAMESPACE, "--output=yaml"
    )
    return state(member.cluster, name, kind_of(made))


def kind_of(made: Json) -> str:
    """As kubectl knows it: two kinds are called Job."""
    return next(
        it.full_name
        for it in (JOB, JOBSET, POD, VOLCANO_JOB)
        if (it.api, it.name) == (made["apiVersion"], made["kind"])
    )


def left(cluster: Scheduled) -> list[str]:
    return cluster.kubectl("get", cluster.all_kinds, NAMESPACE, "--output=name").split()


def is_refused(answer: str) -> bool:
    return any(words in answer for words in REFUSED)


def accepted(answers: Mapping[str, str]) -> dict[str, str]:
    """The attacks that were not refused, or for another reason than what they ask for."""
    return {name: answer[:400] for name, answer in answers.items() if not is_refused(answer)}


def evil(member: Member) -> Iterator[tuple[str, Json]]:
    """Each attack on each kind that the cluster has, as an object."""
    for kind in member.cluster.kinds:
        for name, change in {**PODS, **JOBS, **({} if kind is POD else NUMBERS)}.items():
            if kind is not JOB or name not in OF_JOBS:
                made = member.made(kind, f"{short(kind)}-{name}"[:50], gpus=int(kind is not POD))
                change(made, kind)
                yield made["metadata"]["name"], made


def short(kind: JobKind) -> str:
    return "vcjob" if kind is VOLCANO_JOB else kind.name.lower()


def about(name: str, lines: list[str]) -> str:
    """The answer to one of many objects."""
    # Kueue looks for the owner before any policy, and names that alone
    webhook = f'"m{name.partition("-")[0]}.kb.io"' if name.endswith("-fake-owner") else f'"{name}"'
    return next((line for line in lines if f'"{name}"' in line or webhook in line), "")


def test_hostile_jobs_and_pods_are_refused_beside_the_webhooks_of_the_scheduler(alice: Member) -> None:
    """Schedulers change objects before policies see them. The list is that of the API server without controllers."""
    attacks = dict(evil(alice))
    assert len(attacks) > 200
    lines = alice.create(*attacks.values()).splitlines()
    assert accepted({name: about(name, lines) for name in attacks}) == {}
    assert left(alice.cluster) == []


def label(made: Json, labels: Mapping[str, str | None]) -> Json:
    """Adds labels to a job, or takes them away."""
    found = made["metadata"]["labels"]
    for name, value in labels.items():
        found.pop(name, None)
        found |= {} if value is None else {name: value}
    return made


def in_queue(backend: Backend, made: Json, kind: JobKind, queue: str | None) -> Json:
    """A job that names another queue, or none."""
    label(made, {QUEUE_LABEL: queue} if backend == "kueue" else {})
    if backend == "volcano":
        for template in templates_of(kind, made):
            template["metadata"]["annotations"] = {} if queue is None else {QUEUE_NOTE: queue}
        if kind.queue:
            made["spec"].pop("queue")
            made["spec"] |= {} if queue is None else {"queue": queue}
    return made


def unqueued(member: Member) -> Iterator[Json]:
    """Jobs and pods with devices that look for a way around the queue."""
    backend = member.cluster.backend
    for kind in member.cluster.kinds[:-1]:
        kinds = short(kind)
        for name, value in (("none", None), ("empty", ""), ("lost", "nowhere"), ("other", "team")):
            made = member.made(kind, f"{kinds}-{name}")
            made["metadata"]["labels"].pop(CLUSTER_LABEL)
            yield in_queue(backend, made, kind, value)
        note = label(member.made(kind, f"{kinds}-note"), {QUEUE_LABEL: None})
        note["metadata"]["annotations"] = {QUEUE_LABEL: QUEUE}
        yield note
        inner = label(member.made(kind, f"{kinds}-inner"), {QUEUE_LABEL: None})
        for template in templates_of(kind, inner):
            template["metadata"]["labels"][QUEUE_LABEL] = QUEUE
        yield inner
        managed = member.made(kind, f"{kinds}-managed")
        managed["spec"]["managedBy"] = "example.com/mine"
        yield managed
        elastic = member.made(kind, f"{kinds}-elastic")
        elastic["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
        yield elastic
        started_at_once = member.made(kind, f"{kinds}-started")
        started_at_once["spec"]["suspend"] = False
        yield started_at_once
        yield member.made(kind, f"{kinds}-large", gpus=17)
        many = member.made(kind, f"{kinds}-many", gpus=8)
        too_many(5)(many, kind)
        yield many
        for name, restart in (("side", {"restartPolicy": "Always"}), ("init", {})):
            yield with_first(member.made(kind, f"{kinds}-{name}", gpus=0), kind, restart)
    partial = member.made(JOB, "job-partial", gpus=8, pods=5)
    partial["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    yield partial
    if JOBSET in member.cluster.kinds:
        child = label(member.made(JOBSET, "jobset-child"), {QUEUE_LABEL: None})
        child["spec"]["replicatedJobs"][0]["template"]["metadata"]["labels"][QUEUE_LABEL] = QUEUE
        yield child
    yield member.made(POD, "pod-bare")
    yield label(member.made(POD, "pod-queue"), {QUEUE_LABEL: QUEUE})
    group = label(member.made(POD, "pod-group"), {QUEUE_LABEL: QUEUE, "kueue.x-k8s.io/pod-group-name": "own"})
    group["metadata"]["labels"]["kueue.x-k8s.io/managed"] = "true"
    yield group
    yield with_first(member.made(POD, "pod-init", gpus=0), POD, {})


def with_first(made: Json, kind: JobKind, more: Json) -> Json:
    """A job whose devices are in a container that starts before the others."""
    for template in templates_of(kind, made):
        first = {**deepcopy(template["spec"]["containers"][0]), "name": "first", **more}
        template["spec"]["initContainers"] = [{**first, "resources": {"limits": {GPU_NAME: "1"}}}]
    return made


def test_no_way_around_the_queue_has_a_device(alice: Member) -> None:
    """Some are refused, some wait, and what runs is counted."""
    attacks, most = list(unqueued(alice)), 8
    assert len(attacks) >= 25
    with limited(alice.cluster, most):
        alice.create(*attacks)
        # Kueue takes the jobs of a queue in turn
        started(alice, alice.made(JOB, "last", gpus=0))
        is_counted(alice.cluster)
        if alice.cluster.backend not in POD.queued:
            assert not {name for name in held(alice.cluster) if name.startswith("pod-")}
        assert sum(held(alice.cluster).values()) <= most
        end_all(alice.cluster)


@pytest.mark.parametrize("kind", [JOB, JOBSET, VOLCANO_JOB], ids=["job", "jobset", "vcjob"])
@pytest.mark.parametrize("queued", [True, False], ids=["queued", "unqueued"])
def test_a_job_that_waits_gets_no_devices_later(alice: Member, kind: JobKind, queued: bool) -> None:
    """Kueue counts a job as it was created; without a queue it never sees it."""
    only(alice, *(it for it in kind.queued if queued or it == "kueue"))
    gpus = 17 if queued else 0
    made = alice.made(kind, "later", gpus)
    made["spec"]["suspend"] = True
    if not queued:
        label(made, {QUEUE_LABEL: "nowhere", CLUSTER_LABEL: None})
    assert alice.create(made) == ""
    what = f"{kind.full_name}/later"
    larger, more = alice.made(kind, "later", gpus=4), alice.made(kind, "later", gpus)
    too_many(4)(more, kind)
    for one in (larger, more):
        one["spec"]["suspend"] = False
    moved = {"metadata": {"labels": {QUEUE_LABEL: None, CLUSTER_LABEL: None}}, "spec": {"suspend": False}}
    with_server = ("apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-")
    answers = {
        "merge": alice.patch(what, {"spec": larger["spec"]}),
        "apply": alice.ask(*with_server, entry=larger),
        "away from its queue": alice.patch(what, moved),
        "started": alice.patch(what, {"spec": {"suspend": False}}),
        "more": alice.patch(what, {"spec": more["spec"]}),
        "scaled": alice.ask("scale", what, "--replicas=4"),
        "priority": alice.patch(what, {"metadata": {"labels": {PRIORITY_LABEL: "crit"}}}),
    }
    found = {name: answer for name, answer in answers.items() if not answer}
    # Kueue alone starts jobs; others start them at once
    assert set(found) <= {"priority", *(() if alice.cluster.backend == "kueue" else ("started",))}, answers
    assert running(alice.cluster, "later") == []
    assert held(alice.cluster) == {}


# what a scheduler keeps of a job, the queue, and its quota
KEPT = {
    "kueue": ("workloads", f"localqueue/{QUEUE}", f"clusterqueue/{QUEUE}"),
    "volcano": ("podgroups", *[f"queues.scheduling.volcano.sh/{QUEUE}"] * 2),
}


def test_a_job_that_runs_is_counted_until_its_pods_end(alice: Member) -> None:
    """Orphans, other owners, other queues, parts that are deleted: the job is as it was, and then ends whole."""
    job = started(alice, alice.made(JOB, "victim", gpus=2))
    (pod,) = running(alice.cluster, "victim")
    kind, queue, quota = KEPT[alice.cluster.backend]
    kept = f"{kind}/{items(alice.cluster, kind, NAMESPACE)[0]['metadata']['name']}"
    is_kueue = alice.cluster.backend == "kueue"
    own = {"apiVersion": "batch/v1", "kind": "Job", "name": "victim", "uid": job["metadata"]["uid"]}
    raw = ("delete", "--raw", f"{JOB_PATH}/victim")
    by_body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}
    answers = {
        "orphan": alice.ask("delete", "job", "victim", "--cascade=orphan"),
        "orphan by default": alice.ask(*raw),
        "orphan by body": alice.ask(*raw, "-f", "-", entry=by_body),
        "orphans of all": alice.ask("delete", "--raw", f"{JOB_PATH}?propagationPolicy=Orphan"),
        "orphan finalizer": alice.patch("job/victim", {"metadata": {"finalizers": ["orphan"]}}),
        "no queue": alice.ask("label", "job", "victim", f"{QUEUE_LABEL if is_kueue else CLUSTER_LABEL}-"),
        "other queue": alice.ask("label", "job", "victim", "--overwrite", f"{QUEUE_LABEL}=team"),
        "other virtual cluster": alice.ask("label", "job", "victim", "--overwrite", f"{CLUSTER_LABEL}=team"),
        "of a notebook": alice.ask("label", "job", "victim", "--overwrite", f"{CLUSTER_LABEL}=notebook"),
        "owner": alice.patch("job/victim", {"metadata": {"ownerReferences": [{**own, "controller": True}]}}),
        "devices": alice.patch("job/victim", {"spec": alice.made(JOB, "victim", gpus=8)["spec"]}),
        "parallelism": alice.patch("job/victim", {"spec": {"parallelism": 8, "completions": 8}}),
        "pod": alice.ask("delete", "pod", pod, "--grace-period=120", "--wait=false"),
        "pod without its owner": alice.patch(f"pod/{pod}", {"metadata": {"ownerReferences": None}}),
        "pod without its labels": alice.patch(f"pod/{pod}", {"metadata": {"labels": {"job-name": None}}}),
        "image of the pod": alice.patch(f"pod/{pod}", {"spec": {"containers": [{"name": "main", "image": "none"}]}}),
        "status": alice.ask(
            "patch", "job", "victim", "--subresource=status", "--type=merge", '--patch={"status":{"active":0}}'
        ),
        "what is kept": alice.ask("delete", kept),
        "its state": alice.patch(kept, {"spec": {"active": False}}),
        "all that is kept": alice.ask("delete", kind, "--all"),
        "queue": alice.ask("delete", queue),
        "quota": alice.patch(quota, {"spec": {"stopPolicy": "Hold"}}),
    }
    if is_kueue:
        answers["suspended"] = alice.patch("job/victim", {"spec": {"suspend": True}})
    assert accepted(answers) == {}
    is_counted(alice.cluster)
    assert running(alice.cluster, "victim") == [pod]
    assert alice.ask("delete", "job", "victim") == ""
    assert until(lambda: (counted(alice.cluster), held(alice.cluster)) == (0, {}), 60)


def on(machine: str) -> Json:
    return {"kubernetes.io/hostname": machine}


# what limits the devices of the group
LIMITS = {
    "kueue": (f"clusterqueue/{QUEUE}", f"resourcequota/{QUOTA}"),
    "volcano": (f"queues.scheduling.volcano.sh/{QUEUE}",),
}


@contextmanager
def limited(cluster: Scheduled, gpus: int) -> Iterator[None]:
    """The queue and the group have fewer devices than the machines."""

    def put(what: str, spec: Json) -> None:
        change = json.dumps([{"op": "replace", "path": "/spec", "value": spec}])
        cluster.kubectl("patch", what, NAMESPACE, "--type=json", f"--patch={change}")

    found = (json.loads(cluster.kubectl("get", what, NAMESPACE, "--output=json")) for what in LIMITS[cluster.backend])
    before = dict(zip(LIMITS[cluster.backend], (it["spec"] for it in found), strict=True))
    try:
        for what, spec in before.items():
            put(what, fewer(spec, str(gpus)))
        yield
    finally:
        for what, spec in before.items():
            put(what, spec)


def fewer(before: Json, gpus: str) -> Json:
    spec = deepcopy(before)
    for flavor in (it for group in spec.get("resourceGroups", ()) for it in group["flavors"]):
        for one in (it for it in flavor["resources"] if it["name"] == GPU_NAME):
            one |= {"nominalQuota": gpus, "lendingLimit": gpus}
    if "hard" in spec:
        spec["hard"][f"requests.{GPU_NAME}"] = gpus
    if "deserved" in spec:
        least = {**spec["deserved"], GPU_NAME: gpus}
        spec |= {"deserved": least, "capability": {**least, **spec.get("capability", {}), GPU_NAME: gpus}}
    return spec


def test_jobs_that_end_slowly_and_new_ones_have_no_more_than_the_quota(alice: Member) -> None:
    """A queue counts a job until it is deleted. Where a quota is, the API server counts its pods."""
    cluster, most = alice.cluster, 8
    with limited(cluster, most):
        slow = alice.made(JOB, "slow", gpus=most, script="trap '' TERM; sleep 600 & wait; wait")
        # Kueue takes the same machine again, which is not free
        slow["spec"]["template"]["spec"] |= {"terminationGracePeriodSeconds": MAX_GRACE_S, "nodeSelector": on(ONE)}
        started(alice, slow)
        assert alice.ask("delete", "job", "slow", "--wait=false") == ""
        again = alice.made(JOB, "again", gpus=most)
        again["spec"]["template"]["spec"]["nodeSelector"] = on(OTHER)
        assert alice.create(again) == ""
        assert until(lambda: counted(cluster) == most)
        if cluster.backend == "volcano":
            # docs/security.md, "Devices of deleted jobs"
            assert until(lambda: sum(held(cluster).values()) > most, 60)
            assert until(lambda: sum(held(cluster).values()) == most, MAX_GRACE_S + 30)
            return
        assert not until(lambda: sum(held(cluster).values()) > most, 10), held(cluster)
        (pod,) = running(cluster, "slow")
        assert "part of a job" in alice.ask("delete", "pod", pod, "--grace-period=0", "--force")
        cluster.kubectl("delete", "pod", pod, NAMESPACE, "--grace-period=1")
        # the Job's controller tries again
        assert until(lambda: len(running(cluster, "again")) == 1, 90)
        assert counted(cluster) == sum(held(cluster).values()) == most


def test_a_part_of_a_jobset_is_not_made_again_while_its_pods_end(alice: Member) -> None:
    """The Jobs of a JobSet have the label of its owner, and JobSet makes a deleted one again at once."""
    only(alice, "kueue")
    started(alice, alice.made(JOBSET, "whole", gpus=2))
    (pod,) = running(alice.cluster, "whole")
    (part,) = (f"job/{it['metadata']['name']}" for it in items(alice.cluster, "jobs", NAMESPACE))
    assert (
        accepted(
            {
                "deleted": alice.ask("delete", part, "--wait=false"),
                "orphaned": alice.ask("delete", part, "--cascade=orphan"),
                "suspended": alice.patch(part, {"spec": {"suspend": True}}),
                "ended": alice.patch(part, {"spec": {"activeDeadlineSeconds": 1}}),
                "without its owner": alice.patch(part, {"metadata": {"ownerReferences": None}}),
                "whole suspended": alice.patch("jobset/whole", {"spec": {"suspend": True}}),
                "whole with its part": alice.ask("delete", "jobset", "whole", "--cascade=orphan"),
            }
        )
        == {}
    )
    assert running(alice.cluster, "whole") == [pod]
    is_counted(alice.cluster)


def test_no_job_is_a_part_of_ones_own_job(alice: Member) -> None:
    """A queue leaves a part to its owner, and lists leave it out."""
    *kinds, _ = alice.cluster.kinds
    for kind in kinds:
        name = f"small-{short(kind)}"
        real = started(alice, alice.made(kind, name))["metadata"]
        owner = {"apiVersion": kind.api, "kind": kind.name, "name": name, "uid": real["uid"], "controller": True}
        answers = {}
        for part in alice.cluster.kinds:
            made = alice.made(part, f"part-{short(part)}", gpus=6)
            made["metadata"]["ownerReferences"] = [owner]
            answers[short(part)] = alice.create(label(made, {QUEUE_LABEL: None, CLUSTER_LABEL: None}))
        assert accepted(answers) == {}
    is_counted(alice.cluster)
    assert sum(held(alice.cluster).values()) == len(kinds)
    listed = job_verb(alice.cluster, "list", "--format", "json")
    assert {f"small-{short(kind)}" for kind in kinds} <= {it["name"] for it in json.loads(listed.stdout)["jobs"]}


def test_a_colleagues_job_is_not_ended(alice: Member, members: Mapping[str, Member]) -> None:
    bob = members["bob"]
    job = started(bob, bob.made(JOB, "bobs"))
    (pod,) = running(alice.cluster, "bobs")
    template = job["spec"]["template"]["metadata"]["labels"]
    adopted = alice.made(POD, "adopted", gpus=0, script="exit 1")
    adopted["metadata"]["labels"] = {**template, USER_LABEL: "alice"}
    by_name = alice.made(POD, "by-name", gpus=0, script="exit 1")
    by_name["metadata"]["labels"] |= {"job-name": "bobs"}
    adopts = alice.made(JOB, "adopts", gpus=0)
    adopts["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {USER_LABEL: "alice"}}}
    later = alice.made(POD, "later", gpus=0)
    assert alice.create(later) == ""
    answers = {
        "adopted": alice.create(adopted),
        "by name": alice.create(by_name),
        "adopts": alice.create(adopts),
        "adopted later": alice.patch("pod/later", {"metadata": {"labels": template}}),
        "stopped": alice.ask("delete", "job", "bobs"),
        "pod": alice.ask("delete", "pod", pod),
        "changed": alice.patch("job/bobs", {"spec": {"activeDeadlineSeconds": 1}}),
        "given away": alice.ask("label", "job", "bobs", "--overwrite", f"{USER_LABEL}=alice"),
        "entered": alice.ask("exec", pod, "--", "true"),
        "attached": alice.ask("attach", pod),
        "debugged": alice.ask("debug", pod, f"--image={alice.image}"),
        "evicted": alice.ask(
            "create",
            "--raw",
            f"/api/v1/namespaces/{GROUP}/pods/{pod}/eviction",
            "-f",
            "-",
            entry={"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}},
        ),
        "as the administrator": alice.ask("get", "secrets", "--as=kubernetes-admin", "--as-group=system:masters"),
        "in its name": alice.create(bob.made(JOB, "forged", gpus=0)),
    }
    assert accepted(answers) == {}
    assert running(alice.cluster, "bobs") == [pod]
    assert state(alice.cluster, "bobs")["status"]["active"] == 1


# deeper than any parser recurses, and as large as annotations may be
DEEP = "[" * 15_000
FORGED = {"kind": "job", "name": "forged", "state": "SUCCEEDED", "roles": DEEP}


def test_no_content_ends_the_recorder_or_the_list_of_jobs(alice: Member) -> None:
    notes = {f"pai-install/{name}": DEEP for name in ("roles",)}
    # words of a terminal, of HTML, and of another line
    words = "\x1b]0;owned\x07\x1b[2J<script>alert(1)</script>\r\nSUCCEEDED"
    deep = alice.made(JOB, "deep")
    deep["metadata"]["annotations"] = notes
    worded = alice.made(JOB, "worded")
    worded["metadata"]["annotations"] = {"pai-install/roles": words, "pai-install/job-name": words}
    for made in (deep, worded):
        started(alice, made)
    warned = alice.made(POD, "warned", gpus=0)
    warned["metadata"]["annotations"] = {"pai-install/warned": DEEP}
    assert is_refused(alice.create(warned))
    pod = alice.made(POD, "noted", gpus=0)
    pod["metadata"]["annotations"] = notes
    assert alice.create(pod) == ""
    for verb in (("list",), ("show", "deep"), ("show", "worded"), ("list", "--format", "json")):
        done = job_verb(alice.cluster, *verb)
        assert done.returncode == 0, (verb, done.stderr)
        assert not set("\x1b\x07\r") & set(done.stdout + done.stderr)
    assert alice.ask("delete", "job", "deep", "worded") == ""
    # the recorder still records
    assert until(lambda: shown(alice.cluster, "deep")["gone"].startswith("20"), 60)


def config_map(member: Member, name: str, data: str = "", **labels: str) -> Json:
    metadata = {"name": name, "namespace": GROUP, "labels": {USER_LABEL: member.name, **labels}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": data}}


def test_records_are_the_recorders_and_config_maps_are_limited(alice: Member) -> None:
    quota = ("resourcequota", "pai-objects", NAMESPACE)
    before = state(alice.cluster, "pai-objects", "resourcequota")
    key, used = "count/configmaps", int(before["status"]["used"]["count/configmaps"])
    assert alice.create(config_map(alice, "own")) == ""
    try:
        (record,) = items(alice.cluster, "configmaps", NAMESPACE, f"--selector={RECORD_LABEL}")[:1] or [{}]
        theirs = f"configmap/{record['metadata']['name']}" if record else "configmap/own"
        answers = {
            "forged": alice.create(config_map(alice, "forged", json.dumps(FORGED), **{RECORD_LABEL: "job"})),
            "forged later": alice.ask("label", "configmap", "own", f"{RECORD_LABEL}=job"),
            "changed": alice.patch(theirs, {"metadata": {"labels": {RECORD_LABEL: "log"}}}),
            "large": alice.create(config_map(alice, "large", "a" * 200_000)),
            "authority": alice.patch("configmap/kube-root-ca.crt", {"data": {"ca.crt": "none"}}),
        }
        assert accepted(answers) == {}
        # the same quota, nearly used up: a flood of thousands takes minutes
        alice.cluster.kubectl("patch", *quota, "--type=merge", f"--patch={spec_of({key: str(used + 3)})}")
        # requests are counted against the limit that the controller has copied
        assert until(
            lambda: state(alice.cluster, "pai-objects", "resourcequota")["status"]["hard"][key] == str(used + 3)
        )
        assert until(lambda: "exceeded quota" in alice.create(*(config_map(alice, f"flood-{it}") for it in range(9))))
        assert len(items(alice.cluster, "configmaps", NAMESPACE)) <= used + 3
    finally:
        alice.cluster.kubectl("patch", *quota, "--type=merge", f"--patch={spec_of(before['spec']['hard'])}")
        floods = (f"flood-{it}" for it in range(9))
        alice.cluster.kubectl("delete", "configmap", "own", *floods, NAMESPACE, "--ignore-not-found")


def spec_of(hard: Mapping[str, str]) -> str:
    return json.dumps({"spec": {"hard": hard}})


def test_a_pod_with_the_content_of_pause_leaves_its_pin(alice: Member) -> None:
    tag = alice.cluster.on(ONE, "ctr -n k8s.io images ls -q | grep ^registry.*/pause:").split()[0]
    made = alice.made(POD, "pulls-pause", gpus=0)
    made["spec"]["nodeSelector"] = on(ONE)
    made["spec"]["containers"][0] |= {"image": tag, "imagePullPolicy": "Always", "command": ["/pause"]}
    assert alice.create(made) == ""
    alice.cluster.kubectl("wait", "--for=condition=Ready", "pod/pulls-pause", NAMESPACE, "--timeout=300s")
    assert alice.ask("delete", "pod", "pulls-pause") == ""
    assert '"pinned": true' in alice.cluster.on(ONE, f"crictl inspecti --output json {tag}")


def test_a_job_replaces_no_object_of_a_colleague(alice: Member, members: Mapping[str, Member]) -> None:
    """Plugins of Volcano's jobs write and delete objects whose names begin with that of the job."""
    only(alice, "volcano")
    bob, cluster = members["bob"], alice.cluster
    assert bob.create(config_map(bob, "victim-svc", "of bob")) == ""
    made = alice.made(VOLCANO_JOB, "victim")
    made["spec"]["plugins"] = {"svc": []}

    def is_changed() -> bool:
        return bool(state(cluster, "victim-svc", "configmap")["data"] != {"a": "of bob"})

    assert alice.create(made) == ""
    try:
        assert not until(is_changed, 20), state(cluster, "victim-svc", "configmap")
        assert alice.ask("delete", VOLCANO_JOB.full_name, "victim") == ""
        assert not until(is_changed, 10)
    finally:
        cluster.ask("delete", "configmap/victim-svc", NAMESPACE)
