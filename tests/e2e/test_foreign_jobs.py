"""Files of other projects run unchanged: training-operator's kinds with Kueue and Volcano, and Volcano's MPI shape."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.foreign_jobs import KUBEFLOW, kubeflow_job, volcano_mpi

from .conftest import EXISTING, LOST, Cluster, equip, until
from .test_jobs import IMAGE, job, python_image, shown

pytestmark = [pytest.mark.lab, pytest.mark.soak]

GROUP, VC = "team", "guest"
SERVICES = f"""\
scheduler: {{type: SCHEDULER, training-operator: true}}
virtual-clusters:
  - {{name: {VC}, groups: [{GROUP}], quota: [{{sku: lab-gpu, machines: 1}}]}}
authentication: {{group-manager: {{grouplist: [{{groupname: {GROUP}}}]}}}}
"""
END_S = 240


@pytest.fixture(scope="module", params=["kueue", "volcano"])
def site(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, str]]:
    """The cluster with a scheduler and training-operator; without them afterwards."""
    path, scheduler = cluster.site / "services-configuration.yaml", str(request.param)
    path.write_text(SERVICES.replace("SCHEDULER", scheduler))
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        for worker in (EXISTING, LOST):
            cluster.on(worker, python_image())
        yield cluster, scheduler
    finally:
        for kind in KUBEFLOW:
            job(cluster, "stop", f"{kind}/{kind.lower()}", "--yes")
        path.unlink()
        report = cluster.converge()
        cluster.ask("delete", "namespace", GROUP, "--ignore-not-found", "--wait=false")
    assert report["ok"], report["stderr"]


def runs(cluster: Cluster, kind: str, folder: Path) -> None:
    """A job of training-operator succeeds, has logs, and is gone after `job stop`."""
    path, name = folder / f"{kind}.yaml", kind.lower()
    path.write_text(kubeflow_job(kind, IMAGE))
    done = job(cluster, "submit", str(path), "--group", GROUP, "--user", "alice", "--vc", VC)
    assert done.returncode == 0, done.stderr
    assert until(lambda: shown(cluster, name)["state"] == "SUCCEEDED", END_S), shown(cluster, name)
    assert f"of {kind}" in job(cluster, "logs", name).stdout
    assert name in job(cluster, "list").stdout
    assert job(cluster, "stop", name, "--yes").returncode == 0


def meets(cluster: Cluster, folder: Path) -> None:
    """The launcher of Volcano's MPI shape has its keys, and the names of the workers resolve."""
    path = folder / "mpi.yaml"
    path.write_text(volcano_mpi(IMAGE))
    done = job(cluster, "submit", str(path), "--group", GROUP, "--user", "alice", "--vc", VC, "--format", "json")
    assert done.returncode == 0, done.stderr
    (name,) = [word for word in done.stdout.replace('"', " ").split() if word.startswith("mpi-")][:1]
    assert until(lambda: shown(cluster, name)["state"] == "SUCCEEDED", END_S), shown(cluster, name)
    said = job(cluster, "logs", name, "--role", "launcher").stdout
    assert "id_rsa" in said
    assert said.count("met ") == 2, said
    assert job(cluster, "stop", name, "--yes").returncode == 0


@pytest.mark.parametrize("kind", KUBEFLOW)
def test_kind_of_training_operator_runs(site: tuple[Cluster, str], kind: str, tmp_path: Path) -> None:
    runs(site[0], kind, tmp_path)


def test_shape_of_mpi_runs(site: tuple[Cluster, str], tmp_path: Path) -> None:
    cluster, scheduler = site
    if scheduler != "volcano":
        pytest.skip("only Volcano runs its jobs")
    meets(cluster, tmp_path)
