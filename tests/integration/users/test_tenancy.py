"""Attacks of a member on the quota, on colleagues, and on nodes: each kind of job and each operation on it."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.users.model import OWNER
from tests.integration.control_plane import Json
from tests.integration.users.conftest import Users
from tests.integration.users.test_rights import POD, asked, job, pod, template

MERGE = "application/merge-patch+json"


OWN = {"apiVersion": "batch/v1", "kind": "Job", "name": "own", "uid": "00000000-0000-0000-0000-000000000001"}


def path_of(kind: str, name: str = "victim") -> str:
    resource, _, group = kind.partition(".")
    return f"/apis/{group}/v1/namespaces/vision/{resource}/{name}"


def refused(answer: str) -> bool:
    """Whether a policy refused the request; any other answer would prove nothing."""
    return "ValidatingAdmissionPolicy" in answer


def container(**values: Any) -> Json:
    return {**POD, "containers": [{"name": "main", "image": "none", **values}]}


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


def test_a_job_that_adopts_pods_of_others(users: Users) -> None:
    evil = job("jobs.batch", "evil", "alice", template("alice"))
    evil["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {OWNER: "alice"}}}
    assert refused(users.of["alice"].create(evil))


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
