"""1,000 nodes with 8 GPUs: memory and processors of Prometheus, and how long panels of the cluster page take."""

from __future__ import annotations

import os
import re
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from pai_install.monitoring.dashboards import dashboards
from tests.integration.control_plane import running
from tests.perf.many_nodes import asked, series, served, store_arguments, write_files
from tests.ports import free_ports

pytestmark = pytest.mark.soak

NODES = 1_000
# seconds until all targets were read, and of the measurement after it
FILL_S = 600
MEASURE_S = int(os.environ.get("PAI_MONITORED_S", "150"))
Record = Callable[[str, object], None]


def cpu_s(pid: int) -> float:
    """Seconds of the processors that a process had."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid: int) -> int:
    """MiB of memory of a process at its peak."""
    (line,) = (it for it in Path(f"/proc/{pid}/status").read_text().splitlines() if it.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def panel_s(url: str, pid: int) -> dict[str, tuple[float, float]]:
    """Seconds of each query of the cluster page, as an hour and as one number: the best of three.

    Of a processor, with what Prometheus does besides, and elapsed, with what the box does besides.
    """
    now, found = int(time.time()), {}
    for panel in dashboards()["cluster"].panels:
        for legend, query in panel.queries.items():
            asks = {
                "hour": f"query_range?query={quote(query)}&start={now - 3600}&end={now}&step=15",
                "now": f"query?query={quote(query)}",
            }
            for kind, path in asks.items():
                times = []
                for _ in range(3):
                    begin, before = time.monotonic(), cpu_s(pid)
                    asked(url, path)
                    times.append((round(cpu_s(pid) - before, 3), round(time.monotonic() - begin, 3)))
                found[f"{panel.title} {legend} {kind}"] = min(times)
    return found


def head_series(url: str) -> int:
    """How many series Prometheus has."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:  # noqa: S310 - on loopback
        text = answer.read().decode()
    found = re.search(r"^prometheus_tsdb_head_series (\S+)$", text, re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


def test_1000_nodes_fit(prometheus: Path, tmp_path: Path, record_property: Record) -> None:
    server, port = free_ports(2)
    write_files(tmp_path, server, NODES)
    url = f"http://127.0.0.1:{port}"
    words: list[str | Path] = [prometheus, *store_arguments(tmp_path, port, "50GB")]
    with served(server, NODES), running(words, tmp_path / "prometheus.log") as process:
        end = time.monotonic() + FILL_S
        while not series(url, f"count(up == 1) == {2 * NODES + 1}"):
            assert time.monotonic() < end
            time.sleep(5)
        begin, before = time.monotonic(), cpu_s(process.pid)
        time.sleep(MEASURE_S)
        cores = (cpu_s(process.pid) - before) / (time.monotonic() - begin)
        panels = panel_s(url, process.pid)
        count = head_series(url)
        slowest = max(panels, key=lambda name: panels[name])
        disk = sum(path.stat().st_size for path in (tmp_path / "data").rglob("*") if path.is_file()) >> 20
        memory = peak_mib(process.pid)
    record_property("series, MiB, cores, MiB on disk", (count, memory, round(cores, 3), disk))
    record_property("slowest panels", sorted(panels.items(), key=lambda it: it[1], reverse=True)[:8])
    record_property("slowest panel, elapsed", max(elapsed for _, elapsed in panels.values()))
    assert count > 500 * NODES
    assert memory < 3_500
    assert cores <= 0.3
    assert panels[slowest][0] <= 1
