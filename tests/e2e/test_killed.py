"""An installation that is killed again and again still ends where an undisturbed one does."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Cluster, bare_machines, begun, pai_install

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.84"
KILLS = 10
SEED = 20261121


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """Machines on which nothing was ever installed; gone afterwards."""
    with bare_machines(tmp_path, SUBNET) as folder:
        yield folder


def killed_apply(site: Path, seconds: float) -> bool:
    """Starts an installation and kills it without a warning; False when it ended by itself before."""
    with begun("apply", "--site", str(site), "--yes") as process:
        time.sleep(seconds)
        alive = process.poll() is None
        if alive:
            process.send_signal(signal.SIGKILL)  # the shell of the bootstrap has become the program itself
    return alive


def test_killed_at_random_moments(site: Path) -> None:
    moments = random.Random(SEED)  # noqa: S311 - moments, not secrets
    killed = sum(killed_apply(site, moments.uniform(4, 30)) for _attempt in range(KILLS))
    assert killed >= KILLS // 2
    cluster = Cluster(site, pai_install("--version"))
    first = cluster.apply()
    assert first["ok"], first["stderr"]
    second = cluster.apply()
    assert second["ok"], second["stderr"]
    assert all(counts["changed"] == 0 for counts in second["hosts"].values())
    assert cluster.run("verify").returncode == 0
