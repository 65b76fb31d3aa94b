"""Kubernetes' own jobs on a cluster with Kueue and the training-operator: they come as they are, meet, and train."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import LAB_PROGRAM, lab_variant, text_of

from .conftest import EXISTING, LOST, Cluster, equip, until
from .test_jobs import GROUP, IMAGE, devices, job, python_image, shown

pytestmark = [pytest.mark.lab, pytest.mark.soak]

# what a machine has, and nothing of what is guaranteed to no one
KUEUE = f"""\
scheduler: {{type: kueue}}
virtual-clusters:
  - {{name: default, quota: [{{sku: lab-gpu, machines: 1, borrow: none}}], groups: [{GROUP}]}}
authentication:
  group-manager:
    grouplist:
      - {{groupname: {GROUP}}}
"""
KUBEFLOW = KUEUE.replace("{type: kueue}", "{type: kueue, training-operator: true}")
OPERATOR = ("--namespace=pai-training-operator", "deployment/training-operator")
OWN = ("tfjobs,pytorchjobs", "jobsets,jobs")
# an example -> its job, how many pods it has, a role, and what one of that says at the end
RUN = {
    "cpu-only/job.yaml": ("prepare", 4, "", "part 3: mean"),
    "pytorch/jobset.yaml": ("ddp", 2, "worker", "rank 0 was met by rank 1"),
    "pytorch/pytorchjob.yaml": ("pytorchjob-ddp", 2, "worker", "rank 1 found y = 2.0 x + -1.0"),
    "tensorflow/tfjob.yaml": ("tfjob-ps", 4, "worker", "worker 1 found y = 2.0 x + -1.0"),
}


@pytest.fixture(scope="module")
def site(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with both, a virtual cluster of one worker, and devices that are only said to be there."""
    services = cluster.site / "services-configuration.yaml"
    before = services.read_text() if services.exists() else ""
    services.write_text(KUBEFLOW)
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        for worker in (EXISTING, LOST):
            cluster.on(worker, python_image())
            devices(cluster, worker, "add", "8")
        yield cluster
    finally:
        for kinds in OWN:  # those of Kubeflow may be gone as kinds
            cluster.ask("delete", kinds, "--all", f"--namespace={GROUP}", "--timeout=60s")
        for worker in (EXISTING, LOST):
            devices(cluster, worker, "remove")
            cluster.on(worker, f"ctr --namespace=k8s.io images rm {IMAGE}")
        if before:
            services.write_text(before)
        else:
            services.unlink()
        cluster.ask("delete", "namespace", GROUP, "--wait=false")
        report = cluster.converge()
    assert report["ok"], report["stderr"]


def ended_well(site: Cluster, name: str) -> bool:
    return until(lambda: shown(site, name)["state"] == "SUCCEEDED", 180)


@pytest.mark.parametrize("example", RUN)
def test_an_example_runs_and_its_instances_meet(site: Cluster, tmp_path: Path, example: str) -> None:
    name, count, role, says = RUN[example]
    path = tmp_path / Path(example).name
    path.write_text(lab_variant(text_of(example), IMAGE))
    done = job(site, "submit", str(path), "--group", GROUP, "--user", "alice", "--watch")
    logs = job(site, "logs", name, *(("--role", role) if role else ()))
    assert done.returncode == 0, done.stdout + done.stderr + logs.stdout
    found = shown(site, name)
    assert (found["state"], found["user"], found["group"]) == ("SUCCEEDED", "alice", GROUP)
    assert sum(one["instances"] for one in found["roles"]) == count
    assert says in logs.stdout, logs.stdout + logs.stderr
    stopped = job(site, "stop", name, "--yes")
    assert stopped.returncode == 0, stopped.stderr
    left = ("get", ",".join(("pods,services", *OWN)), f"--namespace={GROUP}", "--output=name")
    assert until(lambda: site.kubectl(*left) == "", 120), site.kubectl(*left)


def test_a_job_of_kubeflow_waits_whole_for_its_quota(site: Cluster, tmp_path: Path) -> None:
    """Two that take all devices: no pod of the second is there before the first has ended."""
    text = lab_variant(text_of("tensorflow/tfjob.yaml"), IMAGE).replace(
        f"{LAB_PROGRAM}]", f"{LAB_PROGRAM}, --pause=0.3]"
    )
    for name in ("first", "second"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(text.replace("tfjob", name))
        assert job(site, "submit", str(path), "--group", GROUP).returncode == 0
    waits = shown(site, "second-ps")
    assert (waits["state"], "quota" in waits["why"]) == ("WAITING", True)
    assert "second" not in site.kubectl("get", "pods", f"--namespace={GROUP}", "--output=name")
    for name in ("first-ps", "second-ps"):
        assert ended_well(site, name)
        assert job(site, "stop", name, "--yes").returncode == 0


def test_the_operator_has_all_rights_that_it_needs(site: Cluster) -> None:
    """After all of the above: what it was refused stands in its log."""
    assert "forbidden" not in site.kubectl("logs", *OPERATOR, "--tail=-1")
    pods = json.loads(site.kubectl("get", "pods", OPERATOR[0], "--output=json"))["items"]
    assert [status["restartCount"] for pod in pods for status in pod["status"]["containerStatuses"]] == [0]


def test_it_goes_when_the_site_no_longer_wants_it(site: Cluster) -> None:
    (site.site / "services-configuration.yaml").write_text(KUEUE)
    report = site.converge()
    assert report["ok"], report["stderr"]
    assert "kubeflow.org" not in site.kubectl("get", "crds", "--output=name")
    assert "training" not in site.kubectl("get", "namespaces,validatingwebhookconfigurations", "--output=name")
    assert site.to_change() == []
