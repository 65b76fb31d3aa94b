"""Attacks of a member on a running Kueue: whatever is answered, no pod has a device that no queue counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pai_install.scheduling.device_quota import QUOTA
from pai_install.scheduling.job_kinds import JOB, JOBSET, POD, JobKind
from pai_install.scheduling.job_queue import CLUSTER_LABEL, PRIORITY_LABEL, QUEUE_LABEL
from pai_install.scheduling.pod_limits import MAX_GRACE_S
from pai_install.site.groups import RECORD_LABEL, USER_LABEL
from tests.integration.users.attacks import JOBS, NUMBERS, OF_JOBS, PODS, templates_of, too_many

from .conftest import Cluster, until
from .job_site import JOBS_GROUP as GROUP
from .job_site import MASTER, ONE, OTHER
from .test_jobs import GPU_NAME, shown
from .test_jobs import job as job_verb
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
ALL = "jobs,jobsets,pods"
SLEEP = "trap 'exit 0' TERM; sleep 600 & wait"
# kubectl would ask for it otherwise
JOB_PATH = f"/apis/batch/v1/namespaces/{GROUP}/jobs"


@dataclass(frozen=True)
class Member:
    """A user of the group with a kubeconfig. cluster: as its administrator sees it. image: that all machines have."""

    cluster: Cluster
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
        about = {"apiVersion": kind.api, "kind": kind.name, "metadata": metadata}
        if kind is POD:
            return {**about, "spec": spec}
        metadata["labels"] |= {QUEUE_LABEL: QUEUE, CLUSTER_LABEL: QUEUE, PRIORITY_LABEL: "test"}
        one = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": template}
        if kind is JOB:
            return {**about, "spec": {**one, "suspend": True}}
        return {**about, "spec": {"replicatedJobs": [{"name": "a", "template": {"metadata": own, "spec": one}}]}}


@pytest.fixture(scope="module")
def members(job_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Member]]:
    """Both of them; gone afterwards."""
    image = job_cluster.on(ONE, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    found = {}
    try:
        for name in MEMBERS:
            file = tmp_path_factory.mktemp("members") / f"{name}.kubeconfig"
            for words in (("add", name, "--group", GROUP, "--yes"), ("kubeconfig", name, "--output", str(file))):
                made = user(job_cluster, *words)
                assert made.returncode == 0, made.stderr
            found[name] = Member(job_cluster, name, file, image)
        yield found
    finally:
        for name in MEMBERS:
            user(job_cluster, "remove", name, "--yes")


@pytest.fixture
def alice(members: Mapping[str, Member]) -> Iterator[Member]:
    """The attacker, before and after whom the group has no job; services go on, and no device was uncounted."""
    cluster = members["alice"].cluster
    end_all(cluster)
    before = starts(cluster)
    yield members["alice"]
    assert until(lambda: uncounted(cluster) <= 0, 20), (held(cluster), counted(cluster))
    assert on_control_plane(cluster) == []
    end_all(cluster)
    assert until(lambda: counted(cluster) == 0, 30), "the queue counts what is gone"
    assert starts(cluster) == before


def end_all(cluster: Cluster) -> None:
    cluster.kubectl("delete", ALL, "--all", NAMESPACE, "--timeout=60s")


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


def counted(cluster: Cluster) -> int:
    """Devices that Kueue has given to jobs of all queues."""
    return sum(
        int(resource["total"])
        for queue in items(cluster, "clusterqueues")
        for flavor in queue.get("status", {}).get("flavorsReservation", [])
        for resource in flavor["resources"]
        if resource["name"] == GPU_NAME
    )


def uncounted(cluster: Cluster) -> int:
    """Devices that pods have and no queue counts. Read first: a queue counts a job before its pods start."""
    return sum(held(cluster).values()) - counted(cluster)


def running(cluster: Cluster, name: str) -> list[str]:
    """Pods of a job that run."""
    found = items(cluster, "pods", NAMESPACE, "--field-selector=status.phase=Running")
    return [pod for it in found if (pod := str(it["metadata"]["name"])).startswith(f"{name}-")]


def on_control_plane(cluster: Cluster) -> list[str]:
    return [it["metadata"]["name"] for it in items(cluster, "pods", NAMESPACE) if it["spec"].get("nodeName") == MASTER]


def starts(cluster: Cluster) -> tuple[int, str]:
    """How often controllers of jobs and the recorder were started."""
    pods = [*items(cluster, "pods", "--namespace=pai-kueue"), *items(cluster, "pods", "--namespace=pai-jobset")]
    counts = [it["restartCount"] for pod in pods for it in pod["status"]["containerStatuses"]]
    assert counts
    recorder = cluster.on(MASTER, "systemctl show pai-job-recorder --property=NRestarts,ActiveState")
    assert "ActiveState=active" in recorder
    return sum(counts), recorder


def state(cluster: Cluster, name: str, kind: str = "job") -> Json:
    found: Json = json.loads(cluster.kubectl("get", kind, name, NAMESPACE, "--output=json"))
    return found


def started(member: Member, made: Json, pods: int = 1) -> Json:
    """Creates a good job; as the cluster has it, once its pods run."""
    assert member.create(made) == ""
    name = made["metadata"]["name"]
    assert until(lambda: len(running(member.cluster, name)) == pods, 60), member.cluster.kubectl(
        "get", "workloads,pods", NAMESPACE, "--output=yaml"
    )
    return state(member.cluster, name, made["kind"])


def left(cluster: Cluster) -> list[str]:
    return cluster.kubectl("get", ALL, NAMESPACE, "--output=name").split()


def is_refused(answer: str) -> bool:
    return any(words in answer for words in REFUSED)


def accepted(answers: Mapping[str, str]) -> dict[str, str]:
    """The attacks that were not refused, or for another reason than what they ask for."""
    return {name: answer[:400] for name, answer in answers.items() if not is_refused(answer)}


def evil(member: Member) -> Iterator[tuple[str, Json]]:
    """Each attack on each kind that Kueue's cluster has, as an object."""
    for kind in (JOB, JOBSET, POD):
        for name, change in {**PODS, **JOBS, **({} if kind is POD else NUMBERS)}.items():
            if kind is not JOB or name not in OF_JOBS:
                made = member.made(kind, f"{kind.name.lower()}-{name}"[:50], gpus=int(kind is not POD))
                change(made, kind)
                yield made["metadata"]["name"], made


