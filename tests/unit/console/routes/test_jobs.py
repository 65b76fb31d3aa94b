"""Jobs over the API: submitted, listed, shown, stopped, and started again, as their caller."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from pai_install.agents.common.records import Record, Removed, state_map
from pai_install.agents.job_recorder.objects import kept_job
from pai_install.cluster.client import NO_ANSWER, ApiError, NoClusterError
from pai_install.console.services import ConsoleServices
from pai_install.kube.model import Ref
from tests.unit.console.conftest import eventually, signed_in
from tests.unit.console.live import LiveCluster

FILE = """\
protocolVersion: 2  # as written
name: train
type: job
prerequisites: [{name: image, type: dockerimage, uri: example.com/train:1}]
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 1}
    commands: [python train.py]
defaults: {virtualCluster: research}
extras: {hivedScheduler: {taskRoles: {worker: {skuType: a100}}}}
"""
PREFIX = "/rest-server/api/v2/jobs"
ONE = f"{PREFIX}/alice~train"
ITEM = {
    *("debugId", "name", "username", "state", "subState", "executionType", "tags", "retries", "retryDetails"),
    *("submissionTime", "createdTime", "launchedTime", "completedTime", "appExitCode", "virtualCluster"),
    *("totalGpuNumber", "totalTaskNumber", "totalTaskRoleNumber", "jobPriority"),
}


def post(web: TestClient, who: str, content: str = FILE) -> Any:
    return web.post(PREFIX, content=content, headers={**signed_in(who), "Content-Type": "text/yaml"})


def listed(web: TestClient, who: str = "alice", **query: str) -> Any:
    answer = web.get(PREFIX, params=query, headers=signed_in(who))
    assert answer.status_code == HTTPStatus.OK, answer.text
    return answer.json()


def named(content: str, name: str, cluster: str = "research") -> str:
    return content.replace("name: train", f"name: {name}").replace(
        "virtualCluster: research", f"virtualCluster: {cluster}"
    )


@pytest.fixture
def train(web: TestClient, services: ConsoleServices) -> TestClient:
    """A console with a job of alice."""
    assert post(web, "alice").status_code == HTTPStatus.ACCEPTED
    eventually(lambda: len(services.model.jobs) == 1)
    return web


def job_of(kubernetes: LiveCluster) -> dict[str, Any]:
    return kubernetes.objects[Ref("jobset", "train", "vision-1")]


def pod(kubernetes: LiveCluster, index: int, phase: str = "Running", **state: Any) -> dict[str, Any]:
    """A pod of the job as its controller makes it."""
    labels = {
        "pai-install/user": "alice",
        "jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    owner = {"kind": "Job", "name": "train-worker-0", "controller": True}
    metadata = {
        "name": f"train-worker-0-{index}",
        "namespace": "vision-1",
        "labels": labels,
        "ownerReferences": [owner],
    }
    status = {
        "name": "main",
        "state": state or {"running": {}},
        "restartCount": 0,
        "containerID": f"containerd://{index}",
    }
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": f"g{index + 1}",
            "containers": [{"name": "main", "env": [{"name": "A", "value": "secret"}]}],
        },
        "status": {
            "phase": phase,
            "podIP": f"10.244.0.{index}",
            "startTime": "2026-01-01T00:01:00Z",
            "containerStatuses": [status],
        },
    }
    kubernetes.put(made)
    return made


def test_a_submitted_job_is_the_callers(train: TestClient, kubernetes: LiveCluster) -> None:
    made = job_of(kubernetes)
    assert made["metadata"]["labels"]["pai-install/user"] == "alice"
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
    (item,) = listed(train)
    assert set(item) >= ITEM
    assert (item["name"], item["username"], item["state"]) == ("train", "alice", "WAITING")
    assert (item["totalGpuNumber"], item["totalTaskNumber"], item["totalTaskRoleNumber"]) == (2, 2, 1)
    assert item["submissionTime"] == 1767225600000


def test_its_file_is_returned_as_it_was_submitted(train: TestClient) -> None:
    answer = train.get(f"{ONE}/config", headers=signed_in("alice"))
    assert answer.text == FILE
    assert answer.headers["content-type"].startswith("text/yaml")


def test_a_name_that_is_taken_is_a_conflict(train: TestClient) -> None:
    answer = post(train, "alice")
    assert (answer.status_code, answer.json()["code"]) == (409, "ConflictJobError")


@pytest.mark.parametrize(
    ("who", "content", "status", "code"),
    [
        ("alice", "a: [", 400, "InvalidProtocolError"),
        ("alice", "", 400, "InvalidProtocolError"),
        ("alice", FILE.replace("taskRoles", "tasks"), 400, "InvalidProtocolError"),
        ("bob", FILE, 403, "ForbiddenUserError"),
        ("dan", FILE, 403, "ForbiddenUserError"),
        ("alice", named(FILE, "train", "nowhere"), 404, "NoVirtualClusterError"),
        ("alice", FILE + "  pai-install: {group: nlp}\n", 400, "InvalidProtocolError"),
        ("alice", FILE.replace("extras: {", "extras: {pai-install: {group: nlp}, "), 403, "ForbiddenUserError"),
        ("nobody", FILE, 401, "UnauthorizedUserError"),
    ],
)
def test_jobs_that_are_not_submitted(
    web: TestClient, kubernetes: LiveCluster, who: str, content: str, status: int, code: str
) -> None:
    answer = post(web, who, content)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not [ref for ref in kubernetes.objects if ref.kind == "jobset"]


def test_problems_of_a_file_have_their_places(web: TestClient) -> None:
    assert "job.yaml:3:" in post(web, "alice", FILE.replace("type: job", "type: nothing")).json()["message"]


def test_bytes_that_are_no_text_are_no_job(web: TestClient) -> None:
    answer = web.post(PREFIX, content=b"\xff\xfe", headers=signed_in("alice"))
    assert answer.json()["code"] == "InvalidProtocolError"


def test_the_group_is_chosen_by_the_virtual_cluster(web: TestClient, kubernetes: LiveCluster) -> None:
    assert post(web, "carol").status_code == HTTPStatus.ACCEPTED
    assert Ref("jobset", "train", "vision-1") in kubernetes.objects
    wish = named(FILE, "other", "default").replace("extras: {", "extras: {pai-install: {group: nlp}, ")
    answer = post(web, "carol", wish)
    assert "nlp" in answer.json()["message"]
    assert Ref("jobset", "other", "nlp") in kubernetes.objects


def test_a_job_that_no_watch_told_is_found_by_its_owner(web: TestClient, services: ConsoleServices) -> None:
    services.model.stop()
    eventually(lambda: post(web, "alice").status_code == HTTPStatus.CONFLICT)
    assert web.get(ONE, headers=signed_in("alice")).json()["name"] == "train"


def test_details(train: TestClient, kubernetes: LiveCluster) -> None:
    pod(kubernetes, 0)
    pod(
        kubernetes,
        1,
        "Failed",
        terminated={"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:02:00Z"},
    )
    found = train.get(ONE, headers=signed_in("alice")).json()
    assert {"debugId", "name", "tags", "jobPriority", "jobStatus", "taskRoles"} <= set(found)
    status = found["jobStatus"]
    assert (status["username"], status["virtualCluster"], status["attemptId"]) == ("alice", "research", 0)
    first, second = found["taskRoles"]["worker"]["taskStatuses"]
    assert (first["taskState"], first["containerIp"], first["containerNodeName"]) == ("RUNNING", "10.244.0.0", "g1")
    assert first["containerLog"].endswith("/taskRoles/worker/taskIndex/0/attempts/0/logs")
    assert (second["taskState"], second["containerExitCode"]) == ("FAILED", 137)
    assert second["completedTime"] == 1767225720000
    assert "OOMKilled" in second["containerExitDiagnostics"]


def test_attempts(train: TestClient) -> None:
    headers = signed_in("alice")
    assert train.get(f"{ONE}/attempts/0", headers=headers).json()["jobStatus"]["state"] == "WAITING"
    assert train.get(f"{ONE}/attempts/7", headers=headers).json()["code"] == "NoJobError"
    assert train.get(f"{ONE}/attempts/x", headers=headers).json()["code"] == "InvalidParametersError"
    (only,) = train.get(f"{ONE}/job-attempts", headers=headers).json()
    assert (only["attemptIndex"], only["isLatest"]) == (0, True)
    assert train.get(f"{ONE}/job-attempts/0", headers=headers).json() == only
    for job in (ONE, f"{PREFIX}/alice~no-such-job"):  # clients ask whether there is a history at all
        assert train.get(f"{job}/job-attempts/healthz", headers=headers).status_code == HTTPStatus.OK
    tasks = f"{ONE}/attempts/0/taskRoles/worker/taskIndex"
    assert len(train.get(f"{tasks}/1/attempts", headers=headers).json()["attempts"]) == 1
    assert train.get(f"{tasks}/9/attempts", headers=headers).json()["code"] == "NoTaskError"


def test_stop(train: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    url, body = f"{ONE}/executionType", {"value": "STOP"}
    assert train.put(url, json=body, headers=signed_in("alice")).status_code == HTTPStatus.ACCEPTED
    notes = [patch for method, found in kubernetes.calls if method == "patch" for patch in found]
    assert notes[-1].body["metadata"]["annotations"] == {"pai-install/stopped-by": "alice"}
    assert Ref("jobset", "train", "vision-1") not in kubernetes.objects
    eventually(lambda: train.get(ONE, headers=signed_in("alice")).json().get("code") == "NoJobError")


def test_a_job_is_stopped_by_its_owner_and_by_administrators(web: TestClient, services: ConsoleServices) -> None:
    assert post(web, "carol").status_code == HTTPStatus.ACCEPTED
    url = f"{PREFIX}/carol~train/executionType"
    assert web.put(url, json={"value": "STOP"}, headers=signed_in("alice")).json()["code"] == "ForbiddenUserError"
    assert web.put(url, json={"value": "START"}, headers=signed_in("root")).json()["code"] == "ForbiddenUserError"
    assert web.put(url, json={"value": "STOP"}, headers=signed_in("root")).status_code == HTTPStatus.ACCEPTED


@pytest.mark.parametrize(
    "body",
    ['{"value": "PAUSE"}', "[]", "{", '{"value": 1}', "", '{"value": []}', '{"value": "STOP", "a": "\\ud800"}'],
)
def test_other_execution_types_are_refused(train: TestClient, body: str) -> None:
    answer = train.put(f"{ONE}/executionType", content=body, headers=signed_in("alice"))
    assert answer.json()["code"] == "InvalidParametersError"


def record(kubernetes: LiveCluster) -> None:
    """The job is deleted, and its record is there."""
    made = job_of(kubernetes)
    kubernetes.put(state_map(Record(kept_job(made), {}, Removed(1_767_225_900, "alice"))))
    kubernetes.delete([Ref("jobset", "train", "vision-1")])


def test_a_stopped_job_is_listed_and_can_be_started_again(
    train: TestClient, services: ConsoleServices, kubernetes: LiveCluster
) -> None:
    record(kubernetes)
    eventually(lambda: [one["state"] for one in listed(train)] == ["STOPPED"])
    assert listed(train)[0]["completedTime"] == 1767225900000
    headers = signed_in("alice")
    assert train.get(ONE, headers=headers).json()["jobStatus"]["appExitDiagnostics"] == "stopped by alice"
    assert train.get(f"{ONE}/config", headers=headers).text == FILE
    answer = train.put(f"{ONE}/executionType", json={"value": "START"}, headers=headers)
    assert answer.status_code == HTTPStatus.ACCEPTED, answer.text
    assert Ref("jobset", "train", "vision-1") in kubernetes.objects
    eventually(lambda: train.get(ONE, headers=headers).json()["jobStatus"]["state"] == "WAITING")


def stopping(kubernetes: LiveCluster) -> None:
    """The job is deleted, and its pods end."""
    gone = {**job_of(kubernetes)["metadata"], "deletionTimestamp": "2026-01-01T00:05:00Z"}
    kubernetes.put({**job_of(kubernetes), "metadata": {**gone, "finalizers": ["foregroundDeletion"]}})


def test_a_job_that_stops_starts_again_after_its_end(train: TestClient, kubernetes: LiveCluster) -> None:
    before = job_of(kubernetes)["metadata"]["uid"]
    stopping(kubernetes)
    eventually(lambda: [one["state"] for one in listed(train)] == ["STOPPING"])
    answer = train.put(f"{ONE}/executionType", json={"value": "START"}, headers=signed_in("alice"))
    assert answer.status_code == HTTPStatus.ACCEPTED, answer.text
    assert job_of(kubernetes)["metadata"]["uid"] != before
    assert "deletionTimestamp" not in job_of(kubernetes)["metadata"]


def test_a_job_that_does_not_end_starts_not_again(
    train: TestClient, services: ConsoleServices, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_words: Any, **_more: Any) -> Any:
        raise ApiError("cannot delete all objects: Timeout", reason="Timeout")

    stopping(kubernetes)
    monkeypatch.setattr(kubernetes, "delete_selected", late)
    start = functools.partial(train.put, f"{ONE}/executionType", json={"value": "START"}, headers=signed_in("alice"))
    assert (start().status_code, start().json()["code"]) == (HTTPStatus.CONFLICT, "ConflictJobError")
    assert services.restarts.open == 0


def test_few_starts_wait_at_once(train: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    """Each holds a thread. Others would have none left."""
    stopping(kubernetes)
    (caller,) = {one.name for one in services.clients.callers if one.label == "alice"}  # type: ignore[attr-defined] # of LiveClients
    for _ in range(services.restarts.most):
        services.restarts.enter(caller)
    answer = train.put(f"{ONE}/executionType", json={"value": "START"}, headers=signed_in("alice"))
    assert answer.json()["code"] == "TooManyRequestsError"
    assert "deletionTimestamp" in job_of(kubernetes)["metadata"]


def test_an_owner_who_may_only_delete_stops_a_job(
    train: TestClient, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of pods that are jobs themselves."""

    def refuse(*_words: Any) -> Any:
        raise ApiError("cannot patch", reason="Forbidden")

    monkeypatch.setattr(kubernetes, "patch", refuse)
    answer = train.put(f"{ONE}/executionType", json={"value": "STOP"}, headers=signed_in("alice"))
    assert answer.status_code == HTTPStatus.ACCEPTED, answer.text
    assert Ref("jobset", "train", "vision-1") not in kubernetes.objects


