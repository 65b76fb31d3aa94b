"""One of three replicas of the console is killed, while 50 streams are open and jobs are submitted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.console_replicas import Loss, Person, Replicas, lost, names_of_jobs
from tests.integration.browser.machine import kubelet, patch, start_job
from tests.integration.openpai.conftest import Console, Installed, quickstart, served, until_ready
from tests.integration.openpai.test_requests_of_clients import VSCODE_JOB
from tests.integration.openpai.test_secrets import FILE as SECRETIVE

__all__ = ["quickstart"]
WATCHED = "watched"
_LOGS = f"/api/v2/jobs/alice~{WATCHED}/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
ENDED = {
    "phase": "Succeeded",
    "containerStatuses": [
        {
            "name": "main",
            "ready": False,
            "restartCount": 0,
            "image": "none",
            "imageID": "none",
            "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:01:00Z"}},
        }
    ],
}


@dataclass(frozen=True)
class Served:
    """Three consoles over one cluster. first: the one that is killed."""

    replicas: Replicas
    console: Console
    first: served


@pytest.fixture(scope="module")
def three(quickstart: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("replicas")
    with ExitStack() as stack:
        made = []
        for number in range(3):
            (folder / str(number)).mkdir()
            made.append(served(quickstart, folder / str(number)))
        urls = [stack.enter_context(one) for one in made]
        ca, api = folder / "0/ca.crt", quickstart.api
        consoles = [Console(url, ca, api, folder / str(number)) for number, url in enumerate(urls)]
        for one in consoles:
            until_ready(one)
        yield Served(Replicas(urls, folder / "0/ca.crt"), consoles[0], made[0])


def file_of(name: str) -> str:
    """A job with Secrets."""
    return SECRETIVE.replace("name: secretive", f"name: {name}")


@dataclass(frozen=True)
class Seen:
    """loss: what clients saw. jobs, secrets: the objects afterwards."""

    loss: Loss
    jobs: list[Any]
    secrets: list[Any]


@pytest.fixture(scope="module")
def seen(three: Served) -> Seen:
    console = three.console
    token, admin = console.token("alice"), console.admin
    text = yaml.safe_dump({**VSCODE_JOB, "name": WATCHED, "taskRoles": {"worker": VSCODE_JOB["taskRoles"]["train"]}})
    status, answer = console.ask("POST", "/api/v2/jobs", token, text, "text/yaml")
    assert status == 202, answer
    pod = f"/api/v1/namespaces/team/pods/{WATCHED}-worker-0-0/status"
    with kubelet(console, lines=1000) as port:
        start_job(admin, port, WATCHED)
        end = time.monotonic() + 90
        while (found := console.ask("GET", _LOGS, token))[0] != 200:
            assert time.monotonic() < end, found
            time.sleep(0.3)
        log = f"{json.loads(found[1])['locations'][0]['uri']}&follow=true"
        alice = Person("alice", console.password("alice"), token, WATCHED, log)
        loss = asyncio.run(
            lost(
                three.replicas,
                alice,
                file_of,
                three.first.process.kill,
                lambda: patch(admin, pod, {"status": ENDED}),
            )
        )
    jobs = admin.ask("GET", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets")["items"]
    secrets = admin.ask("GET", "/api/v1/namespaces/team/secrets?labelSelector=pai-install/job")["items"]
    return Seen(loss, jobs, secrets)


def test_the_others_answer(seen: Seen) -> None:
    assert max(seen.loss.listed) < seen.loss.within_s


def test_streams_go_on(seen: Seen) -> None:
    loss = seen.loss
    assert (loss.opened[1], loss.opened[2]) == ({1}, {1}), "at the others without an interruption"
    assert loss.opened[0] == {2}
    assert max(loss.logs.values()) < loss.within_s
    assert max(loss.changes.values()) < loss.within_s


def test_no_job_is_lost_or_submitted_twice(seen: Seen) -> None:
    assert seen.loss.cut > 0, "no submission was cut"
    assert set(seen.loss.answers) == names_of_jobs()
    # a job that the killed replica made as a whole exists
    assert set(seen.loss.answers.values()) <= {202, 409}, seen.loss.refusals
    assert {one["metadata"]["name"] for one in seen.jobs} - {WATCHED} == names_of_jobs()


def test_no_job_lacks_its_secrets(seen: Seen) -> None:
    uids = {one["metadata"]["uid"] for one in seen.jobs if one["metadata"]["name"] != WATCHED}
    owners = [one["metadata"]["ownerReferences"][0]["uid"] for one in seen.secrets]
    assert sorted(owners) == sorted([*uids, *uids]), "two of each job"
