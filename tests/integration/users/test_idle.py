"""Idle jobs before a real API server: what the recorder does with its own token, and what neither it nor users may.

There are no machines here: how busy GPUs are is written by the test, in the conditions that machines write.
"""

from __future__ import annotations

import json
import time

import pytest

from pai_install.agents.common.api import Client, with_token
from pai_install.agents.common.utilization import CONDITION
from pai_install.agents.job_recorder.__main__ import Recorder
from pai_install.agents.job_recorder.idle import WARNED
from pai_install.agents.job_recorder.limits import Limit
from pai_install.agents.job_recorder.settings import Settings
from pai_install.agents.job_recorder.store import Rules
from pai_install.site.services.use_limits import Then
from pai_install.users.recorder import MYSELF, NAME, NAMESPACE, recorder_objects
from tests.integration.control_plane import Json
from tests.integration.users.conftest import NAMESPACES, Users
from tests.integration.users.test_recorder import MERGE, merged, refused, runs
from tests.integration.users.test_rights import asked, job, template
from tests.waiting import until

RESOURCES = ("batch/jobs",)
STOP = Limit("idle", 10, 600, "stop", 300)


@pytest.fixture(scope="module")
def acting(users: Users, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """The API server with the token of a recorder that may act."""
    for one in recorder_objects("kueue", NAMESPACES, ("warn", "stop", "preemptible")):
        users.admin.apply(one)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    made = users.admin.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token", request)
    token = tmp_path_factory.mktemp("recorder") / "token"
    token.write_text(made["status"]["token"])
    return Client(with_token(f"https://127.0.0.1:{users.admin.port}", token, users.admin.authority))


def tell(users: Users, name: str, idle_s: int, at: float) -> None:
    """Plays the machine of a job's pod."""
    steps = [[int(at) - idle_s, 100], [int(at), 2]]
    told = {"version": 1, "at": int(at), "gpus": 1, "gpu": steps, "cpu": steps}
    row = {"type": CONDITION, "status": "True", "reason": "Measured", "message": json.dumps(told)}
    change = {"status": {"conditions": [row]}}
    users.admin.ask("PATCH", f"/api/v1/namespaces/vision/pods/{name}-abcde/status", change, MERGE)


def gpu_job(users: Users, name: str) -> str:
    """A job of alice whose pod says that it holds a GPU; the job's path."""
    path = runs(users, name)
    pod = users.admin.ask("GET", f"/api/v1/namespaces/vision/pods/{name}-abcde")
    users.admin.ask("DELETE", f"/api/v1/namespaces/vision/pods/{name}-abcde?gracePeriodSeconds=0")
    held = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
    kept = {key: pod["metadata"][key] for key in ("name", "namespace", "labels", "ownerReferences")}
    spec = {"nodeName": "g1", "containers": [{"name": "main", "image": "none", "resources": held}]}
    again = {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}
    until(lambda: users.admin.create(again) == "")
    change = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
    users.admin.ask("PATCH", f"/api/v1/namespaces/vision/pods/{name}-abcde/status", change, MERGE)
    return path


def notes_of(users: Users, path: str) -> Json:
    found: Json = users.admin.ask("GET", path)["metadata"].get("annotations", {})
    return found


def test_an_idle_job_is_warned_then_stopped_and_a_busy_one_never(users: Users, acting: Client) -> None:
    idle, busy = gpu_job(users, "idle"), gpu_job(users, "busy")
    said: list[str] = []
    rules = Rules(7, 500, 1000, frozenset(NAMESPACES), frozenset((*RESOURCES, "pods")))
    recorder = Recorder(acting, Settings(acting.access().url, RESOURCES, rules, {"": (STOP,)}), said.append)
    recorder.watch()
    start = time.time()

    def minutes(number: int) -> bool:
        """So many later, by the clock of all. Returns False."""
        at = start + 60 * number
        tell(users, "idle", 600 + 60 * number, at)
        tell(users, "busy", 60, at)
        for _ in range(4):
            recorder.step(0.5, lambda: at)
        return False

    def seen() -> bool:
        """Whether the recorder knows both jobs and their use. It looks at them at a later time."""
        recorder.step(0.2, lambda: 0)
        pods = recorder.idle._pods.values()
        return len(recorder.idle._jobs) == len(pods) == 2 and all(pod.use for pod in pods)

    tell(users, "idle", 600, start)
    tell(users, "busy", 60, start)
    until(seen)
    until(lambda: minutes(0) or WARNED in notes_of(users, idle))
    told = json.loads(notes_of(users, idle)[WARNED])
    assert told["says"].startswith("its 1 GPU was under 10 % busy, 2 % at most, for 1")
    for number in range(1, 5):
        minutes(number)
        assert "pai-install/stopped-by" not in notes_of(users, idle)
    until(lambda: minutes(6) or "not found" in asked(users.admin, "GET", idle))
    assert WARNED not in notes_of(users, busy)
    assert [line for line in said if "cannot" in line] == [], "what it may do is enough"
    assert any(line.startswith("vision/idle: stopped: its 1 GPU was under") for line in said)
    (kept,) = [one for one in recorder.store._all() if one.job and one.job["metadata"]["name"] == "idle"]
    assert kept.removed is not None
    assert kept.removed.by == MYSELF
    assert "it was warned at" in kept.removed.why


def test_no_user_writes_or_removes_a_warning(users: Users, acting: Client) -> None:
    path = runs(users, "told")
    note = {"metadata": {"annotations": {WARNED: "{}"}}}
    says = "is for the recorder of jobs to write"
    assert says in asked(users.of["alice"], "PATCH", path, note, MERGE)
    assert "this is not yours" in asked(users.of["bob"], "PATCH", path, note, MERGE)
    assert merged(acting, path, note) == ""
    assert says in asked(users.of["alice"], "PATCH", path, {"metadata": {"annotations": {WARNED: None}}}, MERGE)
    assert says in asked(users.of["alice"], "PATCH", path, {"metadata": {"annotations": {WARNED: "x"}}}, MERGE)
    assert asked(users.of["alice"], "PATCH", path, {"metadata": {"annotations": {"a": "b"}}}, MERGE) == ""
    forged = job("jobs.batch", "forged", "alice", template("alice"))
    forged["metadata"]["annotations"] = {WARNED: "{}"}
    assert says in users.of["alice"].create(forged)


def test_no_user_says_how_busy_a_pod_is(users: Users, acting: Client) -> None:
    del acting
    runs(users, "measured")
    change = {"status": {"conditions": [{"type": CONDITION, "status": "True"}]}}
    for member in ("alice", "dora"):
        path = "/api/v1/namespaces/vision/pods/measured-abcde/status"
        assert "cannot patch" in asked(users.of[member], "PATCH", path, change, MERGE)


def test_what_an_acting_recorder_may_not(users: Users, acting: Client) -> None:
    path = runs(users, "kept")
    until(lambda: "deletes no job that does not say so" in refused(acting, "DELETE", path))
    until(lambda: "nothing else of them" in merged(acting, path, {"spec": {"parallelism": 2}}))
    assert "nothing else of them" in merged(acting, path, {"metadata": {"labels": {"pai-install/user": "bob"}}})
    alone = "/api/v1/namespaces/vision/pods/kept-abcde"
    assert "deletes no other that does not say so" in refused(acting, "DELETE", alone)
    assert "cannot" in refused(acting, "PATCH", path.replace("vision", "default"), {})
    assert "cannot" in refused(acting, "DELETE", path.replace("vision", "default"))
    note = {"metadata": {"annotations": {"pai-install/stopped-by": "alice"}}}
    assert merged(acting, path, note) == ""
    assert "deletes no job that does not say so" in refused(acting, "DELETE", path), "another one stopped it"


def test_without_a_word_of_the_site_it_changes_no_job() -> None:
    made = list(recorder_objects("kueue", NAMESPACES))
    rules = [
        rule for one in made for rule in one.get("rules", ()) if set(rule["verbs"]) & {"patch", "delete", "update"}
    ]
    changed = {resource for rule in rules for resource in rule["resources"]}
    assert changed == {"configmaps", "pods", "pods/status", "leases"}
    acts: tuple[Then, ...] = ("warn",)
    warns = list(recorder_objects("kueue", NAMESPACES, acts))
    (role,) = [one for one in warns if one["kind"] == "ClusterRole" and one["metadata"]["name"] == f"{NAME}-acts"]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"patch"}
