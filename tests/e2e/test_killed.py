"""An installation that is killed again and again still ends where an undisturbed one does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Cluster, bare_machines, killed, pai_install

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.84"
KILLS = 10
SEED = 20261121


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """Machines on which nothing was ever installed; gone afterwards."""
    with bare_machines(tmp_path, SUBNET) as folder:
        yield folder


def test_killed_at_random_moments(site: Path) -> None:
    moments = random.Random(SEED)  # noqa: S311 - moments, not secrets
    kills = sum(killed(site, moments.uniform(4, 30), "apply", "--yes") for _attempt in range(KILLS))
    assert kills >= KILLS // 2
    cluster = Cluster(site, pai_install("--version"))
    first = cluster.apply()
    assert first["ok"], first["stderr"]
    second = cluster.apply()
    assert second["ok"], second["stderr"]
    assert all(counts["changed"] == 0 for counts in second["hosts"].values())
    assert cluster.run("verify").returncode == 0