def test_a_kind_that_the_cluster_lacks_hides_no_job(
    web: TestClient, services: ConsoleServices, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = kubernetes.get

    def without(refs: Any) -> Any:
        if any("tfjob" in ref.kind for ref in refs):
            raise ApiError("no such kind", reason="NoSuchKind")
        return get(refs)

    monkeypatch.setattr(kubernetes, "get", without)
    assert web.get(ONE, headers=signed_in("alice")).json()["code"] == "NoJobError"
    services.model.stop()
    eventually(lambda: post(web, "alice").status_code == HTTPStatus.CONFLICT)
    assert web.get(ONE, headers=signed_in("alice")).json()["name"] == "train"


def test_a_running_job_is_not_started_again(train: TestClient) -> None:
    answer = train.put(f"{ONE}/executionType", json={"value": "START"}, headers=signed_in("alice"))
    assert answer.json()["code"] == "ConflictJobError"


def test_a_job_with_secrets_is_not_started_again(web: TestClient, kubernetes: LiveCluster) -> None:
    content = FILE.replace("taskRoles:", "secrets: {key: s3cret-4711}\ntaskRoles:", 1)
    assert post(web, "alice", content).status_code == HTTPStatus.ACCEPTED
    headers = signed_in("alice")
    eventually(lambda: web.get(ONE, headers=headers).status_code == HTTPStatus.OK)
    shown = web.get(f"{ONE}/config", headers=headers).text
    assert "s3cret" not in shown
    assert "******" in shown
    record(kubernetes)
    eventually(lambda: web.get(ONE, headers=headers).json()["jobStatus"]["state"] == "STOPPED")
    answer = web.put(f"{ONE}/executionType", json={"value": "START"}, headers=headers)
    assert answer.json()["code"] == "NoJobConfigError"


def test_tags(train: TestClient, services: ConsoleServices) -> None:
    headers = signed_in("alice")
    for method, tag, tags in [
        ("PUT", "good", ["good"]),
        ("PUT", "best", ["good", "best"]),
        ("PUT", "good", ["good", "best"]),
        ("DELETE", "best", ["good"]),
    ]:
        answer = train.request(method, f"{ONE}/tag", json={"value": tag}, headers=headers)
        assert answer.status_code == HTTPStatus.OK, answer.text
        assert listed(train)[0]["tags"] == tags, "the answer waits for the watch"
    assert len(listed(train, tagsContain="good,other")) == 1
    assert listed(train, tagsNotContain="good") == []
    for wrong in ("", "a,b", "x" * 65, "a\nb", 3):
        answer = train.put(f"{ONE}/tag", json={"value": wrong}, headers=headers)
        assert answer.json()["code"] == "InvalidParametersError"


@pytest.fixture
def several(web: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> TestClient:
    """Jobs of three users in two groups."""
    for number, (who, name, cluster) in enumerate(
        [
            ("alice", "one", "research"),
            ("alice", "two", "default"),
            ("bob", "three", "default"),
            ("carol", "four", "research"),
        ]
    ):
        assert post(web, who, named(FILE, name, cluster)).status_code == HTTPStatus.ACCEPTED
        made = kubernetes.objects[Ref("jobset", name, "nlp" if who == "bob" else "vision-1")]
        kubernetes.put(
            {**made, "metadata": {**made["metadata"], "creationTimestamp": f"2026-01-0{number + 1}T00:00:00Z"}}
        )
    eventually(lambda: len(services.model.jobs) == 4)
    return web


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["four", "three", "two", "one"]),
        ({"username": "alice"}, ["two", "one"]),
        ({"username": "alice,bob"}, ["three", "two", "one"]),
        ({"vc": "default"}, ["three", "two"]),
        ({"state": "WAITING,RUNNING"}, ["four", "three", "two", "one"]),
        ({"state": "FAILED"}, []),
        ({"keyword": "fou"}, ["four"]),
        ({"keyword": "bo"}, ["three"]),
        ({"jobPriority": "test"}, ["four", "three", "two", "one"]),
        ({"jobPriority": "prod"}, []),
        ({"jobPriority": "default"}, ["four", "three", "two", "one"]),
        ({"jobPriority": "oppo,default"}, ["four", "three", "two", "one"]),
        ({"order": "jobName,ASC"}, ["four", "one", "three", "two"]),
        ({"order": "submissionTime,ASC", "limit": "2"}, ["one", "two"]),
        ({"limit": "2", "offset": "1"}, ["three", "two"]),
        ({"limit": "0"}, []),
    ],
)
def test_lists(several: TestClient, query: dict[str, str], names: list[str]) -> None:
    assert [one["name"] for one in listed(several, "root", **query)] == names