def about(name: str, lines: list[str]) -> str:
    """The answer to one of many objects."""
    # Kueue looks for the owner before any policy, and names that alone
    webhook = f'"m{name.partition("-")[0]}.kb.io"' if name.endswith("-fake-owner") else f'"{name}"'
    return next((line for line in lines if f'"{name}"' in line or webhook in line), "")


def test_hostile_jobs_and_pods_are_refused_beside_the_webhooks_of_kueue(alice: Member) -> None:
    """Kueue changes objects before policies see them. The list is that of the API server without controllers."""
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


def unqueued(member: Member) -> Iterator[Json]:
    """Jobs and pods with devices that look for a way around the queue."""
    for kind in (JOB, JOBSET):
        kinds = kind.name.lower()
        for name, value in (("none", None), ("empty", ""), ("lost", "nowhere"), ("other", "team")):
            made = member.made(kind, f"{kinds}-{name}")
            made["metadata"]["labels"].pop(CLUSTER_LABEL)
            yield label(made, {QUEUE_LABEL: value})
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
        side = member.made(kind, f"{kinds}-side", gpus=0)
        for template in templates_of(kind, side):
            first = deepcopy(template["spec"]["containers"][0])
            first |= {"name": "side", "restartPolicy": "Always", "resources": {"limits": {GPU_NAME: "1"}}}
            template["spec"]["initContainers"] = [first]
        yield side
    partial = member.made(JOB, "job-partial", gpus=8, pods=5)
    partial["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    yield partial
    child = member.made(JOBSET, "jobset-child")
    label(child, {QUEUE_LABEL: None})
    child["spec"]["replicatedJobs"][0]["template"]["metadata"]["labels"][QUEUE_LABEL] = QUEUE
    yield child
    yield member.made(POD, "pod-bare")
    yield label(member.made(POD, "pod-queue"), {QUEUE_LABEL: QUEUE})
    group = label(member.made(POD, "pod-group"), {QUEUE_LABEL: QUEUE, "kueue.x-k8s.io/pod-group-name": "own"})
    group["metadata"]["labels"]["kueue.x-k8s.io/managed"] = "true"
    yield group
    first = member.made(POD, "pod-init", gpus=0)
    device = {**deepcopy(first["spec"]["containers"][0]), "name": "first", "resources": {"limits": {GPU_NAME: "1"}}}
    first["spec"]["initContainers"] = [device]
    yield first


def test_no_way_around_the_queue_has_a_device(alice: Member) -> None:
    """Some are refused, some wait, and what runs is counted."""
    attacks = list(unqueued(alice))
    assert len(attacks) >= 25
    alice.create(*attacks)
    # Kueue takes the jobs of a queue in turn
    started(alice, alice.made(JOB, "last", gpus=0))
    assert uncounted(alice.cluster) <= 0, (held(alice.cluster), counted(alice.cluster))
    assert not {name for name in held(alice.cluster) if name.startswith("pod-")}
    assert sum(held(alice.cluster).values()) <= 16


@pytest.mark.parametrize("kind", [JOB, JOBSET], ids=["job", "jobset"])
@pytest.mark.parametrize("queued", [True, False], ids=["queued", "unqueued"])
def test_a_job_that_waits_gets_no_devices_later(alice: Member, kind: JobKind, queued: bool) -> None:
    """Kueue counts a job as it was created; without a queue it never sees it."""
    made = alice.made(kind, "later", gpus=17 if queued else 0)
    made["spec"]["suspend"] = True
    if not queued:
        label(made, {QUEUE_LABEL: "nowhere", CLUSTER_LABEL: None})
    assert alice.create(made) == ""
    what = f"{kind.name.lower()}/later"
    larger = alice.made(kind, "later", gpus=4)
    larger["spec"]["suspend"] = False
    moved = {"metadata": {"labels": {QUEUE_LABEL: None, CLUSTER_LABEL: None}}, "spec": {"suspend": False}}
    more = {"parallelism": 4} if kind is JOB else {"replicatedJobs": [{"name": "a", "replicas": 4}]}
    with_server = ("apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-")
    answers = {
        "merge": alice.patch(what, {"spec": larger["spec"]}),
        "apply": alice.ask(*with_server, entry=larger),
        "away from its queue": alice.patch(what, moved),
        "started": alice.patch(what, {"spec": {"suspend": False}}),
        "more": alice.patch(what, {"spec": {**more, "suspend": False}}),
        "scaled": alice.ask("scale", what, "--replicas=4"),
        "priority": alice.patch(what, {"metadata": {"labels": {PRIORITY_LABEL: "crit"}}}),
    }
    found = {name: answer for name, answer in answers.items() if not answer}
    assert set(found) <= {"priority"}, answers
    assert running(alice.cluster, "later") == []
    assert held(alice.cluster) == {}


def test_a_job_that_runs_is_counted_until_its_pods_end(alice: Member) -> None:
    """Orphans, other owners, other queues, parts that are deleted: the job is as it was, and then ends whole."""
    job = started(alice, alice.made(JOB, "victim", gpus=2))
    (pod,) = running(alice.cluster, "victim")
    (workload,) = items(alice.cluster, "workloads", NAMESPACE)
    workload_name = workload["metadata"]["name"]
    own = {"apiVersion": "batch/v1", "kind": "Job", "name": "victim", "uid": job["metadata"]["uid"]}
    raw = ("delete", "--raw", f"{JOB_PATH}/victim")
    by_body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}
    answers = {
        "orphan": alice.ask("delete", "job", "victim", "--cascade=orphan"),
        "orphan by default": alice.ask(*raw),
        "orphan by body": alice.ask(*raw, "-f", "-", entry=by_body),
        "orphans of all": alice.ask("delete", "--raw", f"{JOB_PATH}?propagationPolicy=Orphan"),
        "orphan finalizer": alice.patch("job/victim", {"metadata": {"finalizers": ["orphan"]}}),
        "no queue": alice.ask("label", "job", "victim", f"{QUEUE_LABEL}-"),
        "other queue": alice.ask("label", "job", "victim", "--overwrite", f"{QUEUE_LABEL}=team"),
        "other virtual cluster": alice.ask("label", "job", "victim", "--overwrite", f"{CLUSTER_LABEL}=team"),
        "of a notebook": alice.ask("label", "job", "victim", "--overwrite", f"{CLUSTER_LABEL}=notebook"),
        "owner": alice.patch("job/victim", {"metadata": {"ownerReferences": [{**own, "controller": True}]}}),
        "devices": alice.patch("job/victim", {"spec": alice.made(JOB, "victim", gpus=8)["spec"]}),
        "parallelism": alice.patch("job/victim", {"spec": {"parallelism": 8, "completions": 8}}),
        "suspended": alice.patch("job/victim", {"spec": {"suspend": True}}),
        "pod": alice.ask("delete", "pod", pod, "--grace-period=120", "--wait=false"),
        "pod without its owner": alice.patch(f"pod/{pod}", {"metadata": {"ownerReferences": None}}),
        "pod without its labels": alice.patch(f"pod/{pod}", {"metadata": {"labels": {"job-name": None}}}),
        "image of the pod": alice.patch(f"pod/{pod}", {"spec": {"containers": [{"name": "main", "image": "none"}]}}),
        "status": alice.ask(
            "patch", "job", "victim", "--subresource=status", "--type=merge", '--patch={"status":{"active":0}}'
        ),
        "workload": alice.ask("delete", "workload", workload_name),
        "workload's state": alice.patch(f"workload/{workload_name}", {"spec": {"active": False}}),
        "workloads": alice.ask("delete", "workloads", "--all"),
        "queue": alice.ask("delete", "localqueue", QUEUE),
        "quota": alice.patch(f"clusterqueue/{QUEUE}", {"spec": {"stopPolicy": "Hold"}}),
    }
    assert accepted(answers) == {}
    assert uncounted(alice.cluster) == 0
    assert running(alice.cluster, "victim") == [pod]
    assert alice.ask("delete", "job", "victim") == ""
    assert until(lambda: (counted(alice.cluster), held(alice.cluster)) == (0, {}), 60)


