"""What bounds the store of Prometheus: a target with a million series harms only itself, and the disk has its limit."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

from tests.integration.control_plane import running
from tests.perf.many_nodes import series, served, store_arguments, write_files
from tests.ports import free_ports

BOUND = 2_000_000
# blocks of two hours, and how many series of a minute fill three times the bound with random values
BLOCKS, SERIES = 40, 200
STEP_S = 60


def resident(pid: int) -> int:
    """MiB of memory of a process at its peak."""
    (line,) = (it for it in Path(f"/proc/{pid}/status").read_text().splitlines() if it.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def until(seconds: float, url: str, expression: str) -> None:
    end = time.monotonic() + seconds
    while not series(url, expression):
        assert time.monotonic() < end, expression
        time.sleep(0.5)


def test_a_target_with_a_million_series_harms_only_itself(prometheus: Path, tmp_path: Path) -> None:
    server, port = free_ports(2)
    write_files(tmp_path, server, 3, million=True, scrape_s=15)
    words: list[str | Path] = [prometheus, *store_arguments(tmp_path, port, "1GB")]
    url = f"http://127.0.0.1:{port}"
    with served(server, 3), running(words, tmp_path / "prometheus.log") as process:
        until(120, url, 'up{node="bad"} == 0')
        until(60, url, 'count(up{job="node", node!="bad"} == 1) == 3')
        until(60, url, 'count(DCGM_FI_DEV_GPU_TEMP{node="n1"}) == 8')
        assert not series(url, 'count({__name__="pai_many"})')
        assert resident(process.pid) < 500


def test_three_times_the_bound_of_the_disk_is_the_bound(prometheus: Path, promtool: Path, tmp_path: Path) -> None:
    data, port = tmp_path / "data", free_ports(1)[0]
    begin = int(time.time()) // 7200 * 7200 - (BLOCKS + 1) * 7200
    with (tmp_path / "samples").open("w") as file:
        file.write("# TYPE pai_filled gauge\n")
        for number in range(SERIES):
            for at in range(begin, begin + BLOCKS * 7200, STEP_S):
                file.write(f'pai_filled{{number="{number}"}} {random.random()} {at}\n')  # noqa: S311 - no secret
        file.write("# EOF\n")
    made: list[str | Path] = [promtool, "tsdb", "create-blocks-from", "openmetrics", tmp_path / "samples", data]
    subprocess.run(made, check=True, capture_output=True)
    assert size(data) > 3 * BOUND
    write_files(tmp_path, port, 0)
    words: list[str | Path] = [prometheus, *store_arguments(tmp_path, port, f"{BOUND}B")]
    with running(words, tmp_path / "prometheus.log"):
        end = time.monotonic() + 120
        while size(data) > BOUND:
            assert time.monotonic() < end, size(data)
            time.sleep(1)
        url = f"http://127.0.0.1:{port}"
        until(60, url, f"count(last_over_time(pai_filled[6h])) == {SERIES}")
        # the newest stay, the oldest are gone
        assert not series(url, f"last_over_time(pai_filled[{BLOCKS // 2}h] offset {BLOCKS}h)")


def size(folder: Path) -> int:
    """Bytes of the blocks of a store."""
    paths = [Path(place) / name for place, _, names in os.walk(folder) for name in names]
    return sum(path.stat().st_size for path in paths if path.exists() and "wal" not in path.parts)