def test_counts(several: TestClient) -> None:
    counted = {"withTotalCount": "true", "limit": "0"}
    assert listed(several, "root", **counted) == {"totalCount": 4, "data": []}
    assert listed(several, "root", **counted, state="WAITING", vc="default")["totalCount"] == 2
    assert listed(several, "root", **counted, keyword="thr")["totalCount"] == 1
    assert listed(several, "alice", **counted)["totalCount"] == 3
    assert len(listed(several, "root", withTotalCount="true")["data"]) == 4


@pytest.mark.parametrize(
    "query", [{"limit": "50001"}, {"limit": "-1"}, {"offset": "x"}, {"order": "secret,ASC"}, {"order": "jobName,UP"}]
)
def test_wrong_queries(several: TestClient, query: dict[str, str]) -> None:
    answer = several.get(PREFIX, params=query, headers=signed_in("root"))
    assert answer.json()["code"] == "InvalidParametersError"


@pytest.mark.parametrize(
    ("who", "names"),
    [
        ("alice", {"one", "two", "four"}),
        ("program", {"one", "two", "four"}),
        ("bob", {"three"}),
        ("carol", {"one", "two", "three", "four"}),
        ("dan", set()),
        ("root", {"one", "two", "three", "four"}),
    ],
)
def test_each_caller_sees_the_jobs_of_its_groups(several: TestClient, who: str, names: set[str]) -> None:
    assert {one["name"] for one in listed(several, who)} == names