def on(machine: str) -> Json:
    return {"kubernetes.io/hostname": machine}


@contextmanager
def limited(cluster: Cluster, gpus: int) -> Iterator[None]:
    """The queue and the group have fewer devices than the machines."""
    queue, quota = f"clusterqueue/{QUEUE}", (f"resourcequota/{QUOTA}", NAMESPACE)
    groups = json.loads(cluster.kubectl("get", queue, "--output=json"))["spec"]["resourceGroups"]
    hard = json.loads(cluster.kubectl("get", *quota, "--output=json"))["spec"]["hard"]
    fewer = deepcopy(groups)
    for one in (it for group in fewer for flavor in group["flavors"] for it in flavor["resources"]):
        if one["name"] == GPU_NAME:
            one |= {"nominalQuota": str(gpus), "lendingLimit": str(gpus)}
    try:
        cluster.kubectl("patch", queue, "--type=merge", f"--patch={json.dumps({'spec': {'resourceGroups': fewer}})}")
        cluster.kubectl("patch", *quota, "--type=merge", f"--patch={spec_of({f'requests.{GPU_NAME}': str(gpus)})}")
        yield
    finally:
        cluster.kubectl("patch", queue, "--type=merge", f"--patch={json.dumps({'spec': {'resourceGroups': groups}})}")
        cluster.kubectl("patch", *quota, "--type=merge", f"--patch={spec_of(hard)}")


