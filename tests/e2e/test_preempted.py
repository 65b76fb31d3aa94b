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

from tests.hived_program import PROGRAM

from .conftest import EXISTING, LOST, Cluster, equip, until
from .hived_image import write_image
from .test_examples import POLICY, with_cores
from .test_jobs import IMAGE, LOST_IS_NONE, devices, job, python_image, shown
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


# no scheduler has this name
NOBODY = "nobody"
SPACE = f"--namespace={GROUP}"


def large(cluster: Cluster, name: str, seconds: int) -> dict[str, Any]:
    """A Job with the rules of our jobs, whose pod asks for most cores of a worker. No scheduler places it."""
    cores = cluster.kubectl("get", "node", LOST, "--output=jsonpath={.status.allocatable.cpu}")
    asked = {"requests": {"cpu": f"{int(cores) * 600}m"}}
    container = {"name": "main", "image": IMAGE, "command": ["/bin/sh", "-c", sleeps(seconds)], "resources": asked}
    spec = {"schedulerName": NOBODY, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    indexed = {"completionMode": "Indexed", "completions": 1, "parallelism": 1}
    limits = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0, "podFailurePolicy": LOST_IS_NONE}
    content = {**indexed, **limits, "template": {"spec": {**spec, "containers": [container]}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": GROUP}, "spec": content}


def bind_all(cluster: Cluster, folder: Path) -> None:
    """Binds all pods that wait for no scheduler to one worker, as HiveD does by force."""
    waiting = (
        "--field-selector=spec.nodeName=,spec.schedulerName=" + NOBODY,
        "--output=jsonpath={.items[*].metadata.name}",
    )
    for pod in cluster.kubectl("get", "pods", SPACE, *waiting).split():
        target = {"apiVersion": "v1", "kind": "Node", "name": LOST}
        path = folder / "binding.json"
        path.write_text(
            json.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target})
        )
        cluster.ask("create", f"--raw=/api/v1/namespaces/{GROUP}/pods/{pod}/binding", f"--filename={path}")


def states_of(cluster: Cluster, name: str) -> list[str]:
    """The phase and the reason of each pod of a Job."""
    words = (
        f"--selector=batch.kubernetes.io/job-name={name}",
        "--output=jsonpath={.items[*].status['phase','reason']}",
    )
    return cluster.kubectl("get", "pods", SPACE, *words).split()


def test_instance_that_its_machine_refuses_starts_again(lending: tuple[Cluster, str], tmp_path: Path) -> None:
    """A scheduler lets it come to this only in a race."""
    cluster, scheduler = lending
    if scheduler != "kueue":
        pytest.skip("it is the same with each scheduler")

    def holds(name: str, word: str, times: int = 1) -> bool:
        bind_all(cluster, tmp_path)
        return states_of(cluster, name).count(word) >= times

    try:
        create(cluster, large(cluster, "hog", 3600))
        assert until(lambda: holds("hog", "Running")), states_of(cluster, "hog")
        create(cluster, large(cluster, "refused", 1))
        assert until(lambda: holds("refused", "OutOfcpu", 2)), states_of(cluster, "refused")
        cluster.kubectl("delete", "job", SPACE, "hog")
        assert until(lambda: holds("refused", "Succeeded"), 120), states_of(cluster, "refused")
        cluster.kubectl("wait", "job/refused", SPACE, "--for=condition=Complete", "--timeout=60s")
    finally:
        cluster.ask("delete", "job", SPACE, "hog", "refused", "--ignore-not-found")