def test_nobody_sees_nothing(several: TestClient) -> None:
    assert several.get(PREFIX).json()["code"] == "UnauthorizedUserError"


ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("GET", "/config", None),
    ("GET", "/attempts/0", None),
    ("GET", "/job-attempts", None),
    ("GET", "/job-attempts/0", None),
    ("GET", "/events", None),
    ("GET", "/ssh", None),
    ("GET", "/attempts/0/taskRoles/worker/taskIndex/0/attempts", None),
    ("GET", "/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs", None),
    ("PUT", "/executionType", {"value": "STOP"}),
    ("PUT", "/tag", {"value": "mine"}),
    ("DELETE", "/tag", {"value": "mine"}),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_no_route_of_a_job_is_for_another_group(train: TestClient, method: str, path: str, body: Any) -> None:
    for who, code in [("bob", "NoJobError"), ("dan", "NoJobError"), ("no-one", "UnauthorizedUserError")]:
        answer = train.request(method, f"{ONE}{path}", json=body, headers=signed_in(who))
        assert answer.json()["code"] == code, (who, answer.text)


def test_old_addresses_of_jobs(train: TestClient) -> None:
    old, headers = "/rest-server/api/v1/user/alice/jobs", signed_in("alice")
    assert [one["name"] for one in train.get(old, headers=headers).json()] == ["train"]
    assert [one["name"] for one in train.get("/rest-server/api/v1/jobs", headers=headers).json()] == ["train"]
    assert train.get(f"{old}/train", headers=headers).json()["name"] == "train"
    assert train.get(f"{old}/train/config", headers=headers).text == FILE
    assert train.get(f"{old}/other", headers=headers).json()["code"] == "NoJobError"
    assert train.get(old).json()["code"] == "UnauthorizedUserError"
    answer = train.put(f"{old}/train/executionType", json={"value": "STOP"}, headers=headers)
    assert answer.status_code == HTTPStatus.ACCEPTED
    answer = train.post("/rest-server/api/v1/user/bob/jobs", content=FILE, headers=headers)
    assert answer.json()["code"] == "ForbiddenUserError"