def test_jobs_that_end_slowly_and_new_ones_have_no_more_than_the_quota(alice: Member) -> None:
    """Kueue counts a job until it is deleted. The API server counts its pods until they are gone."""
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
        assert until(lambda: counted(cluster) == most, 30)
        assert not until(lambda: sum(held(cluster).values()) > most, 10), held(cluster)
        (pod,) = running(cluster, "slow")
        assert "part of a job" in alice.ask("delete", "pod", pod, "--grace-period=0", "--force")
        cluster.kubectl("delete", "pod", pod, NAMESPACE, "--grace-period=1")
        # the Job's controller tries again
        assert until(lambda: len(running(cluster, "again")) == 1, 90)
        assert counted(cluster) == sum(held(cluster).values()) == most


def test_a_part_of_a_jobset_is_not_made_again_while_its_pods_end(alice: Member) -> None:
    """The Jobs of a JobSet have the label of its owner, and JobSet makes a deleted one again at once."""
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
    assert uncounted(alice.cluster) == 0


def test_no_job_is_a_part_of_ones_own_job(alice: Member) -> None:
    """Kueue leaves a part to its owner, and lists leave it out."""
    for kind in (JOB, JOBSET):
        name = f"small-{kind.name.lower()}"
        real = started(alice, alice.made(kind, name))["metadata"]
        owner = {"apiVersion": kind.api, "kind": kind.name, "name": name, "uid": real["uid"], "controller": True}
        answers = {}
        for part in (JOB, JOBSET, POD):
            made = alice.made(part, f"part-{part.name.lower()}", gpus=6)
            made["metadata"]["ownerReferences"] = [owner]
            answers[part.name] = alice.create(label(made, {QUEUE_LABEL: None, CLUSTER_LABEL: None}))
        assert accepted(answers) == {}
    assert sum(held(alice.cluster).values()) == 2 == counted(alice.cluster)
    listed = job_verb(alice.cluster, "list", "--format", "json")
    assert {"small-job", "small-jobset"} <= {it["name"] for it in json.loads(listed.stdout)["jobs"]}


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


