"""The recorder of jobs before a real API server, with its own token: what it keeps, and who may read and write that.

There are no machines here: the pods' states are written by the test, and there are no logs.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pai_install.agents.common.api import Access, ApiError, Client, with_token
from pai_install.agents.common.lease import Lease, stand_by, while_held
from pai_install.agents.common.records import RECORD
from pai_install.agents.job_recorder.__main__ import Recorder, record
from pai_install.agents.job_recorder.settings import Settings
from pai_install.agents.job_recorder.store import Rules
from pai_install.jobs.history import kept_jobs
from pai_install.jobs.state import JobState
from pai_install.scheduling.job_kinds import KINDS
from pai_install.users.recorder import NAME, NAMESPACE, recorder_objects
from tests.integration.control_plane import Api, Json
from tests.integration.users.conftest import NAMESPACES, Users
from tests.integration.users.test_rights import asked, gone, job, pod, ready, template
from tests.waiting import until

MERGE = "application/merge-patch+json"
RESOURCES = tuple(f"{kind.group}/{kind.resource}" for kind in KINDS)


class Running:
    """A recorder in a thread, as a control plane has it."""

    def __init__(self, client: Client, me: str = "master1") -> None:
        self.said: list[str] = []
        rules = Rules(7, 500, 1000, frozenset(NAMESPACES), frozenset((*RESOURCES, "pods")))
        self.recorder = Recorder(client, Settings(client.access().url, RESOURCES, rules), self.said.append)
        self.lease, self._end = Lease(client, NAME, me), float("inf")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        assert stand_by(self.lease, time.time() + 60, self.said.append)
        self.recorder.recall(time.time())
        self.recorder.watch()
        while time.time() < self._end:
            self.recorder.step(0.2)

    def end(self) -> None:
        """As when it is killed: nothing is written any more, and the Lease is not given back."""
        self._end = 0
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def recorder_api(users: Users, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """The API server, with the recorder's own token."""
    found: dict[str, Json] = {}
    for scheduler in ("kueue", "volcano"):
        for one in recorder_objects(scheduler, NAMESPACES):
            key = f"{one['kind']} {one['metadata']['name']} {one['metadata'].get('namespace')}"
            before = found.get(key, {})
            found[key] = {**one, "rules": [*before.get("rules", []), *one["rules"]]} if "rules" in one else one
    for one in found.values():
        users.admin.apply(one)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    made = users.admin.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token", request)
    token = tmp_path_factory.mktemp("recorder") / "token"
    token.write_text(f"{made['status']['token']}\n")
    counts(Client(with_token(f"https://127.0.0.1:{users.admin.port}", token, users.admin.authority)))
    return Client(with_token(f"https://127.0.0.1:{users.admin.port}", token, users.admin.authority))


def counts(cluster: Client) -> None:
    """Returns once its policy refuses what is no record."""
    path = "/api/v1/namespaces/vision/configmaps?dryRun=All"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}}
    until(lambda: "writes ConfigMaps with the label" in refused(cluster, "POST", path, body))


def refused(cluster: Client, method: str, path: str, body: Json | None = None) -> str:
    """Why; empty where it is not."""
    try:
        cluster.json(method, path, body)
    except ApiError as error:
        return str(error)
    return ""


def merged(cluster: Client, path: str, change: Json) -> str:
    """Why it may not be changed so; empty where it may."""
    try:
        cluster.json("PATCH", path, change, MERGE)
    except ApiError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def running(recorder_api: Client) -> Iterator[Running]:
    made = Running(recorder_api)
    yield made
    made.end()


def records(api: Api, name: str = "") -> list[Json]:
    """The ConfigMaps of records in the group's namespace."""
    selector = f"{RECORD}=state" + (f",pai-install/job={name}" if name else "")
    items: list[Json] = api.ask("GET", f"/api/v1/namespaces/vision/configmaps?labelSelector={selector}")["items"]
    return items


def kept(api: Api, name: str, fits: Callable[[JobState], Any] = lambda _job: True) -> JobState:
    """What is kept of a job, once it is so."""

    def look() -> JobState | None:
        return next((one.job for one in kept_jobs(records(api, name)) if fits(one.job)), None)

    found: JobState = until(look)
    return found


