"""`python -m tests.perf.console_load`: a console with 10,000 jobs and 1,000 nodes, over TLS, with and without a crowd.

The console, the crowd (console_crowd.py), and this program, which measures answers one after another, are a process
each. It prints JSON: times by phase and kind of request, processors that the console used and waited for, its memory,
and the time until a new job is visible. `missed` names what is above its limit. `make soak` asserts the limits where
the host has processors for the console.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.addons import ROOT
from tests.perf.console_cluster import PASSWORD, BigConsole, big_console
from tests.perf.console_crowd import BEGIN_S, FORM, LIST, LOGIN

# phase -> seconds. sign-ins: ten people and ten clients each second, with passwords that are new to the console
PHASES = {"quiet": 20.0, "sign-ins": BEGIN_S, "load": 180.0}
PAGES = {
    "page of jobs": "/jobs",
    "page of a job": "/jobs/user0~job_0",
    "home": "/",
    "page of nodes": "/nodes",
    "page of virtual clusters": "/virtual-clusters",
}
# kind of request -> milliseconds of the 95th percentile under load
LIMITS_MS = {"page of jobs": 150, "API, default list": 400}
VISIBLE_MS, MEMORY_MIB = 2_000, 400
# a console that waits for more of the two processors is as slow as the other work on the host
MOST_MISSING = 0.4
# a person has 600 requests in a minute
_NEW, _PAUSE_S = "/jobs?keyword=at_", 0.2


@dataclass
class Measurer:
    """An administrator, who asks for one thing after another."""

    console: BigConsole
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    until_seen: list[float] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        place = urlsplit(self.console.url)
        trust = ssl.create_default_context(cafile=str(self.console.authority))
        self._web = http.client.HTTPSConnection("localhost", place.port, context=trust, timeout=120)
        _, page, cookie = self._ask("GET", "/login", {})
        form = {"form": FORM.findall(page)[0], "from": "/account", "username": "root", "password": PASSWORD}
        kind = "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, "Cookie": cookie, "Origin": self.console.url}
        status, _, self._cookie = self._ask("POST", "/login", headers, urlencode(form))
        assert status == 303
        token = self._ask("POST", LOGIN, {"Content-Type": kind}, urlencode({"username": "root", "password": PASSWORD}))
        self._token = json.loads(token[1])["token"]

    def measure(self, seconds: float) -> None:
        """Asks for pages and lists."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for kind, path in PAGES.items():
                self._timed(kind, path, {"Cookie": self._cookie})
                self._look()
            self._timed("API, default list", LIST, {"Authorization": f"Bearer {self._token}"})
            self._look()

    def _look(self) -> None:
        """Looks for jobs that appear, whose names have their time."""
        page = self._timed("page of jobs, found by a word", _NEW, {"Cookie": self._cookie})
        for name in set(re.findall(r">at_([0-9.]+)<", page)) - self.known:
            self.until_seen.append(time.time() - float(name))
            self.known.add(name)
        time.sleep(_PAUSE_S)

    def _timed(self, kind: str, path: str, headers: dict[str, str]) -> str:
        begun = time.perf_counter()
        status, page, _ = self._ask("GET", path, headers)
        self.times[kind].append(time.perf_counter() - begun)
        assert status == 200, page[:300]
        return page

    def _ask(self, method: str, path: str, headers: dict[str, str], form: str | None = None) -> tuple[int, str, str]:
        """Status, body, and cookies."""
        self._web.request(method, path, form, headers)
        answer = self._web.getresponse()
        cookies = [one.partition(";")[0] for one in answer.headers.get_all("Set-Cookie") or ()]
        return answer.status, answer.read().decode(), "; ".join(one for one in cookies if not one.endswith('""'))


def cpu_s(process: int) -> float:
    """Processor time of a process until now."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def waited_s(process: int) -> float:
    """Time until now in which threads of a process could run, and had no processor."""
    total = 0
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):
            total += int((thread / "schedstat").read_text().split()[1])
    return total / 1e9


def memory_mib(process: int, name: str) -> int:
    """VmRSS or VmHWM of a process."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) >> 10


def summed(times: list[float]) -> dict[str, float]:
    """Milliseconds."""
    late = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return {"requests": len(times), "p50": round(median(times) * 1000), "p95": round(late * 1000)}


def measured(console: BigConsole) -> dict[str, Any]:
    """All phases."""
    measurer, process, found = Measurer(console), console.process.pid, {}
    measurer.measure(1)
    measurer.until_seen.clear()
    crowd: subprocess.Popen[str] | None = None
    words = [sys.executable, "-m", "tests.perf.console_crowd", console.url, str(console.authority)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    for phase, seconds in PHASES.items():
        if phase != "quiet" and crowd is None:
            crowd = subprocess.Popen(
                words, env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        measurer.times.clear()
        spent, waited, begun, average = cpu_s(process), waited_s(process), time.monotonic(), os.getloadavg()[0]
        measurer.measure(seconds)
        found[phase] = {
            "load_average": [round(average, 1), round(os.getloadavg()[0], 1)],
            "cores": round((cpu_s(process) - spent) / (time.monotonic() - begun), 2),
            "cores_missing": round((waited_s(process) - waited) / (time.monotonic() - begun), 2),
            "resident_mib": memory_mib(process, "VmRSS"),
            "kinds": {kind: summed(times) for kind, times in sorted(measurer.times.items())},
        }
    assert crowd is not None
    said, _ = crowd.communicate("")
    return {
        **found,
        "crowd": json.loads(said),
        "new_job_visible_s": summed(measurer.until_seen),
        "most_resident_mib": memory_mib(process, "VmHWM"),
    }


def is_starved(found: Mapping[str, Any]) -> bool:
    """Whether other work on the host took the processors, so that times say nothing about the console."""
    # each sign-in with a new password takes a processor, so that phase says nothing
    return any(found[phase]["cores_missing"] > MOST_MISSING for phase in ("quiet", "load"))


def missed(found: Mapping[str, Any], *, times: bool = True) -> list[str]:
    """What is above its limit, and who was refused. times: also of answers."""
    crowd, memory = found["crowd"], found["most_resident_mib"]
    said = [f"{memory} MiB of {MEMORY_MIB}"] if memory > MEMORY_MIB else []
    said += [f"failed: {why} ({number})" for why, number in crowd["failed"].items()]
    if not times:
        return said
    late = {kind: found["load"]["kinds"][kind]["p95"] for kind in LIMITS_MS}
    late["a new job is visible"] = found["new_job_visible_s"]["p95"]
    limits = {**LIMITS_MS, "a new job is visible": VISIBLE_MS}
    said += [f"{kind}: {late[kind]} ms of {limit}" for kind, limit in limits.items() if late[kind] > limit]
    return said + [f"refused: {what} ({number})" for what, number in crowd["refused"].items()]


def run() -> dict[str, Any]:
    """All measurements, with what is above its limit."""
    with tempfile.TemporaryDirectory() as folder, big_console(Path(folder)) as console:
        found = measured(console)
    return {**found, "starved": is_starved(found), "missed": missed(found)}


def main() -> None:
    """Measures."""
    sys.stdout.write(json.dumps(run(), indent=1) + "\n")


if __name__ == "__main__":
    main()
