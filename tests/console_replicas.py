"""Clients of several replicas of the console while one of them is lost: 50 streams, and submissions one after another.

The clients try the next address, as a browser with a name of several addresses, or a load balancer, does.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx2

from tests.stopwatch import Stopwatch

STREAMS, SUBMITTERS, JOBS_EACH, WITHIN_S = 50, 8, 6, 5.0


@dataclass(frozen=True)
class Replicas:
    """urls: of the consoles, the one to be lost first. authority: PEM file of their certificates.

    silent_s: seconds without a byte after which a client gives a connection up, or None for never.
    """

    urls: list[str]
    authority: Path
    silent_s: float | None = None

    def client(self) -> httpx2.AsyncClient:
        trust = ssl.create_default_context(cafile=str(self.authority))
        limits = httpx2.Limits(max_connections=None)
        return httpx2.AsyncClient(
            verify=trust, timeout=httpx2.Timeout(20, read=self.silent_s), limits=limits, trust_env=False
        )


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

    def after(self, moment: float) -> float | None:
        """Seconds from a moment to the first event after it, or None if there is none."""
        return next((at - moment for at, _ in self.events if at > moment), None)


@dataclass
class Submitter:
    """Submits jobs one after another. cut: requests without an answer. answers: the last status of each job.

    refusals: what each other answer than 202 said.
    """

    replicas: Replicas
    token: str
    number: int
    file_of: Callable[[str], str]
    cut: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)

    async def run(self) -> None:
        async with self.replicas.client() as web:
            for number in range(JOBS_EACH):
                await self._submit(web, f"cut-{self.number}-{number}")

    async def _submit(self, web: httpx2.AsyncClient, name: str) -> None:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "text/yaml"}
        for url in self.replicas.urls:
            try:
                answer = await web.post(f"{url}/rest-server/api/v2/jobs", content=self.file_of(name), headers=headers)
            except httpx2.HTTPError:
                self.cut += 1
                continue
            self.answers[name] = answer.status_code
            self.refusals += [answer.text] if answer.status_code != 202 else []
            return


def names_of_jobs() -> set[str]:
    """Names of all jobs that are submitted."""
    return {f"cut-{one}-{number}" for one in range(SUBMITTERS) for number in range(JOBS_EACH)}


@dataclass(frozen=True)
class Loss:
    """What the clients saw. Seconds: within_s: the limit, on a host as busy as it was.

    listed: until each other replica lists jobs. logs, changes: until the next event of any stream, by the place of the
    replica where it began. opened: how often each of these streams began.
    """

    within_s: float
    listed: list[float]
    logs: dict[int, float]
    changes: dict[int, float]
    opened: dict[int, set[int]]
    cut: int
    answers: dict[str, int]
    refusals: list[str]


@dataclass(frozen=True)
class Person:
    """A user with a password. token: of the API. job: a job that writes a line each second. log: its address."""

    name: str
    password: str
    token: str
    job: str
    log: str


async def _session(replicas: Replicas, person: Person) -> str:
    """The cookie of the person."""
    async with replicas.client() as web:
        url = replicas.urls[0]
        page = await web.get(f"{url}/login")
        form = re.findall(r'name="form" value="([^"]*)"', page.text)[0]
        fields = {"form": form, "from": "/", "username": person.name, "password": person.password}
        answer = await web.post(f"{url}/login", data=fields, headers={"Origin": url})
        assert answer.status_code == 303, answer.text
        return "; ".join(f"{name}={value}" for name, value in web.cookies.items())


async def _until(holds: Callable[[], bool], within_s: float) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def _answers_of(replicas: Replicas, token: str) -> list[float]:
    begun, found = time.monotonic(), []
    async with replicas.client() as web:
        for url in replicas.urls[1:]:
            answer = await web.get(f"{url}/rest-server/api/v2/jobs", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200
            found.append(time.monotonic() - begun)
    return found


async def lost(
    replicas: Replicas,
    person: Person,
    file_of: Callable[[str], str],
    lose: Callable[[], Any],
    end_job: Callable[[], Any],
) -> Loss:
    """Loses the first replica by `lose` while the streams are open and jobs are submitted. end_job: ends person.job."""
    cookie = await _session(replicas, person)
    changes = f"/jobs/{person.name}~{person.job}/changes"
    kinds = [(person.log, {}), (changes, {"Cookie": cookie})]
    places = len(replicas.urls)
    streams = [Stream(replicas, *kinds[it % 2], it // 2 % places) for it in range(STREAMS)]
    tasks = [asyncio.create_task(one.run()) for one in streams]
    await _until(lambda: all(one.events for one in streams), 60)
    submitters = [Submitter(replicas, person.token, it, file_of) for it in range(SUBMITTERS)]
    working = [asyncio.create_task(one.run()) for one in submitters]
    await _until(lambda: sum(len(one.answers) for one in submitters) >= SUBMITTERS, 60)
    await asyncio.to_thread(lose)
    gone, watch = time.monotonic(), Stopwatch()
    listed = await _answers_of(replicas, person.token)
    await asyncio.gather(*working)
    await _until(lambda: all(one.after(gone) for one in streams[::2]), 90)
    await _until(lambda: all(one.opened > 1 for one in streams if one.first == 0), 90)
    changed = time.monotonic()
    await asyncio.to_thread(end_job)
    await _until(lambda: all(one.after(changed) for one in streams[1::2]), 90)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return Loss(
        watch.limit(WITHIN_S, watch.seconds),
        listed,
        {it: max(one.after(gone) or 0 for one in streams[::2] if one.first == it) for it in range(places)},
        {it: max(one.after(changed) or 0 for one in streams[1::2] if one.first == it) for it in range(places)},
        {it: {one.opened for one in streams if one.first == it} for it in range(places)},
        sum(one.cut for one in submitters),
        {name: status for one in submitters for name, status in one.answers.items()},
        [words for one in submitters for words in one.refusals],
    )