def runs(users: Users, name: str) -> str:
    """A Job of alice with a pod that runs on g1; the Job's path."""
    assert users.of["alice"].create(job("jobs.batch", name, "alice", template("alice"))) == ""
    own = users.admin.ask("GET", f"/apis/batch/v1/namespaces/vision/jobs/{name}")
    body = pod(f"{name}-abcde", "alice")
    body["metadata"]["labels"]["batch.kubernetes.io/job-name"] = name
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": own["metadata"]["uid"], "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    body["spec"] |= {"containers": [{"name": "main", "image": "none"}], "nodeName": "g1"}
    assert users.admin.create(body) == ""
    stands(users.admin, f"{name}-abcde", "Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    return f"/apis/batch/v1/namespaces/vision/jobs/{name}"


def stands(admin: Api, name: str, phase: str, state: Json) -> None:
    """Plays the kubelet."""
    base = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": phase, "containerStatuses": [{**base, "state": state}]}
    admin.ask("PATCH", f"/api/v1/namespaces/vision/pods/{name}/status", {"status": status}, MERGE)


def test_a_job_that_is_stopped_and_whose_pods_are_gone(users: Users, running: Running) -> None:
    path = runs(users, "stopped")
    kept(users.admin, "stopped", lambda found: found.instances)
    notes = {"pai-install/stopped-by": "alice", "pai-install/stopped-why": "wrong data"}
    assert asked(users.of["alice"], "PATCH", path, {"metadata": {"annotations": notes}}, MERGE) == ""
    stands(users.admin, "stopped-abcde", "Failed", {"terminated": {"exitCode": 143, "reason": "Error"}})
    assert asked(users.of["alice"], "DELETE", f"{path}?propagationPolicy=Background") == ""
    users.admin.ask("DELETE", "/api/v1/namespaces/vision/pods/stopped-abcde?gracePeriodSeconds=0")
    found = kept(users.admin, "stopped", lambda found: found.gone != "a moment ago")
    assert (found.state, found.stopped_by, found.stopped_why) == ("STOPPED", "alice", "wrong data")
    assert [(one.machine, one.exit_code) for one in found.instances] == [("g1", 143)]
    assert [line for line in running.said if "cannot" in line] == [], "what it may do is enough"


def test_nobody_says_that_another_stopped_it(users: Users, running: Running) -> None:
    del running
    alice, path = users.of["alice"], "/apis/batch/v1/namespaces/vision/jobs/honest"
    ready(alice, path)
    assert alice.create(job("jobs.batch", "honest", "alice", template("alice"))) == ""
    notes = {"pai-install/stopped-by": "bob"}
    assert "of what you stop is alice" in asked(alice, "PATCH", path, {"metadata": {"annotations": notes}}, MERGE)
    assert (
        asked(users.admin, "PATCH", path, {"metadata": {"annotations": {"pai-install/stopped-by": "root"}}}, MERGE)
        == ""
    )
    assert asked(alice, "PATCH", path, {"metadata": {"annotations": {"a": "b"}}}, MERGE) == "", "what is said stays"
    assert asked(alice, "DELETE", f"{path}?propagationPolicy=Background") == ""


def test_records_are_read_by_the_group_and_written_by_no_user(users: Users, running: Running) -> None:
    del running
    runs(users, "read")
    (item,) = until(lambda: records(users.admin, "read"))
    path = f"/api/v1/namespaces/vision/configmaps/{item['metadata']['name']}"
    for member in ("alice", "bob"):
        assert asked(users.of[member], "GET", path) == ""
    assert "cannot get" in asked(users.of["carol"], "GET", path), "another group's user"
    changes: list[tuple[str, str, Json | None, str]] = [
        ("DELETE", path, None, "application/json"),
        ("PATCH", path, {"data": {"record": "{}"}}, MERGE),
        ("PATCH", path, {"metadata": {"labels": {"pai-install/user": "alice"}}}, MERGE),
        ("PATCH", path, {"metadata": {"labels": {RECORD: None, "pai-install/user": "alice"}}}, MERGE),
    ]
    for member in ("alice", "bob"):
        for change in changes:
            assert "denied request" in asked(users.of[member], *change), change
    for change in changes:
        assert "cannot" in asked(users.of["carol"], *change)
        assert asked(users.of["dora"], *change), "an administrator of jobs neither"


def test_no_user_makes_one(users: Users, running: Running) -> None:
    del running
    forged = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"record": "{}"}}
    labels = {"pai-install/user": "alice", RECORD: "state", "pai-install/job": "read"}
    metadata = {"name": "job-forged", "namespace": "vision", "labels": labels}
    assert "denied request" in users.of["alice"].create({**forged, "metadata": metadata})
    own = {"name": "own", "namespace": "vision", "labels": {"pai-install/user": "alice"}}
    assert users.of["alice"].create({**forged, "metadata": own}) == ""
    change = {"metadata": {"labels": {RECORD: "state"}}}
    path = "/api/v1/namespaces/vision/configmaps/own"
    assert "denied request" in asked(users.of["alice"], "PATCH", path, change, MERGE)
    assert asked(users.of["alice"], "DELETE", path) == ""


def test_no_administrator_makes_one(users: Users, running: Running) -> None:
    """`job submit` creates the objects of a user's file as an administrator."""
    del running
    record = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"record": "{}"}}
    metadata = {"name": "job-forged", "namespace": "vision", "labels": {RECORD: "state"}}
    says = "only the job recorder writes"
    until(lambda: says in users.admin.create({**record, "metadata": metadata}))
    assert users.admin.create({**record, "metadata": {"name": "plain", "namespace": "vision"}}) == ""
    path = "/api/v1/namespaces/vision/configmaps/plain"
    assert says in asked(users.admin, "PATCH", path, {"metadata": {"labels": {RECORD: "state"}}}, MERGE)
    users.admin.ask("DELETE", path)


