"""GPUs that jobs hold for nothing come back: told, then stopped or given to others, and no busy job ever is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from .conftest import EXISTING, LOST, Cluster, equip, on_machine, pai_install, until
from .test_jobs import GROUP, IMAGE, held, job, python_image, shown, use_of

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SERVICES = f"""\
scheduler: {{type: kueue}}
jobs: {{idle: {{after: 2m}}, notebooks: {{after: 2m}}}}
virtual-clusters:
  - name: default
    quota: [{{sku: lab-gpu, devices: 8}}]
    groups: [{GROUP}]
    idle: {{then: stop, grace: 2m}}
    notebooks: {{then: warn}}
  - name: lent
    quota: [{{sku: lab-gpu, devices: 2, borrow: none}}]
    groups: [{GROUP}]
    idle: {{then: preemptible, grace: 2m}}
authentication:
  group-manager:
    grouplist:
      - {{groupname: {GROUP}}}
"""
JOBS = {"forgotten": "default", "training": "default", "notebook": "default", "lowered": "lent"}
# what the kubelet answers, as the service asks it
ASK = (
    "cd /usr/local/lib/pai-install/gpu_use && "
    "python3 -c 'import json; from pai_install.agents.gpu_use import gpu_processes, measure; "
    "print(json.dumps({pod[1]: measure.held(found) for pod, found in gpu_processes.devices_of_pods().items()}))'"
)


@pytest.fixture(scope="module")
def site(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with Kueue, and limits of minutes."""
    services, layout = cluster.site / "services-configuration.yaml", cluster.site / "layout.yaml"
    before = layout.read_text()
    services.write_text(SERVICES)
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        for worker in (EXISTING, LOST):
            cluster.on(worker, python_image())
        yield cluster
    finally:
        cluster.ask("delete", "jobs", "--all", f"--namespace={GROUP}", "--timeout=60s")
        for worker in (EXISTING, LOST):
            pai_install("lab", "busy", "--site", str(cluster.site), worker, "0")
            cluster.on(worker, f"ctr --namespace=k8s.io images rm {IMAGE}")
        services.unlink()
        layout.write_text(before)
        cluster.ask("delete", "namespace", GROUP, "--wait=false")
        report = cluster.converge()
    assert report["ok"], report["stderr"]


def abnormal(site: Cluster) -> dict[str, str]:
    """Names of jobs -> what is said of them."""
    found = json.loads(job(site, "list", "--abnormal", "--format", "json").stdout)["jobs"]
    return {one["name"]: one["abnormal"] for one in found}


def keep_busy(site: Cluster, name: str) -> None:
    """One GPU of those that a job's pod holds computes; no other does, on its machine."""
    (pod,) = shown(site, name)["roles"][0]["pods"]
    held_there = json.loads(on_machine(site.site, pod["machine"], ASK))[pod["pod"]]
    listed = on_machine(site.site, pod["machine"], "nvidia-smi -L").splitlines()
    percent = [95 if held_there[0] in line else 0 for line in listed]
    assert sum(percent) == 95
    done = pai_install("lab", "busy", "--site", str(site.site), pod["machine"], *map(str, percent))
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def jobs(site: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """The site with a job that was forgotten, one that trains, a notebook, and one whose GPUs may be lent."""
    folder: Path = tmp_path_factory.mktemp("jobs")
    for name, cluster in JOBS.items():
        labels = {"pai-install/notebook": "true"} if name == "notebook" else {}
        (folder / f"{name}.json").write_text(held(name, 2, **labels))
        done = job(site, "submit", str(folder / f"{name}.json"), "--group", GROUP, "--user", "alice", "--vc", cluster)
        assert done.returncode == 0, done.stderr
    assert until(lambda: all(shown(site, name)["state"] == "RUNNING" for name in JOBS), 120)
    keep_busy(site, "training")
    return site


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def test_what_is_idle_is_listed_and_warned(jobs: Cluster) -> None:
    assert until(lambda: "forgotten" in abnormal(jobs), 400), abnormal(jobs)
    assert until(lambda: shown(jobs, "forgotten")["warned"], 60)
    found = shown(jobs, "forgotten")
    assert found["state"] == "RUNNING"
    assert "its 2 GPUs were under 10 % busy" in found["warned"]
    assert "it will be stopped, unless it becomes busy" in found["warned"]
    assert shown(jobs, "training")["warned"] == ""


def test_after_the_grace_it_is_stopped_and_says_why(jobs: Cluster) -> None:
    assert until(lambda: shown(jobs, "forgotten")["state"] == "STOPPED", 300)
    found = shown(jobs, "forgotten")
    assert found["stopped_by"] == "pai-install"
    why, _, warned = found["stopped_why"].partition("; it was warned at ")
    assert why.startswith("its 2 GPUs were under 10 % busy")
    assert seconds(found["gone"]) - seconds(warned) >= 120
    pods = jobs.kubectl("get", "pods", f"--namespace={GROUP}", "--output=name")
    assert "forgotten" not in pods
    assert all(name in pods for name in ("training", "notebook", "lowered")), "only that one"


def test_what_is_preemptible_runs_until_another_wants_its_gpus(jobs: Cluster, tmp_path: Path) -> None:
    assert until(lambda: "others may take its GPUs" in shown(jobs, "lowered")["warned"], 240)
    assert shown(jobs, "lowered")["state"] == "RUNNING"
    (tmp_path / "next.json").write_text(held("next", 2))
    done = job(jobs, "submit", str(tmp_path / "next.json"), "--group", GROUP, "--vc", "lent")
    assert done.returncode == 0, done.stderr
    assert until(lambda: shown(jobs, "next")["state"] == "RUNNING", 120)
    assert "was stopped: Preempted" in shown(jobs, "lowered")["why"]


def test_a_busy_job_was_never_told_and_a_notebook_only_warned(jobs: Cluster) -> None:
    assert use_of(jobs, "training")["gpu"][-1][1] == 100
    assert shown(jobs, "training")["warned"] == ""
    assert shown(jobs, "training")["state"] == "RUNNING"
    assert "training" not in abnormal(jobs)
    assert shown(jobs, "notebook")["state"] == "RUNNING"
    assert shown(jobs, "notebook")["warned"].startswith("no one has used this job for ")
    assert abnormal(jobs)["notebook"].startswith("no one uses this job: 2 GPUs under 10 % busy")
    assert job(jobs, "list", "--abnormal").stderr == "", "of the last one, which has just begun, no one can know it"
