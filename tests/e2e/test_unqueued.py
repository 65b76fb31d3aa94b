"""The limit of pods outside queues on a cluster whose controllers count, with Kueue, as a member meets it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .conftest import EXISTING, Cluster, equip, until
from .test_jobs import job as job_verb
from .test_jobs import shown
from .test_scheduler import vc_apply
from .test_users import ask, user

pytestmark = [pytest.mark.lab, pytest.mark.soak]

Json = dict[str, Any]
GROUP, CLASS = "vision", "pai-unqueued"
EXCEEDED = f"exceeded quota: {CLASS}"
# of a policy, of the kind itself, and of the admission of priorities
REFUSED = ("ValidatingAdmissionPolicy", "immutable", "no PriorityClass", "not permitted")
QUEUE = "kueue.x-k8s.io/queue-name"
# Kueue would put jobs without a queue into one of the name default
SERVICES = """\
scheduler: {type: kueue}
virtual-clusters:
  - {name: research, quota: [{sku: lab-gpu, machines: 1}], groups: [vision]}
authentication:
  group-manager:
    grouplist:
      - {groupname: vision}
"""
LIMITED = "jobs: {{unqueued: {{cores: {cores}, memory: 512Mi}}}}\n"
# all of what a limit may touch
KINDS = (
    "resourcequotas,limitranges,priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings,"
    "mutatingadmissionpolicies,clusterroles,roles,rolebindings"
)
# kinds of pods that last, none of which a member has
FOREIGN = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "CronJob": "batch/v1",
}


@dataclass(frozen=True)
class Member:
    """Alice of the group, on a cluster with Kueue. before: objects without a limit."""

    cluster: Cluster
    file: Path
    image: str
    before: Mapping[str, Json]

    def ask(self, *words: str, entry: Json | None = None) -> str:
        """Why a request is refused, empty where it is not."""
        done = ask(self.cluster, self.file, *words, entry=entry)
        return "" if done.returncode == 0 else done.stderr

    def create(self, *objects: Json) -> str:
        """Why the objects are refused."""
        return self.ask("create", "-f", "-", entry={"apiVersion": "v1", "kind": "List", "items": list(objects)})

    def write(self, cores: int | None) -> None:
        """The site with a limit."""
        limit = "" if cores is None else LIMITED.format(cores=cores)
        services_of(self.cluster).write_text(SERVICES + limit)


def services_of(cluster: Cluster) -> Path:
    return cluster.site / "services-configuration.yaml"


@pytest.fixture(scope="module")
def member(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Member]:
    """The cluster with a scheduler and a limit of one core; without them again afterwards."""
    services = services_of(cluster)
    services.write_text(SERVICES)
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        file = tmp_path_factory.mktemp("member") / "alice.kubeconfig"
        for words in (("add", "alice", "--group", GROUP, "--yes"), ("kubeconfig", "alice", "--output", str(file))):
            made = user(cluster, *words)
            assert made.returncode == 0, made.stderr
        busybox = cluster.on(EXISTING, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
        found = Member(cluster, file, busybox, objects(cluster))
        found.write(1)
        _, done = vc_apply(cluster)
        assert done.returncode == 0, done.stdout + done.stderr
        yield found
    finally:
        end(cluster)
        user(cluster, "remove", "alice", "--yes")
        services.unlink()
        report = cluster.converge()
        cluster.kubectl("delete", "namespace", GROUP, "pai-users", "--ignore-not-found", "--wait=false")
    assert report["ok"], report["stderr"]


@pytest.fixture
def empty(member: Member) -> Iterator[Member]:
    """The group without jobs, before and after, and its quota without any use."""
    end(member.cluster)
    assert until(lambda: used(member.cluster) in ((0.0, 0.0), None), 60), used(member.cluster)
    yield member
    end(member.cluster)


def end(cluster: Cluster) -> None:
    for kind in ("jobs.batch", "jobsets.jobset.x-k8s.io", "jobs.batch.volcano.sh", "pods"):
        words = ("--all", f"--namespace={GROUP}", "--ignore-not-found", "--timeout=60s")
        cluster.ask("delete", kind, *words, *(["--grace-period=0", "--force"] if kind == "pods" else []))


def objects(cluster: Cluster) -> dict[str, Json]:
    """Kind, namespace, and name -> what was asked for of it."""
    found = json.loads(cluster.kubectl("get", KINDS, "--all-namespaces", "--output=json"))["items"]
    return {
        f"{it['kind']} {it['metadata'].get('namespace', '')}/{it['metadata']['name']}": {
            key: value for key, value in it.items() if key not in ("metadata", "status")
        }
        for it in found
    }


def differing(before: Mapping[str, Json], after: Mapping[str, Json]) -> set[str]:
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


def used(cluster: Cluster) -> tuple[float, float] | None:
    """Cores and MiB that the quota counts; None without the quota."""
    done = cluster.ask("get", "resourcequota", CLASS, f"--namespace={GROUP}", "--output=json")
    found = json.loads(done.stdout).get("status", {}).get("used", {}) if done.returncode == 0 else None
    if found is None:
        return None
    return amount(found.get("requests.cpu", "0")), amount(found.get("requests.memory", "0"))


def amount(text: str) -> float:
    """Cores, or MiB, of a quantity."""
    units = {"m": 0.001, "Mi": 1, "Gi": 1024, "Ki": 1 / 1024}
    unit = next((it for it in units if text.endswith(it)), "")
    return float(text.removesuffix(unit)) * units.get(unit, 1)


def template(member: Member, cpu: str, memory: str = "64Mi", **spec: Any) -> Json:
    container = {
        "name": "main",
        "image": member.image,
        "command": ["/bin/busybox", "sleep", "600"],
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    fields = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "priorityClassName": CLASS, **spec}
    return {"metadata": {"labels": {"pai-install/user": "alice"}}, "spec": {**fields, "containers": [container]}}


def pod(member: Member, name: str, cpu: str, memory: str = "64Mi", **spec: Any) -> Json:
    made = template(member, cpu, memory, **spec)
    metadata = {**made["metadata"], "name": name, "namespace": GROUP}
    return {"apiVersion": "v1", "kind": "Pod", **made, "metadata": metadata}


def batch(member: Member, name: str, cpu: str, pods: int = 1, labels: Mapping[str, str] = {}, **spec: Any) -> Json:
    metadata = {"name": name, "namespace": GROUP, "labels": {"pai-install/user": "alice", **labels}}
    whole = {"parallelism": pods, "completions": pods, "template": template(member, cpu), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": whole}


def running(cluster: Cluster) -> dict[str, float]:
    """Pod of the group that runs -> cores that it requests."""
    found = json.loads(cluster.kubectl("get", "pods", f"--namespace={GROUP}", "--output=json"))["items"]
    return {
        it["metadata"]["name"]: amount(it["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for it in found
        if it["status"]["phase"] == "Running"
    }


def listed(cluster: Cluster, name: str) -> Json:
    done = job_verb(cluster, "list", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows: Sequence[Json] = json.loads(done.stdout)["jobs"]
    return next(row for row in rows if row["name"] == name)


def test_within_the_limit_a_pod_and_a_job_run_and_are_counted(empty: Member) -> None:
    assert empty.create(pod(empty, "small", "300m"), batch(empty, "small", "300m")) == ""
    assert until(lambda: len(running(empty.cluster)) == 2), empty.cluster.kubectl("get", "pods", "-n", GROUP)
    assert until(lambda: used(empty.cluster) == (0.6, 128.0)), used(empty.cluster)


def test_beyond_the_limit_a_pod_is_refused_and_a_job_waits_with_its_reason(empty: Member) -> None:
    assert EXCEEDED in empty.create(pod(empty, "large", "1100m"))
    assert EXCEEDED in empty.create(pod(empty, "large", "100m", "600Mi"))
    assert empty.create(batch(empty, "large", "1100m")) == ""
    assert until(lambda: EXCEEDED in shown(empty.cluster, "large")["why"], 60), shown(empty.cluster, "large")
    assert shown(empty.cluster, "large")["state"] == "WAITING"
    assert EXCEEDED in listed(empty.cluster, "large")["why"], listed(empty.cluster, "large")
    assert running(empty.cluster) == {}


def test_pods_of_a_job_share_the_limit(empty: Member) -> None:
    """Three of five fit. The others come as these end, and no change of the job brings them earlier."""
    assert empty.create(batch(empty, "wide", "300m", 5)) == ""
    assert until(lambda: len(running(empty.cluster)) == 3), empty.cluster.kubectl("get", "pods", "-n", GROUP)
    for change in ({"parallelism": 9}, {"template": {"spec": {"priorityClassName": "crit"}}}):
        why = empty.ask("patch", "job", "wide", "-n", GROUP, "--type=merge", f"--patch={json.dumps({'spec': change})}")
        assert any(words in why for words in REFUSED), (change, why)
    assert empty.ask("scale", "job", "wide", "-n", GROUP, "--replicas=9") != ""
    assert sum(running(empty.cluster).values()) <= 1


def test_many_at_once_get_no_more(empty: Member) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: empty.create(pod(empty, f"many-{number}", "250m")), range(12)))
    number = answers.count("")
    assert 1 <= number <= 4, answers
    assert until(lambda: used(empty.cluster) == (0.25 * number, 64.0 * number)), used(empty.cluster)


def test_a_job_that_waits_does_not_change_its_pods(empty: Member) -> None:
    waiting = batch(empty, "later", "200m", suspend=True)
    assert empty.create(waiting) == ""
    larger = json.dumps({"spec": {"template": template(empty, "1800m", priorityClassName="test")}})
    for patch in (larger, json.dumps({"spec": {"suspend": False, "template": template(empty, "1800m")}})):
        why = empty.ask("patch", "job", "later", "-n", GROUP, "--type=merge", f"--patch={patch}")
        assert any(words in why for words in REFUSED), (patch, why)
    assert empty.ask("patch", "job", "later", "-n", GROUP, "--type=merge", '--patch={"spec":{"suspend":false}}') == ""
    assert until(lambda: list(running(empty.cluster).values()) == [0.2]), running(empty.cluster)


@pytest.mark.parametrize("name", ["", "test", "crit", "system-node-critical"])
def test_no_other_class_is_outside_the_limit(empty: Member, name: str) -> None:
    """Neither for pods nor for jobs, nor for kinds that last."""
    fields = {"priorityClassName": name} if name else {}
    bare = pod(empty, "bare", "1500m", **fields)
    bare["spec"].pop("priorityClassName") if not name else None
    job = batch(empty, "bare", "1500m")
    job["spec"]["template"]["spec"] = bare["spec"]
    for made in (bare, job):
        why = empty.create(made)
        assert any(words in why for words in REFUSED), (made["kind"], why)
    assert running(empty.cluster) == {}


def test_kinds_that_make_pods_later_are_none_of_a_member(empty: Member) -> None:
    for kind, version in FOREIGN.items():
        metadata = {"name": "lasts", "namespace": GROUP}
        made = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}}
        assert "forbidden" in empty.ask("create", "--validate=false", "-f", "-", entry=made), kind


def test_a_queue_that_is_not_there_starts_nothing(empty: Member) -> None:
    """With Kueue, the label of a queue is what takes a job out of the limit."""
    made = batch(empty, "lost", "1500m", labels={QUEUE: "nowhere"})
    made["spec"]["template"]["spec"].pop("priorityClassName")
    assert empty.create(made) == ""
    away = json.dumps({"metadata": {"labels": {QUEUE: None}}, "spec": {"suspend": False}})
    why = empty.ask("patch", "job", "lost", "-n", GROUP, "--type=merge", f"--patch={away}")
    assert any(words in why for words in REFUSED), why
    # Kueue suspends it again.
    empty.ask("patch", "job", "lost", "-n", GROUP, "--type=merge", '--patch={"spec":{"suspend":false}}')
    suspended = ("get", "job", "lost", "-n", GROUP, "--output=jsonpath={.spec.suspend}")
    assert until(lambda: empty.cluster.kubectl(*suspended) == "true" and not running(empty.cluster))
    assert until(lambda: shown(empty.cluster, "lost")["state"] == "WAITING"), shown(empty.cluster, "lost")


def test_jobs_in_queues_are_not_counted(empty: Member) -> None:
    """The limit is used up, and a job of the queue runs all the same."""
    assert empty.create(pod(empty, "all", "1")) == ""
    made = batch(empty, "queued", "100m", labels={QUEUE: "research"})
    made["spec"]["template"]["spec"].pop("priorityClassName")
    made["spec"]["suspend"] = True
    assert empty.create(made) == ""
    assert until(lambda: len(running(empty.cluster)) == 2), empty.cluster.kubectl(
        "get", "pods", "-n", GROUP, "-o", "yaml"
    )
    assert used(empty.cluster) == (1.0, 64.0)


def test_another_limit_changes_nothing_else(empty: Member) -> None:
    before = objects(empty.cluster)
    empty.write(2)
    _, done = vc_apply(empty.cluster)
    assert done.returncode == 0, done.stdout + done.stderr
    assert differing(before, objects(empty.cluster)) == {f"ResourceQuota {GROUP}/{CLASS}"}
    assert until(lambda: empty.create(pod(empty, "large", "1100m")) == "")
    again = empty.cluster.converge()
    assert sum(host["changed"] for host in again["hosts"].values()) == 0
    assert empty.cluster.to_change() == []


def test_without_the_limit_all_is_as_it_was(empty: Member) -> None:
    empty.write(None)
    _, done = vc_apply(empty.cluster)
    assert done.returncode == 0, done.stdout + done.stderr
    assert differing(empty.before, objects(empty.cluster)) == set()
    bare = pod(empty, "bare", "1100m")
    bare["spec"].pop("priorityClassName")
    assert until(lambda: empty.create(bare) == ""), empty.create(bare)
    assert empty.cluster.to_change() == []
