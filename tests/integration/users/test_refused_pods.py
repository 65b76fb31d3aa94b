"""A pod that its machine refuses gets a condition in the request of the kubelet itself."""

from __future__ import annotations

import time

import pytest

from pai_install.users.refused_pods import refused_pods
from tests.integration.control_plane import Api, Json
from tests.integration.users.conftest import Users

SPACE = "refused"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
# what a kubelet of Kubernetes 1.36 was seen to say
REFUSED = {"phase": "Failed", "reason": "OutOfcpu", "message": "Pod was rejected", "startTime": "2026-11-27T02:12:06Z"}
ENDED = [{"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0}]


def pod(name: str) -> Json:
    content = {"containers": [{"name": "main", "image": "none"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": SPACE}, "spec": content}


def conditions(api: Api, name: str, status: Json) -> list[Json]:
    """The conditions of a new pod after the report of its kubelet."""
    api.ask("POST", PODS, pod(name))
    body = {"status": status}
    found = api.ask("PATCH", f"{PODS}/{name}/status", body, "application/strategic-merge-patch+json")
    api.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
    return list(found["status"].get("conditions", []))


@pytest.fixture(scope="module")
def api(users: Users) -> Api:
    """The API server with the policy; returns once it counts."""
    users.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": SPACE}}
    users.admin.apply(account)
    for one in refused_pods("1.36.3", [SPACE]):
        users.admin.apply(one)
    end = time.monotonic() + 60
    while not conditions(users.admin, "probe", REFUSED):
        assert time.monotonic() < end
        time.sleep(0.5)
    return users.admin


def test_refused_pod_is_disrupted_and_says_why(api: Api) -> None:
    (found,) = conditions(api, "refused", REFUSED)
    assert (found["type"], found["status"]) == ("DisruptionTarget", "True")
    assert found["message"] == "OutOfcpu: Pod was rejected"
    assert found["lastTransitionTime"] == REFUSED["startTime"]


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Failed"},
        {**REFUSED, "reason": "DeadlineExceeded"},
        {**REFUSED, "containerStatuses": ENDED},
        {**REFUSED, "initContainerStatuses": ENDED},
        {**REFUSED, "phase": "Pending"},
    ],
    ids=["without a reason", "deadline", "a container ran", "an init container ran", "it waits"],
)
def test_other_pods_stay_as_they_are(api: Api, status: Json) -> None:
    assert conditions(api, "other", status) == []


def test_condition_of_a_scheduler_stays(api: Api) -> None:
    own = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for another"}
    (found,) = conditions(api, "preempted", {**REFUSED, "conditions": [own]})
    assert found["reason"] == "PreemptionByScheduler"
