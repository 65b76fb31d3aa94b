"""One of three replicas of the console is killed, while 50 streams are open and jobs are submitted.

The clients try the next address, as a browser with a name of three addresses, or a load balancer, does.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx2
import pytest
import yaml

from tests.integration.browser.machine import kubelet, patch, start_job
from tests.integration.control_plane import Api, api, programs
from tests.integration.openpai.conftest import PEOPLE, Console, installed_site, large_site, served, until_ready
from tests.integration.openpai.test_requests_of_clients import VSCODE_JOB
from tests.integration.openpai.test_secrets import FILE as SECRETIVE

__all__ = ["api", "programs"]
STREAMS, SUBMITTERS, JOBS_EACH, WITHIN_S = 50, 8, 6, 5.0
WATCHED = "watched"
_LOGS = f"/rest-server/api/v2/jobs/alice~{WATCHED}/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"


@dataclass(frozen=True)
class Replicas:
    """urls: of three consoles over one cluster. killed: the first one, which `kill` ends."""

    console: Console
    urls: list[str]
    first: served

    def client(self) -> httpx2.AsyncClient:
        trust = ssl.create_default_context(cafile=str(self.console.authority))
        return httpx2.AsyncClient(verify=trust, timeout=httpx2.Timeout(20, read=None), trust_env=False)


@pytest.fixture(scope="module")
def replicas(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    folder = tmp_path_factory.mktemp("replicas")
    settings, identity = installed_site(api, large_site(folder / "site"), PEOPLE)
    with ExitStack() as stack:
        made = []
        for number in range(3):
            (folder / str(number)).mkdir()
            made.append(served(api, folder / str(number), settings, identity))
        urls = [stack.enter_context(one) for one in made]
        consoles = [Console(url, folder / "0/ca.crt", api, folder / str(number)) for number, url in enumerate(urls)]
        for one in consoles:
            until_ready(one)
        yield Replicas(consoles[0], urls, made[0])


@dataclass
class Stream:
    """One stream of events, opened again at the next address when it ends. events: time and replica of each."""

    replicas: Replicas
    path: str
    headers: dict[str, str]
    first: int
    events: list[tuple[float, int]] = field(default_factory=list)
    opened: int = 0

    async def run(self) -> None:
        async with self.replicas.client() as web:
            for at in count(self.first):
                number = at % len(self.replicas.urls)
                try:
                    await self._read(web, number)
                except httpx2.HTTPError:
                    await asyncio.sleep(0.1)

    async def _read(self, web: httpx2.AsyncClient, number: int) -> None:
        async with web.stream("GET", self.replicas.urls[number] + self.path, headers=self.headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            self.opened += 1
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    self.events.append((time.monotonic(), number))

    def since(self, moment: float) -> list[float]:
        """Seconds after a moment of each event."""
        return [at - moment for at, _ in self.events if at > moment]


@dataclass
class Submitter:
    """Submits jobs with Secrets one after another. cut: requests without an answer. answers: the last of each job."""

    replicas: Replicas
    token: str
    number: int
    cut: int = 0
    answers: dict[str, int] = field(default_factory=dict)

    async def run(self) -> None:
        async with self.replicas.client() as web:
            for number in range(JOBS_EACH):
                await self._submit(web, f"cut-{self.number}-{number}")

    async def _submit(self, web: httpx2.AsyncClient, name: str) -> None:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "text/yaml"}
        for url in self.replicas.urls:
            try:
                answer = await web.post(
                    f"{url}/rest-server/api/v2/jobs",
                    content=SECRETIVE.replace("name: secretive", f"name: {name}"),
                    headers=headers,
                )
            except httpx2.HTTPError:
                self.cut += 1
                continue
            self.answers[name] = answer.status_code
            return


async def session(replicas: Replicas) -> str:
    """The cookie of alice."""
    async with replicas.client() as web:
        url = replicas.urls[0]
        page = await web.get(f"{url}/login")
        form = re.findall(r'name="form" value="([^"]*)"', page.text)[0]
        person = {"username": "alice", "password": replicas.console.password("alice")}
        answer = await web.post(f"{url}/login", data={"form": form, "from": "/", **person}, headers={"Origin": url})
        assert answer.status_code == 303, answer.text
        return "; ".join(f"{name}={value}" for name, value in web.cookies.items())


async def until(holds: Any, within_s: float) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def answers_of(replicas: Replicas, token: str) -> list[float]:
    """Seconds until each of the others lists jobs."""
    begun, found = time.monotonic(), []
    async with replicas.client() as web:
        for url in replicas.urls[1:]:
            answer = await web.get(f"{url}/rest-server/api/v2/jobs", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200
            found.append(time.monotonic() - begun)
    return found


async def lost(replicas: Replicas, token: str, log: str) -> dict[str, Any]:
    """Kills the first replica, and says what streams and submitters saw."""
    cookie = await session(replicas)
    changes = f"/jobs/alice~{WATCHED}/changes"
    kinds = [(log, {}), (changes, {"Cookie": cookie})]
    streams = [Stream(replicas, *kinds[it % 2], it // 2 % 3) for it in range(STREAMS)]
    tasks = [asyncio.create_task(one.run()) for one in streams]
    await until(lambda: all(one.events for one in streams), 60)
    submitters = [Submitter(replicas, token, it) for it in range(SUBMITTERS)]
    working = [asyncio.create_task(one.run()) for one in submitters]
    await until(lambda: sum(len(one.answers) for one in submitters) >= SUBMITTERS, 60)
    replicas.first.process.kill()
    killed = time.monotonic()
    listed = await answers_of(replicas, token)
    await asyncio.gather(*working)
    await until(lambda: all(one.since(killed) for one in streams[::2]), 60)
    await until(lambda: all(one.opened > 1 for one in streams if one.first == 0), 60)
    patch(replicas.console.admin, f"/api/v1/namespaces/team/pods/{WATCHED}-worker-0-0/status", {"status": ENDED})
    changed = time.monotonic()
    await until(lambda: all(one.since(changed) for one in streams[1::2]), 60)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "listed": listed,
        "logs": max(one.since(killed)[0] for one in streams[::2]),
        "changes": max(one.since(changed)[0] for one in streams[1::2]),
        "opened": {first: {one.opened for one in streams if one.first == first} for first in range(3)},
        "cut": sum(one.cut for one in submitters),
        "answers": {name: status for one in submitters for name, status in one.answers.items()},
    }


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


@pytest.fixture(scope="module")
def seen(replicas: Replicas) -> Any:
    """What happened, and the objects of the jobs afterwards."""
    console = replicas.console
    token, admin = console.token("alice"), console.admin
    text = yaml.safe_dump({**VSCODE_JOB, "name": WATCHED, "taskRoles": {"worker": VSCODE_JOB["taskRoles"]["train"]}})
    status, answer = console.ask("POST", "/api/v2/jobs", token, text, "text/yaml")
    assert status == 202, answer
    with kubelet(console, lines=1000) as port:
        start_job(admin, port, WATCHED)
        end = time.monotonic() + 30
        while (found := console.ask("GET", _LOGS.removeprefix("/rest-server"), token))[0] != 200:
            assert time.monotonic() < end, found
            time.sleep(0.3)
        log = f"{json.loads(found[1])['locations'][0]['uri']}&follow=true"
        happened = asyncio.run(lost(replicas, token, log))
    jobs = admin.ask("GET", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets")["items"]
    secrets = admin.ask("GET", "/api/v1/namespaces/team/secrets?labelSelector=pai-install/job")["items"]
    return {**happened, "jobs": jobs, "secrets": secrets}


def test_the_others_answer(seen: Any) -> None:
    assert max(seen["listed"]) < WITHIN_S


def test_streams_go_on(seen: Any) -> None:
    assert (seen["opened"][1], seen["opened"][2]) == ({1}, {1}), "at the others without an interruption"
    assert seen["opened"][0] == {2}
    assert seen["logs"] < WITHIN_S
    assert seen["changes"] < WITHIN_S


def test_no_job_is_lost_or_submitted_twice(seen: Any) -> None:
    assert seen["cut"] > 0, "no submission was cut"
    wanted = {f"cut-{one}-{number}" for one in range(SUBMITTERS) for number in range(JOBS_EACH)}
    assert set(seen["answers"]) == wanted
    # a job that the killed replica made as a whole exists
    assert set(seen["answers"].values()) <= {202, 409}
    uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in seen["jobs"]}
    assert {name for name in uids if name != WATCHED} == wanted


def test_no_job_lacks_its_secrets(seen: Any) -> None:
    uids = {one["metadata"]["uid"] for one in seen["jobs"] if one["metadata"]["name"] != WATCHED}
    owners = [one["metadata"]["ownerReferences"][0]["uid"] for one in seen["secrets"]]
    assert sorted(owners) == sorted([*uids, *uids]), "two of each job"