def test_a_client_learns_the_protocol_without_a_token(web: TestClient) -> None:
    answer = web.get(f"{PREFIX}/protocolversion/config")
    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert answer.json()["code"] != "NoApiError"


def test_events(train: TestClient, kubernetes: LiveCluster) -> None:
    made = pod(kubernetes, 0)
    about = {"kind": "Pod", "name": made["metadata"]["name"], "namespace": "vision-1"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "type": "Warning",
        "reason": "FailedMount",
        "message": "no \x1b[31mclaim",
        "involvedObject": about,
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:01:00Z",
        "source": {"component": "kubelet"},
    }
    other = {**event, "type": "Normal", "involvedObject": {**about, "name": "another"}}
    kubernetes.put({**event, "metadata": {"name": "a.1", "namespace": "vision-1"}})
    kubernetes.put({**other, "metadata": {"name": "b.1", "namespace": "vision-1"}})
    found = train.get(f"{ONE}/events?type=Warning", headers=signed_in("alice")).json()
    assert found["totalCount"] == 1
    (row,) = found["data"]
    assert (row["taskroleName"], row["taskIndex"], row["reason"], row["count"]) == ("worker", 0, "FailedMount", 3)
    assert "\x1b" not in row["message"]
    assert train.get(f"{ONE}/events?type=Normal", headers=signed_in("alice")).json()["data"] == []


