"""A job that gives way twice waits and succeeds, whatever the scheduler, and a real failure ends it.

An instance that its machine refuses starts again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pai_install.jobs.compile.jobset import failure_rules
from tests.hived_program import PROGRAM

from .conftest import EXISTING, LOST, Cluster, equip, until
from .hived_image import write_image
from .test_examples import POLICY, with_cores
from .test_jobs import IMAGE, devices, job, python_image, shown
from .test_scheduler import create

pytestmark = [pytest.mark.lab, pytest.mark.soak]

GROUP, GPUS = "team", 8
# in which a preempted gang ends, its owner runs, and the gang starts again on a busy lab
BACK_S = 240


def services(scheduler: str, machines: int = 1, gpus: int = GPUS) -> str:
    """Two virtual clusters: the owner's with so many machines, the guest's with one."""
    return f"""\
scheduler: {{type: {scheduler}}}
virtual-clusters:
  - {{name: owner, groups: [{GROUP}], quota: [{{sku: lab-gpu, devices: {machines * gpus}}}]}}
  - {{name: guest, groups: [{GROUP}], quota: [{{sku: lab-gpu, devices: {gpus}}}]}}
authentication: {{group-manager: {{grouplist: [{{groupname: {GROUP}}}]}}}}
"""


def file_of(folder: Path, name: str, cluster: str, instances: int, commands: list[str], **more: Any) -> str:
    """A job of instances that take a machine's devices each. more: gpus, retries, priority."""
    content = {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "jobRetryCount": more.get("retries", 0),
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": IMAGE}],
        "taskRoles": {
            "train": {
                "instances": instances,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": more.get("gpus", GPUS)},
                "completion": {"minFailedInstances": 1, "minSucceededInstances": instances},
                "commands": commands,
            }
        },
        "defaults": {"virtualCluster": cluster},
        "extras": {"gangAllocation": True, "hivedScheduler": {"jobPriorityClass": more.get("priority", "test")}},
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content))
    return str(path)


def sleeps(seconds: int) -> str:
    """A command: the image of the jobs has Python and a shell alone."""
    return f"python3 -c 'import time; time.sleep({seconds})'"


def submitted(cluster: Cluster, path: str) -> None:
    done = job(cluster, "submit", path, "--group", GROUP, "--user", "alice")
    assert done.returncode == 0, done.stderr


def is_(cluster: Cluster, name: str, state: str) -> bool:
    return bool(shown(cluster, name)["state"] == state)


def gave_way(cluster: Cluster, times: int) -> bool:
    return len(shown(cluster, "guest")["preemptions"]) == times


@pytest.fixture(scope="module", params=["kueue", "volcano", "hived"])
def lending(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, str]]:
    """The cluster with a scheduler and two virtual clusters; without them afterwards."""
    scheduler = str(request.param)
    if scheduler == "hived" and not PROGRAM:
        pytest.skip("PAI_HIVED names no program of HiveD")
    names = ("config.yaml", "services-configuration.yaml", "layout.yaml")
    config, path, layout = (cluster.site / name for name in names)
    before, machines, image = config.read_text(), layout.read_text(), cluster.site / "hived.tar"
    layout.write_text(with_cores(machines))
    path.write_text(services(scheduler))
    if scheduler == "hived":
        write_image(Path(PROGRAM), image)
        config.write_text(f"{before}\ncomponent_images: {{hivedscheduler: {image.name}}}\n")
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        create(cluster, *POLICY)
        for worker in (EXISTING, LOST):
            cluster.on(worker, python_image())
            devices(cluster, worker, "add", str(GPUS))
        yield cluster, scheduler
    finally:
        for name in ("guest", "owner1", "owner2", "fails"):
            job(cluster, "stop", name, "--yes")
        path.unlink()
        config.write_text(before)
        layout.write_text(machines)
        report = cluster.converge()
        cluster.ask("delete", "namespace", GROUP, "--ignore-not-found", "--wait=false")
    assert report["ok"], report["stderr"]


