"""Jobs over the console on a real API server: as their user, with the console's own rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from pai_install.cluster.over_http import HttpClient
from pai_install.console.clients import CallerClients
from pai_install.console.connect import with_sign_in
from pai_install.console.server import create_app
from pai_install.console.services import ConsoleServices
from pai_install.profile.model import ProfileGroup
from pai_install.profile.project import profile_of
from pai_install.profile.publish import profile_object
from pai_install.schedulers.last_applied import kept_object
from tests.examples import site_of
from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.users.conftest import Users
from tests.stopwatch import Stopwatch
from tests.waiting import until

__all__ = ["console", "own", "users"]
FILE = """\
apiVersion: batch/v1   # as written
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: example.com/train:1, resources: {requests: {cpu: 1}, limits: {cpu: 1, memory: 1Gi}}}
"""
JOBS = "/rest-server/api/v2/jobs"
Served = tuple[ConsoleServices, TestClient]


@pytest.fixture(scope="module")
def served(users: Users, own: HttpClient, console: Console) -> Iterator[Served]:
    """A console with a model of the cluster, which has the profile of a site with batch Jobs."""
    profile = profile_of(site_of("default"))
    others = (
        ProfileGroup(name="speech", namespace="speech"),
        ProfileGroup(name="ops", namespace="ops", administrators=True),
    )
    members = tuple(group for group in profile.groups if not group.administrators)
    profile = profile.model_copy(update={"groups": (*members, *others)})
    for entry in (profile_object(profile), kept_object(profile.require_scheduling())):
        users.admin.apply(entry)
    services = with_sign_in(console.settings, CallerClients(own), console.sign_in, None)
    services.model.load()
    until(lambda: services.model.is_ready, 60)
    yield services, TestClient(create_app(console.settings, services), base_url=f"https://{HOST}")
    services.model.stop()


def until_listed(web: TestClient, headers: Mapping[str, str], name: str) -> None:
    """Waits until lists have a new job. Its owner can read the job itself at once, before others."""
    until(lambda: name in {one["name"] for one in web.get(JOBS, headers=headers).json()}, 60)


def test_a_job_from_submission_to_stop(served: Served, console: Console) -> None:
    _, web = served
    alice = {"Authorization": f"Bearer {console.token('alice', PASSWORDS['alice'])}"}
    carol = {"Authorization": f"Bearer {console.token('carol', PASSWORDS['carol'])}"}
    answer = web.post(JOBS, content=FILE, headers={**alice, "Content-Type": "text/yaml"})
    assert answer.status_code == 202, answer.text
    one = f"{JOBS}/alice~train"
    watch = Stopwatch()
    until(lambda: [it["name"] for it in web.get(JOBS, headers=alice).json()] == ["train"], 60)
    assert watch.within(5)
    assert web.get(one, headers=alice).json()["jobStatus"]["state"] == "WAITING"
    assert web.get(f"{one}/config", headers=alice).text == FILE
    assert web.get(JOBS, headers=carol).json() == []
    assert web.get(one, headers=carol).json()["code"] == "NoJobError"
    assert web.put(f"{one}/tag", json={"value": "mine"}, headers=alice).status_code == 200
    assert web.get(f"{one}/events", headers=alice).json() == {"totalCount": 0, "data": []}
    assert web.post(JOBS, content=FILE, headers=alice).json()["code"] == "ConflictJobError"
    stopped = web.put(f"{one}/executionType", json={"value": "STOP"}, headers=alice)
    assert stopped.status_code == 202, stopped.text
    # the collector of garbage, which ends it in the foreground, is not here
    until(lambda: web.get(one, headers=alice).json().get("jobStatus", {}).get("state") in {"STOPPING", None}, 60)


def test_tags_of_one_moment_are_all_kept(served: Served, console: Console) -> None:
    _, web = served
    alice = {"Authorization": f"Bearer {console.token('alice', PASSWORDS['alice'])}"}
    file = FILE.replace("name: train", "name: tagged")
    answer = web.post(JOBS, content=file, headers={**alice, "Content-Type": "text/yaml"})
    assert answer.status_code == 202, answer.text
    words = {f"tag-{number}" for number in range(6)}

    def tag(word: str) -> int:
        return int(web.put(f"{JOBS}/alice~tagged/tag", json={"value": word}, headers=alice).status_code)

    with ThreadPoolExecutor(len(words)) as pool:
        assert set(pool.map(tag, words)) == {200}
    until(lambda: [set(it["tags"]) for it in web.get(JOBS, headers=alice).json() if it["name"] == "tagged"] == [words])


def test_a_job_file_that_a_policy_forbids(served: Served, console: Console) -> None:
    _, web = served
    alice = {"Authorization": f"Bearer {console.token('alice', PASSWORDS['alice'])}"}
    pod = "{hostNetwork: true, restartPolicy: Never, containers: [{name: main, image: none}]}"
    file = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: evil}}\nspec: {{template: {{spec: {pod}}}}}\n"
    answer = web.post(JOBS, content=file, headers=alice)
    assert answer.json()["code"] in {"ForbiddenUserError", "InvalidProtocolError"}, answer.text
    assert "hostNetwork" in answer.json()["message"]


def test_lists_of_kubernetes_are_for_administrators(served: Served, console: Console) -> None:
    _, web = served
    for name, allowed in (("alice", False), ("dora", True)):
        headers = {"Authorization": f"Bearer {console.token(name, PASSWORDS[name])}"}
        found = web.get("/rest-server/api/v2/kubernetes/nodes", headers=headers).json()
        assert ("items" in found) is allowed, found
