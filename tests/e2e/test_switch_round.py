"""All six switches between Kueue, Volcano, and HiveD, each with a finished and a running job.

PAI_HIVED names HiveD's program, built as docs/decisions/010 says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.hived_program import NEEDS_HIVED, PROGRAM

from .conftest import EXISTING, LOST, Cluster, equip, until
from .hived_image import write_image
from .test_examples import POLICY
from .test_jobs import devices, job, python_image
from .test_preempted import GPUS, GROUP, file_of, is_, services, sleeps, submitted
from .test_scheduler import create
from .test_scheduler_switch import served, settled, switch

pytestmark = [
    pytest.mark.lab,
    pytest.mark.soak,
    NEEDS_HIVED,
]
# each pair of neighbours is a switch
ROUND = ("kueue", "volcano", "hived", "kueue", "hived", "volcano", "kueue")
WORKERS = (EXISTING, LOST)
READY_S = 240


@pytest.fixture(scope="module")
def site(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with Kueue, and with HiveD's image; without a scheduler of jobs again afterwards."""
    names = ("config.yaml", "services-configuration.yaml", "layout.yaml")
    config, path, layout = (cluster.site / name for name in names)
    before, machines, image = config.read_text(), layout.read_text(), cluster.site / "hived.tar"
    # a job asks for whole cores, and every host of a lab has two
    layout.write_text(machines.replace("vcore: 1", "vcore: 2"))
    write_image(Path(PROGRAM), image)
    config.write_text(f"{before}\ncomponent_images: {{hivedscheduler: {image.name}}}\n")
    try:
        for scheduler in ("volcano", "hived", "kueue"):
            path.write_text(services(scheduler))
            equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        create(cluster, *POLICY)
        for worker in WORKERS:
            cluster.on(worker, python_image())
        yield cluster
    finally:
        path.unlink()
        config.write_text(before)
        layout.write_text(machines)
        report = cluster.converge()
        cluster.ask("delete", "namespace", GROUP, "--ignore-not-found", "--wait=false")
    assert report["ok"], report["stderr"]


def switches(
    cluster: Cluster, before: str, after: str, folder: Path, *, gpus: int = GPUS, workers: tuple[str, ...] = WORKERS
) -> None:
    """A switch is refused while a job runs, ends it with --force, and leaves nothing of the old scheduler."""
    # HiveD and Kueue have jobs of the same kind, so a finished one keeps its name
    ends, runs = (f"{name}-{before[0]}{after[0]}" for name in ("ends", "runs"))
    for worker in workers:
        devices(cluster, worker, "add", str(gpus))
    submitted(cluster, file_of(folder, ends, "owner", 1, ["echo done"], gpus=gpus))
    submitted(cluster, file_of(folder, runs, "owner", 1, [sleeps(3600)], gpus=1))
    assert until(lambda: is_(cluster, ends, "SUCCEEDED"), READY_S)
    assert until(lambda: is_(cluster, runs, "RUNNING"), READY_S)
    code, _report, said = switch(cluster, after, "--yes")
    assert (code, runs in said, ends in said) == (4, True, False), said
    code, report, said = switch(cluster, after, "--yes", "--force")
    assert code == 0, said
    found = {row["id"]: row["verdict"] for row in report["findings"]}
    assert "FAIL" not in found.values(), found
    # templates of jobs name the scheduler of their example
    left = (name for name in (*settled(cluster), *served(cluster)) if "pai-templates/" not in name)
    assert [name for name in left if before in name] == []
    assert job(cluster, "list").stdout.strip() == "no jobs"


def test_each_scheduler_follows_each_other(site: Cluster, tmp_path: Path) -> None:
    for before, after in pairwise(ROUND):
        switches(site, before, after, tmp_path)
        assert site.to_change() == []