def test_submissions_have_a_rate(web: TestClient, services: ConsoleServices) -> None:
    services.rates.rates["submit"] = (2, 3600.0)
    answers = [post(web, "alice", named(FILE, f"job{number}")) for number in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert int(answers[-1].headers["retry-after"]) > 0
    assert post(web, "carol", named(FILE, "other")).status_code == HTTPStatus.ACCEPTED


def test_a_long_list_comes_in_parts(train: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    """A slow reader holds a part of it, and not 2 MB."""
    whole = next(item for ref, item in kubernetes.objects.items() if ref.kind == "jobset")
    for number in range(249):
        metadata = {**whole["metadata"], "name": f"many-{number}", "uid": f"uid-many-{number}"}
        kubernetes.put({**whole, "metadata": metadata})
    eventually(lambda: len(services.model.jobs) == 250)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await anyio.sleep(0 if not sent else 60)
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "GET",
        "path": PREFIX,
        "query_string": b"withTotalCount=true",
        "headers": [(b"host", b"testserver"), (b"authorization", b"Bearer alice")],
        "scheme": "https",
        "server": ("testserver", 443),
        "client": ("192.0.2.1", 4711),
    }
    anyio.run(train.app, scope, receive, send)
    bodies = [one["body"] for one in sent if one["type"] == "http.response.body"]
    found = json.loads(b"".join(bodies))
    assert (found["totalCount"], len(found["data"])) == (250, 250)
    assert len(bodies) > 3
    assert max(map(len, bodies)) < 100 * 1024


SECRETIVE = FILE.replace("taskRoles:", "secrets: {key: s3cret-4711}\ntaskRoles:", 1).replace(
    "[python train.py]", "['echo <% $secrets.key %>', 'true']"
)


def secrets_of(kubernetes: LiveCluster) -> list[Ref]:
    return [ref for ref in kubernetes.objects if ref.kind == "secret" and "train" in ref.name]


def test_a_cut_submission_is_completed_by_the_next_one(web: TestClient, kubernetes: LiveCluster) -> None:
    """A control plane was switched off between the job and its Secret."""
    assert post(web, "alice", SECRETIVE).status_code == 202
    (secret,) = secrets_of(kubernetes)
    uid = next(item["metadata"]["uid"] for ref, item in kubernetes.objects.items() if ref.kind == "jobset")
    assert post(web, "alice", SECRETIVE).status_code == 409, "it is whole"
    kubernetes.delete([secret])
    assert post(web, "alice", SECRETIVE.replace("gpu: 1", "gpu: 2")).status_code == 409, "another job"
    assert secrets_of(kubernetes) == []
    assert post(web, "alice", SECRETIVE).status_code == 202
    assert kubernetes.objects[secret]["metadata"]["ownerReferences"][0]["uid"] == uid
    assert sum(ref.kind == "jobset" for ref in kubernetes.objects) == 1
    assert post(web, "alice", SECRETIVE).status_code == 409


def cut_once(
    monkeypatch: pytest.MonkeyPatch, kubernetes: LiveCluster, kind: str, *, carried_out: bool
) -> Callable[[], bool]:
    """The API server of the first creation of a kind goes away. Returns whether it did."""
    monkeypatch.setattr("pai_install.cluster.retries._PAUSE_S", 0)
    real, cut = kubernetes.create, list[str]()

    def create(objects: Any) -> Any:
        if cut or objects[0]["kind"] != kind:
            return real(objects)
        cut.append(kind)
        if carried_out:
            real(objects)
        raise ApiError("cannot create", reason=NO_ANSWER)

    monkeypatch.setattr(kubernetes, "create", create)
    return lambda: bool(cut)


@pytest.mark.parametrize("kind", ["JobSet", "Secret"])
@pytest.mark.parametrize("carried_out", [False, True])
def test_a_submission_goes_on_at_another_control_plane(
    web: TestClient, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch, kind: str, *, carried_out: bool
) -> None:
    was_cut = cut_once(monkeypatch, kubernetes, kind, carried_out=carried_out)
    answer = post(web, "alice", SECRETIVE)
    assert answer.status_code == 202, answer.text
    assert was_cut()
    uids = [item["metadata"]["uid"] for ref, item in kubernetes.objects.items() if ref.kind == "jobset"]
    owners = [kubernetes.objects[one]["metadata"]["ownerReferences"] for one in secrets_of(kubernetes)]
    assert [one["uid"] for (one,) in owners] == uids
    assert post(web, "alice", SECRETIVE).status_code == 409, "it is whole"


@pytest.mark.parametrize("verb", ["patch", "delete_selected"])
@pytest.mark.parametrize("carried_out", [False, True])
def test_a_stop_goes_on_at_another_control_plane(
    web: TestClient, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch, verb: str, *, carried_out: bool
) -> None:
    monkeypatch.setattr("pai_install.cluster.retries._PAUSE_S", 0)
    assert post(web, "alice").status_code == 202
    real, cut = getattr(kubernetes, verb), list[str]()

    def changed(*given: Any, **named: Any) -> Any:
        if cut:
            return real(*given, **named)
        cut.append(verb)
        if carried_out:
            real(*given, **named)
        raise ApiError("cannot change", reason=NO_ANSWER)

    monkeypatch.setattr(kubernetes, verb, changed)
    answer = web.put(f"{ONE}/executionType", json={"value": "STOP"}, headers=signed_in("alice"))
    assert (answer.status_code, cut) == (202, [verb]), answer.text
    assert not [ref for ref in kubernetes.objects if ref.kind == "jobset"]


def test_a_submission_without_an_answer_takes_no_job_of_another_user(
    web: TestClient, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert post(web, "alice").status_code == 202
    monkeypatch.setattr(kubernetes, "dry_run", lambda *_given: None)  # hers comes after the check
    was_cut = cut_once(monkeypatch, kubernetes, "JobSet", carried_out=False)
    assert post(web, "carol").status_code == 409
    assert was_cut()


def raise_from(errors: list[NoClusterError]) -> None:
    if errors:
        raise errors.pop()


def test_a_check_without_an_answer_is_made_again(
    web: TestClient, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_install.cluster.retries._PAUSE_S", 0)
    away = [NoClusterError({"one": "etcdserver: leader changed"})]
    monkeypatch.setattr(kubernetes, "dry_run", lambda *_given: raise_from(away))
    assert post(web, "alice").status_code == 202
    assert away == []
