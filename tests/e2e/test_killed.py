"""An installation that is killed again and again still ends where an undisturbed one does."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, Cluster, equip, lab_site, pai_install, traces

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.84"
KILLS = 10
SEED = 20261121


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """Machines on which nothing was ever installed; gone afterwards."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    folder = lab_site(tmp_path, SUBNET)
    equip(folder)
    up = pai_install("lab", "up", "--site", str(folder), "--yes")
    try:
        assert up.returncode == 0, up.stderr
        yield folder
    finally:
        down = pai_install("lab", "down", "--site", str(folder), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


def killed_apply(site: Path, seconds: float) -> bool:
    """Starts an installation and kills it without a warning; False when it ended by itself before."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "ANSIBLE_CONFIG"}}
    command = [str(ROOT / "pai-install"), "apply", "--site", str(site), "--yes"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
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
