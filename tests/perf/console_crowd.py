"""`python -m tests.perf.console_crowd URL CA`: people and clients at a console, until the end of its input.

200 people sign in with the form, and open a page every 10 s. 50 of them have the stream of a job open. 100 clients of
OpenPAI's API sign in every 10 s, and list jobs each time. All begin within 20 s, and each password is then a new one.
It prints the number of requests and what was refused.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlencode, urlsplit

from tests.perf.console_cluster import PASSWORD, USERS

CLIENTS, STREAMS, EVERY_S, BEGIN_S = 100, 50, 10.0, 20.0
PAGES = (
    *("/jobs", "/jobs?state=RUNNING&keyword=99", "/jobs/{user}~job_{number}", "/", "/nodes"),
    *("/virtual-clusters", "/virtual-clusters/research"),
)
LOGIN, LIST = "/rest-server/api/v2/authn/basic/login", "/rest-server/api/v2/jobs"
FORM = re.compile(r'name="form" value="([^"]*)"')


@dataclass
class Crowd:
    """Everybody. requests: answers by status."""

    url: str
    trust: ssl.SSLContext
    requests: Counter[str] = field(default_factory=Counter)

    async def person(self, number: int) -> None:
        """Signs in, and opens pages."""
        user, chance = f"user{number}", Random(number)  # noqa: S311 - the same pages in each run
        await asyncio.sleep(number / USERS * BEGIN_S)
        web = _Connection(self, number)
        await web.sign_in(user)
        streams = asyncio.create_task(self._stream(web.cookie, user, number)) if number < STREAMS else None
        while True:
            await asyncio.sleep(chance.uniform(0.5, 1.5) * EVERY_S)
            await web.ask(chance.choice(PAGES).format(user=user, number=number))
            assert streams is None or not streams.done(), "a stream ended"

    async def _stream(self, cookie: str, user: str, number: int) -> None:
        web = _Connection(self, number)
        web.cookie = cookie
        await web.follow(f"/jobs/{user}~job_{number}/changes")

    async def program(self, number: int) -> None:
        """What the extension of VS Code does for its list of jobs."""
        await asyncio.sleep(number / CLIENTS * EVERY_S)
        web, begun = _Connection(self, 300 + number), asyncio.get_running_loop().time()
        while True:
            form = urlencode({"username": f"user{number}", "password": PASSWORD})
            status, text = await web.ask(LOGIN, form)
            if status == 200:
                await web.ask(LIST, token=json.loads(text)["token"])
            begun += EVERY_S
            await asyncio.sleep(max(0.0, begun - asyncio.get_running_loop().time()))


class _Connection:
    """One connection that stays open, of a computer with an address of its own. It costs little, unlike a client."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd, self._from = crowd, f"127.0.{1 + number // 250}.{1 + number % 250}"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.cookie = ""

    async def sign_in(self, user: str) -> None:
        """Signs in with the form, again while too many do."""
        while True:
            _, page = await self.ask("/login")
            form = {"form": FORM.findall(page)[0], "from": "/account", "username": user, "password": PASSWORD}
            if (await self.ask("/login", urlencode(form)))[0] == 303:
                return
            await asyncio.sleep(1)

    async def ask(self, path: str, form: str = "", token: str = "") -> tuple[int, str]:
        """Status and body."""
        reader = await self._send(path, form, token)
        status, headers = await self._head(reader)
        if "content-length" in headers:
            body = await reader.readexactly(int(headers["content-length"]))
        else:
            parts = []
            while size := int(await reader.readline(), 16):
                parts.append((await reader.readexactly(size + 2))[:-2])
            await reader.readline()
            body = b"".join(parts)
        self._crowd.requests[f"{'POST' if form else 'GET'} {path.partition('?')[0]} {status}"] += 1
        return status, body.decode() if len(body) < 1 << 20 else ""

    async def follow(self, path: str) -> None:
        """Reads a stream to its end."""
        reader = await self._send(path)
        assert (await self._head(reader))[0] == 200
        while await reader.readline():
            pass

    async def _send(self, path: str, form: str = "", token: str = "") -> asyncio.StreamReader:
        place = urlsplit(self._crowd.url)
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                "127.0.0.1", place.port, ssl=self._crowd.trust, server_hostname="localhost",
                local_addr=(self._from, 0), limit=1 << 20,
            )  # fmt: skip
        lines = [f"{'POST' if form else 'GET'} {path} HTTP/1.1", f"Host: {place.netloc}"]
        if form:
            kind = "application/x-www-form-urlencoded"
            lines += [f"Content-Type: {kind}", f"Content-Length: {len(form)}", f"Origin: {self._crowd.url}"]
        lines += [f"Cookie: {self.cookie}"] if self.cookie else []
        lines += [f"Authorization: Bearer {token}"] if token else []
        reader, writer = self._streams
        writer.write("\r\n".join([*lines, "", form]).encode())
        await writer.drain()
        return reader

    async def _head(self, reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
        """Status and headers. Keeps cookies."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        rows = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines if line)]
        jar = dict(one.split("=", 1) for one in self.cookie.split("; ") if one)
        jar |= dict(value.partition(";")[0].split("=", 1) for name, value in rows if name == "set-cookie")
        self.cookie = "; ".join(f"{name}={value}" for name, value in jar.items() if value.strip('"'))
        return int(first.split()[1]), dict(rows)


async def crowded(url: str, authority: str) -> dict[str, object]:
    """What happened until the end of the input."""
    crowd = Crowd(url, ssl.create_default_context(cafile=authority))
    tasks = [asyncio.create_task(crowd.person(it)) for it in range(USERS)]
    tasks += [asyncio.create_task(crowd.program(it)) for it in range(CLIENTS)]
    await asyncio.to_thread(sys.stdin.read)
    failed = Counter(repr(task.exception())[:200] for task in tasks if task.done())
    return {"requests": crowd.requests.total(), "refused": _refused(crowd.requests), "failed": failed}


def _refused(requests: Counter[str]) -> dict[str, int]:
    return {key: number for key, number in requests.items() if int(key.rpartition(" ")[2]) >= 400}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(crowded(*sys.argv[1:])), default=dict))
    sys.stdout.flush()
