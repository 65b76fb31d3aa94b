"""Attacks of a member on the quota, on colleagues, and on nodes: each kind of job and each operation on it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from pai_install.jobs.compile.names import CLUSTER
from pai_install.scheduling.job_queue import QUEUE_LABEL
from pai_install.users.model import OWNER
from tests.integration.control_plane import Json
from tests.integration.users.conftest import Users
from tests.integration.users.test_rights import NAMES, POD, asked, gone, job, pod, ready, template

MERGE = "application/merge-patch+json"
DEVICES = {"limits": {"nvidia.com/gpu": "4"}}
GREEDY = {**POD, "containers": [{"name": "main", "image": "none", "resources": DEVICES}]}
OWN = {"apiVersion": "batch/v1", "kind": "Job", "name": "own", "uid": "00000000-0000-0000-0000-000000000001"}


def path_of(kind: str, name: str = "victim") -> str:
    resource, _, group = kind.partition(".")
    return f"/apis/{group}/v1/namespaces/vision/{resource}/{name}"


def refused(answer: str) -> bool:
    """Whether a policy refused the request; any other answer would prove nothing."""
    return "ValidatingAdmissionPolicy" in answer


def container(**values: Any) -> Json:
    return {**POD, "containers": [{"name": "main", "image": "none", **values}]}


# name -> spec of a pod that no member may have
PODS: dict[str, Json] = {
    "system-priority": {**POD, "priorityClassName": "system-node-critical"},
    "cluster-priority": {**POD, "priorityClassName": "system-cluster-critical"},
    "node-name": {**POD, "nodeName": "master"},
    "tolerate-everything": {**POD, "tolerations": [{"operator": "Exists"}]},
    "tolerate-control-plane": {
        **POD,
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
    },
    "tolerate-cordon": {**POD, "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
    "probe-host": container(livenessProbe={"httpGet": {"host": "127.0.0.1", "port": 10248}}),
    "probe-host-tcp": container(startupProbe={"tcpSocket": {"host": "127.0.0.1", "port": 10250}}),
    "hook-host": container(lifecycle={"postStart": {"httpGet": {"host": "127.0.0.1", "port": 10248}}}),
    "hook-host-init": {
        **POD,
        "initContainers": [
            {
                "name": "a",
                "image": "none",
                "restartPolicy": "Always",
                "lifecycle": {"preStop": {"tcpSocket": {"host": "10.0.0.1", "port": 22}}},
            }
        ],
    },
    "endless-grace": {**POD, "terminationGracePeriodSeconds": 10**9},
    "large-command": container(command=["sh", "-c", "a" * 70_000]),
    "large-arguments": container(args=["a" * 700] * 100),
    "large-environment": container(env=[{"name": f"E{number}", "value": "a" * 700} for number in range(100)]),
    "raw-packets": container(securityContext={"capabilities": {"add": ["NET_RAW"]}}),
}


@pytest.mark.parametrize("attack", PODS)
def test_a_pod_with_powers(users: Users, attack: str) -> None:
    assert refused(users.of["alice"].create(pod("evil", "alice", PODS[attack])))


@pytest.mark.parametrize("attack", PODS)
@pytest.mark.parametrize("kind", NAMES)
def test_a_job_of_pods_with_powers(users: Users, kind: str, attack: str) -> None:
    ready(users.of["alice"], path_of(kind))
    assert refused(users.of["alice"].create(job(kind, "evil", "alice", template("alice", PODS[attack]))))


def with_owner(it: Json) -> None:
    it["metadata"]["ownerReferences"] = [{**OWN, "controller": True}]


def with_finalizer(it: Json) -> None:
    it["metadata"]["finalizers"] = ["orphan"]


def with_endless_finalizer(it: Json) -> None:
    it["metadata"]["finalizers"] = ["example.com/keep"]


def with_large_notes(it: Json) -> None:
    it["metadata"]["annotations"] = {"example.com/a": "b" * 40_000}


def in_templates(value: Any, change: Callable[[Json], None]) -> None:
    """Changes each pod template of a job."""
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, dict) and "containers" in item.get("spec", {}):
            change(item)
        else:
            in_templates(item, change)


CREATIONS: dict[str, Callable[[Json], None]] = {
    "fake-owner": with_owner,
    "orphan-finalizer": with_finalizer,
    "endless-finalizer": with_endless_finalizer,
    "large-annotations": with_large_notes,
}
OF_TEMPLATES = ("endless-finalizer", "large-annotations")


@pytest.mark.parametrize("attack", CREATIONS)
@pytest.mark.parametrize("kind", [*NAMES, "pods"])
def test_a_job_that_hides(users: Users, kind: str, attack: str) -> None:
    made = pod("evil", "alice") if kind == "pods" else job(kind, "evil", "alice", template("alice"))
    CREATIONS[attack](made)
    assert refused(users.of["alice"].create(made))


@pytest.mark.parametrize("attack", OF_TEMPLATES)
@pytest.mark.parametrize("kind", NAMES)
def test_a_job_whose_pods_never_end_or_fill_etcd(users: Users, kind: str, attack: str) -> None:
    made = job(kind, "evil", "alice", template("alice"))
    in_templates(made["spec"], CREATIONS[attack])
    assert refused(users.of["alice"].create(made))


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_an_object_that_nobody_could_delete(users: Users, kind: str) -> None:
    metadata = {"name": "alice.x", "namespace": "vision", "labels": {OWNER: "alice"}}
    made = {"apiVersion": "v1", "kind": kind, "metadata": {**metadata, "finalizers": ["example.com/keep"]}}
    assert refused(users.of["alice"].create(made))


@pytest.mark.parametrize("way", ["query", "body"])
def test_a_pod_that_ends_later_than_its_queue_counts_it(users: Users, way: str) -> None:
    alice, path = users.of["alice"], "/api/v1/namespaces/vision/pods/slow"
    # one that waits for a node ends at once
    assert users.admin.create(pod("slow", "alice", {**POD, "nodeName": "worker"})) == ""
    try:
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 1_000_000}
        query = way == "query"
        asks = ("DELETE", f"{path}?gracePeriodSeconds=1000000") if query else ("DELETE", path, options)
        assert refused(asked(alice, *asks))
    finally:
        users.admin.ask("DELETE", f"{path}?gracePeriodSeconds=0")


def test_a_pod_of_a_job_that_would_be_replaced_while_it_ends(users: Users) -> None:
    """The Job makes another at once, and the deleted one holds its devices for as long as it likes to."""
    path = "/api/v1/namespaces/vision/pods/part"
    part = pod("part", "alice")
    part["metadata"]["ownerReferences"] = [{**OWN, "controller": True}]
    assert users.admin.create(part) == ""
    try:
        assert refused(asked(users.of["alice"], "DELETE", path))
    finally:
        users.admin.ask("DELETE", f"{path}?gracePeriodSeconds=0")


@pytest.mark.parametrize(
    "label", ["job-name", "controller-uid", "batch.kubernetes.io/job-name", "jobset.sigs.k8s.io/jobset-name"]
)
def test_a_pod_that_a_colleagues_job_would_adopt(users: Users, label: str) -> None:
    evil = pod("evil", "alice")
    evil["metadata"]["labels"][label] = "bobs"
    assert refused(users.of["alice"].create(evil))


def test_a_job_that_adopts_pods_of_others(users: Users) -> None:
    evil = job("jobs.batch", "evil", "alice", template("alice"))
    evil["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {OWNER: "alice"}}}
    assert refused(users.of["alice"].create(evil))


def more_devices(spec: Json) -> None:
    """Four devices for the first container of every pod below."""
    for key, value in list(spec.items()):
        if key == "containers":
            value[0]["resources"] = DEVICES
        elif isinstance(value, dict):
            more_devices(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    more_devices(item)


def other_priority(spec: Json) -> None:
    for key, value in list(spec.items()):
        if key == "containers":
            spec["priorityClassName"] = "elite"
            return
        if isinstance(value, dict):
            other_priority(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    other_priority(item)


CHANGES: dict[str, Callable[[Json], None]] = {
    "more-devices": lambda it: more_devices(it["spec"]),
    "other-priority": lambda it: other_priority(it["spec"]),
    "adopt": with_owner,
    "orphan-finalizer": with_finalizer,
    "endless-finalizer": with_endless_finalizer,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("how", ["PUT", "PATCH"])
@pytest.mark.parametrize("kind", NAMES)
def test_a_job_that_changes_after_its_queue_counted_it(users: Users, kind: str, how: str, change: str) -> None:
    """Suspended without devices, changed, and started again: its pods would run outside every quota."""
    alice, path = users.of["alice"], path_of(kind)
    ready(alice, path)
    made = job(kind, "victim", "alice", template("alice"))
    if kind == "jobs.batch":
        made["spec"]["suspend"] = True
    assert alice.create(made) == ""
    try:
        changed = deepcopy(alice.ask("GET", path))
        CHANGES[change](changed)
        answer = asked(alice, how, path, changed, "application/json" if how == "PUT" else MERGE)
        assert refused(answer) or "field is immutable" in answer
        suspend = {"spec": {"suspend": False}}
        assert asked(alice, "PATCH", path, suspend, MERGE) == "", "a job may be suspended and resumed"
    finally:
        users.admin.ask("DELETE", f"{path}?propagationPolicy=Background")
        gone(users.admin, path)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("way", ["query", "body", "old", "default"])
def test_a_job_whose_pods_would_outlive_it(users: Users, kind: str, way: str) -> None:
    alice, path = users.of["alice"], path_of(kind)
    ready(alice, path)
    assert alice.create(job(kind, "victim", "alice", template("alice"))) == ""
    try:
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        match way:
            case "query":
                answer = asked(alice, "DELETE", f"{path}?propagationPolicy=Orphan")
            case "body":
                answer = asked(alice, "DELETE", path, {**options, "propagationPolicy": "Orphan"})
            case "old":
                answer = asked(alice, "DELETE", path, {**options, "orphanDependents": True})
            case _:
                if kind != "jobs.batch":
                    return  # other kinds end their pods by default
                answer = asked(alice, "DELETE", path)
        assert refused(answer)
        assert asked(alice, "DELETE", path, {**options, "propagationPolicy": "Background"}) == ""
    finally:
        asked(users.admin, "DELETE", f"{path}?propagationPolicy=Background")
        gone(users.admin, path)


def test_a_job_under_the_idle_limits_of_another_virtual_cluster(users: Users) -> None:
    """The policies of the last scheduler that the fixture applies are in force, and these are Volcano's."""
    evil = job("jobs.batch.volcano.sh", "evil", "alice", template("alice"))
    evil["metadata"]["labels"] |= {CLUSTER: "lenient", QUEUE_LABEL: "strict"}
    evil["spec"]["queue"] = "strict"
    ready(users.of["alice"], path_of("jobs.batch.volcano.sh"))
    assert refused(users.of["alice"].create(evil))
    evil["metadata"]["labels"] |= {CLUSTER: "strict"}
    assert users.of["alice"].create(evil) == ""
    users.admin.ask("DELETE", path_of("jobs.batch.volcano.sh", "evil"))


GOOD: dict[str, Json] = {
    "a taint of the site": {**POD, "tolerations": [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}]},
    "a lost node": {
        **POD,
        "tolerations": [
            {
                "key": "node.kubernetes.io/unreachable",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 60,
            }
        ],
    },
    "a probe of itself": container(livenessProbe={"httpGet": {"port": 80}}),
}


@pytest.mark.parametrize("what", GOOD)
def test_what_members_need_stays_possible(users: Users, what: str) -> None:
    alice, path = users.of["alice"], "/api/v1/namespaces/vision/pods/good"
    assert alice.create(pod("good", "alice", GOOD[what])) == ""
    assert asked(alice, "DELETE", f"{path}?gracePeriodSeconds=0") == ""