def test_records_are_the_recorders_and_config_maps_are_limited(alice: Member) -> None:
    def config_map(name: str, data: str = "", **labels: str) -> Json:
        metadata = {"name": name, "namespace": GROUP, "labels": {USER_LABEL: "alice", **labels}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": data}}

    quota = ("resourcequota", "pai-objects", NAMESPACE)
    before = json.loads(alice.cluster.kubectl("get", *quota, "--output=json"))
    key, used = "count/configmaps", int(before["status"]["used"]["count/configmaps"])
    assert alice.create(config_map("own")) == ""
    try:
        (record,) = items(alice.cluster, "configmaps", NAMESPACE, f"--selector={RECORD_LABEL}")[:1] or [{}]
        theirs = f"configmap/{record['metadata']['name']}" if record else "configmap/own"
        answers = {
            "forged": alice.create(config_map("forged", json.dumps(FORGED), **{RECORD_LABEL: "job"})),
            "forged later": alice.ask("label", "configmap", "own", f"{RECORD_LABEL}=job"),
            "changed": alice.patch(theirs, {"metadata": {"labels": {RECORD_LABEL: "log"}}}),
            "large": alice.create(config_map("large", "a" * 200_000)),
            "authority": alice.patch("configmap/kube-root-ca.crt", {"data": {"ca.crt": "none"}}),
        }
        assert accepted(answers) == {}
        # the same quota, nearly used up: a flood of thousands takes minutes
        alice.cluster.kubectl("patch", *quota, "--type=merge", f"--patch={spec_of({key: str(used + 3)})}")
        assert until(lambda: "exceeded quota" in alice.create(*(config_map(f"flood-{it}") for it in range(9))), 20)
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
    alice.cluster.kubectl("wait", "--for=condition=Ready", "pod/pulls-pause", NAMESPACE, "--timeout=60s")
    assert alice.ask("delete", "pod", "pulls-pause") == ""
    assert '"pinned": true' in alice.cluster.on(ONE, f"crictl inspecti --output json {tag}")