def gives_way_twice(
    cluster: Cluster, scheduler: str, folder: Path, *, machines: int = 1, gpus: int = GPUS, retries: int = 0
) -> None:
    """A guest borrows a machine of the owner, which takes it back twice."""
    priority = "oppo" if scheduler == "hived" else "test"
    guest = file_of(folder, "guest", "guest", 2, [sleeps(100)], gpus=gpus, priority=priority, retries=retries)
    submitted(cluster, guest)
    for turn in (1, 2):
        assert until(lambda: is_(cluster, "guest", "RUNNING"), BACK_S), shown(cluster, "guest")
        owner = f"owner{turn}"
        submitted(cluster, file_of(folder, owner, "owner", machines, [sleeps(5)], gpus=gpus))
        assert until(partial(is_, cluster, owner, "SUCCEEDED"), BACK_S), shown(cluster, owner)
        assert until(partial(gave_way, cluster, turn), 30), shown(cluster, "guest")
    assert until(lambda: is_(cluster, "guest", "SUCCEEDED"), BACK_S), shown(cluster, "guest")
    told = shown(cluster, "guest")["preemptions"]
    assert all(one["at"] for one in told), told
    assert [f"{GROUP}/owner{turn}" in (one["by"] or one["why"]) for turn, one in enumerate(told, 1)] == [True] * 2, told


@pytest.mark.parametrize("retries", [0, 1])
def test_job_that_gives_way_twice_succeeds(lending: tuple[Cluster, str], tmp_path: Path, retries: int) -> None:
    cluster, scheduler = lending
    gives_way_twice(cluster, scheduler, tmp_path, retries=retries)
    for name in ("guest", "owner1", "owner2"):
        assert job(cluster, "stop", name, "--yes").returncode == 0


def test_job_that_fails_ends(lending: tuple[Cluster, str], tmp_path: Path) -> None:
    cluster, _scheduler = lending
    submitted(cluster, file_of(tmp_path, "fails", "owner", 1, ["exit 3"]))
    assert until(lambda: is_(cluster, "fails", "FAILED"), BACK_S), shown(cluster, "fails")


def bound(cluster: Cluster, name: str, *, job: bool) -> dict[str, Any]:
    """A pod, or a Job with the rules of our jobs, that asks for most cores of a worker and needs no scheduler."""
    cores = cluster.kubectl("get", "node", LOST, "--output=jsonpath={.status.allocatable.cpu}")
    request = {"requests": {"cpu": f"{int(cores) * 600}m"}}
    command = ["/bin/sh", "-c", sleeps(1 if job else 3600)]
    container = {"name": "main", "image": IMAGE, "command": command, "resources": request}
    spec = {"nodeName": LOST, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    if not job:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    rules = {"podFailurePolicy": {"rules": list(failure_rules())}}
    indexed = {"completionMode": "Indexed", "completions": 1, "parallelism": 1}
    limits = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
    content = {**indexed, **limits, **rules, "template": {"spec": spec}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": content}


def test_instance_that_its_machine_refuses_starts_again(lending: tuple[Cluster, str]) -> None:
    """The rules are those of a job. A scheduler would not let it come to this, but for a race."""
    cluster, scheduler = lending
    if scheduler == "volcano":
        pytest.skip("Volcano's jobs are no Jobs of Kubernetes")
    selector = "--selector=batch.kubernetes.io/job-name=refused"
    try:
        create(cluster, bound(cluster, "hog", job=False))
        cluster.kubectl("wait", "pod/hog", "--for=condition=Ready", "--timeout=60s")
        create(cluster, bound(cluster, "refused", job=True))
        reasons = ("get", "pods", selector, "--output=jsonpath={.items[*].status.reason}")
        assert until(lambda: cluster.kubectl(*reasons).split().count("OutOfcpu") >= 2), cluster.kubectl(*reasons)
        cluster.kubectl("delete", "pod", "hog")
        cluster.kubectl("wait", "job/refused", "--for=condition=Complete", "--timeout=120s")
    finally:
        cluster.ask("delete", "pod/hog", "job/refused", "--ignore-not-found")
