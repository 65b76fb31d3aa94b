"""`python -m tests.perf.console_bench`: the console with 10,000 jobs, 50,000 pods, and 1,000 nodes in memory.

It prints times of answers and memory as JSON. Nothing is asserted: a busy host is slow.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from starlette.requests import HTTPConnection
from starlette.testclient import TestClient

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.server import create_app
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings, RateLimits
from tests.perf.console_cluster import big_cluster
from tests.unit.console.live import LiveClients

REQUESTS = 40
ROOT = Caller("system:serviceaccount:pai-users:root", "root", CallerKind.PASSWORD, "uid", ("admins",), admin=True)


@dataclass(frozen=True)
class Always:
    """Everybody is the administrator."""

    def authenticate(self, request: HTTPConnection) -> Caller | None:
        """The administrator."""
        del request
        return ROOT


def times_of(web: TestClient, path: str) -> dict[str, float]:
    """Milliseconds of answers, and of the processor."""
    walls, size = [], 0
    before = time.process_time()
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        answer = web.get(path)
        walls.append((time.perf_counter() - begun) * 1000)
        assert answer.status_code == 200, answer.text[:200]
        size = len(answer.content)
    cpu = (time.process_time() - before) * 1000 / REQUESTS
    return {"p50": round(median(walls)), "p95": round(quantiles(walls, n=20)[-1]), "cpu": round(cpu, 1), "bytes": size}


def resident() -> int:
    """MiB of memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def main() -> None:
    """Measures."""
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_bytes(b"k" * 32)
        settings = ConsoleSettings(
            names=("testserver",),
            signing_key=key,
            api_server="https://api",
            api_authority=key,
            api_token=key,
            rates=RateLimits(api_per_min=10**6, list_per_min=10**6),
        )
        empty, cluster = resident(), big_cluster()
        clients = LiveClients(cluster, {ROOT.label: None})
        services = ConsoleServices(settings, clients, (Always(),), page_authenticators=(Always(),))
        begun, before = time.perf_counter(), time.process_time()
        services.model.load()
        while not services.model.is_ready:
            time.sleep(0.05)
        services.model.jobs.refresh()
        found: dict[str, Any] = {
            "load_average": os.getloadavg(),
            "jobs": len(services.model.jobs),
            "ready_s": round(time.perf_counter() - begun, 1),
            "ready_cpu_s": round(time.process_time() - before, 1),
        }
        services.model.start()
        web = TestClient(create_app(settings, services))
        for name, path in {
            "page of jobs": "/jobs",
            "page of jobs, filtered and ordered": "/jobs?state=RUNNING&keyword=99&order=jobName,ASC",
            "API default list": "/rest-server/api/v2/jobs",
            "API 100 jobs": "/rest-server/api/v2/jobs?limit=100",
            "API count": "/rest-server/api/v2/jobs?limit=0&withTotalCount=true&state=RUNNING",
            "virtual clusters": "/rest-server/api/v2/virtual-clusters",
            "page of virtual clusters": "/virtual-clusters",
            "page of one virtual cluster": "/virtual-clusters/research",
            "page of nodes": "/nodes",
            "page of one node": "/nodes/gpu-7",
            "page of health": "/health",
            "home": "/",
        }.items():
            found[name] = times_of(web, path)
        found["resident_mib"] = {"empty": empty, "full": resident()}
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
        services.model.stop()
        cluster.end()


if __name__ == "__main__":
    main()