def test_what_the_recorder_may_not(users: Users, recorder_api: Client) -> None:
    own = {"name": "notes", "namespace": "vision", "labels": {"pai-install/user": "alice"}}
    assert users.of["alice"].create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": own}) == ""
    path = "/api/v1/namespaces/vision/configmaps"
    says = "writes ConfigMaps with the label"
    taken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "labels": {RECORD: "state"}}}
    assert says in refused(recorder_api, "DELETE", f"{path}/notes")
    assert says in refused(recorder_api, "PUT", f"{path}/notes", taken)
    for what in (
        "/api/v1/namespaces/vision/secrets",
        "/api/v1/secrets",
        "/api/v1/namespaces/kube-system/configmaps",
        "/api/v1/namespaces/kube-system/pods/a/log",
        "/api/v1/nodes",
    ):
        assert "cannot" in refused(recorder_api, "GET", what)
    assert "cannot" in refused(recorder_api, "DELETE", "/api/v1/namespaces/kube-system/pods/a")


def test_a_pod_that_a_lost_machine_keeps_is_let_go_and_no_other(users: Users, recorder_api: Client) -> None:
    runs(users, "lost")
    path = "/api/v1/namespaces/vision/pods/lost-abcde"
    until(lambda: "and deletes none" in refused(recorder_api, "DELETE", path))
    until(lambda: "and deletes none" in merged(recorder_api, f"{path}/status", {"status": {"phase": "Failed"}}))
    # as a Job's own pods: they stay until they have ended
    users.admin.ask("PATCH", path, {"metadata": {"finalizers": ["pai.test/counts"]}}, MERGE)
    users.admin.ask("DELETE", path)  # no kubelet here says that it has ended
    assert "that they failed alone" in merged(recorder_api, f"{path}/status", {"status": {"phase": "Succeeded"}})
    going = users.admin.ask("GET", path)
    said: list[str] = []
    rules = Rules(7, 500, 1000, frozenset(NAMESPACES), frozenset((*RESOURCES, "pods")))
    recorder = Recorder(recorder_api, Settings(recorder_api.access().url, RESOURCES, rules), said.append)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "g1"}}
    assert users.admin.create(node) == ""
    try:
        for status, message in (("True", ""), ("Unknown", "deleted, because node g1 is lost")):
            ready_now = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
            users.admin.ask("PATCH", "/api/v1/nodes/g1/status", ready_now, MERGE)
            recorder.lost_pods.see(going)
            recorder.step(0, lambda: time.time() + 600)
            assert message in " ".join(said)
            kept = users.admin.ask("GET", path)
            assert (kept["status"]["phase"] == "Failed") is bool(message)
            assert (kept["metadata"]["deletionGracePeriodSeconds"] == 0) is bool(message)
            recorder.lost_pods.gone(going)
        users.admin.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        assert "not found" in asked(users.admin, "GET", path)
    finally:
        users.admin.ask("DELETE", "/api/v1/nodes/g1")


def test_one_that_is_killed_is_followed_by_another_that_knows_all(
    users: Users, running: Running, recorder_api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = runs(users, "followed")
    kept(users.admin, "followed", lambda found: found.instances)
    running.end()
    # meanwhile nobody looks
    assert asked(users.of["alice"], "DELETE", f"{path}?propagationPolicy=Background") == ""
    gone(users.admin, path)
    users.admin.ask("DELETE", "/api/v1/namespaces/vision/pods/followed-abcde?gracePeriodSeconds=0")
    # another control plane waits until the first was silent for long enough
    other = Lease(recorder_api, NAME, "master2")
    assert not other.hold(100)
    assert not other.hold(140)
    assert other.hold(146)
    monkeypatch.setattr("pai_install.agents.common.lease.RENEW_S", 0.5)
    given = running.recorder.settings
    said: list[str] = []
    follower = Recorder(recorder_api, given, said.append)
    record(follower, other, time.time() + 5)

    def judged() -> JobState | None:
        """What is kept, a second later."""
        while_held(other, time.time() + 1, lambda: follower.step(0.2), said.append)
        states = [one.job for one in kept_jobs(records(users.admin, "followed"))]
        return next((one for one in states if one.gone != "a moment ago"), None)

    found: JobState = until(judged)
    assert (found.state, [one.machine for one in found.instances]) == ("STOPPED", ["g1"])
    other.release()
    assert running.lease.hold(200), "who lets go is followed at once"
    assert not Lease(recorder_api, NAME, "master2").hold(200)
    assert json.loads(json.dumps(said)) == said


def test_the_token_is_in_no_message(recorder_api: Client, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("planted-secret")
    url, tls = recorder_api.access().url, recorder_api.access().tls
    for access in (
        lambda: Access("https://127.0.0.1:1", tls, token.read_text()),
        lambda: Access(url, tls, token.read_text()),
        with_token(url, token, tmp_path / "no"),
    ):
        said = refused(Client(access), "GET", "/api/v1/pods")
        assert said
        assert "planted-secret" not in said
