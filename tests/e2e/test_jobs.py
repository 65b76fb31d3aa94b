"""OpenPAI's job files on a cluster: gangs whose instances meet, that wait whole, and leave nothing when they go."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from .conftest import Cluster, fault, pai_install, until
from .job_site import JOBS_GROUP, MASTER, ONE, OTHER

pytestmark = pytest.mark.lab

GROUP = JOBS_GROUP
IMAGE = "pai.test/rendezvous:1"
GPU, GPU_NAME = "nvidia.com~1gpu", "nvidia.com/gpu"
HERE = Path(__file__).parent
# a parameter server never ends by itself
ENOUGH = {"minSucceededTaskCount": 1}
FREE = r"{.status.allocatable.nvidia\.com/gpu}"
READY = "{.status.conditions[?(@.type=='Ready')].status}"
METHOD = "python3 /opt/program.py --pause={} --ps_hosts=$PAI_TASK_ROLE_ps_server_HOST_LIST"
WORKERS = "--worker_hosts=$PAI_TASK_ROLE_worker_HOST_LIST"


@pytest.fixture(scope="module")
def site(job_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with an image of the jobs on its workers."""
    all_jobs = ("jobs,jobsets", "--all", f"--namespace={GROUP}", "--timeout=60s")
    job_cluster.kubectl("delete", *all_jobs)  # of a run that was ended in the lab that is kept
    for worker in (ONE, OTHER):
        job_cluster.on(worker, python_image())
    yield job_cluster
    job_cluster.kubectl("delete", *all_jobs)
    for worker in (ONE, OTHER):
        job_cluster.on(worker, f"ctr --namespace=k8s.io images rm {IMAGE}")


def python_image() -> str:
    """A command that makes the jobs' image on a machine."""
    parts = {"make": HERE / "python_image.py", "program": HERE / "rendezvous.py"}
    written = (
        f"echo {base64.b64encode(it.read_bytes()).decode()} | base64 -d >$d/{name}" for name, it in parts.items()
    )
    return f"d=$(mktemp -d) && {' && '.join(written)} && python3 $d/make {IMAGE} $d/program && rm -r $d"


def devices(cluster: Cluster, worker: str, operation: str, count: str = "") -> None:
    """Says that a node has devices, or that it has not."""
    change = [{"op": operation, "path": f"/status/capacity/{GPU}", **({"value": count} if count else {})}]
    cluster.ask("patch", "node", worker, "--subresource=status", "--type=json", f"--patch={json.dumps(change)}")


def job(cluster: Cluster, verb: str, *words: str) -> CompletedProcess[str]:
    return pai_install("job", verb, "--site", str(cluster.site), *words)


def shown(cluster: Cluster, name: str) -> dict[str, Any]:
    done = job(cluster, "show", name, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def file_of(folder: Path, name: str, pause_s: float = 0.0) -> str:
    """A job of a parameter server and a worker, as protocol 1 has them; the worker takes all devices there are."""
    common = {"taskNumber": 1, "cpuNumber": 1, "memoryMB": 128}
    method = f"{METHOD.format(pause_s)} {WORKERS}"
    roles = [
        {**common, "name": "ps_server", "gpuNumber": 0, "command": f"{method} --job_name=ps"},
        {
            **common,
            "name": "worker",
            "gpuNumber": 8,
            "minSucceededTaskCount": 1,
            "command": f"{method} --job_name=worker",
        },
    ]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"jobName": name, "image": IMAGE, "taskRoles": roles}, indent=2))
    return str(path)


def test_a_parameter_server_and_its_worker_meet_and_find_the_line(site: Cluster, tmp_path: Path) -> None:
    done = job(site, "submit", file_of(tmp_path, "mnist_fit"), "--group", GROUP, "--user", "alice", "--watch")
    assert done.returncode == 0, done.stdout + done.stderr
    found = shown(site, "mnist_fit")
    assert (found["state"], found["user"], found["group"]) == ("SUCCEEDED", "alice", GROUP)
    logs = job(site, "logs", "mnist_fit", "--role", "worker")
    assert "worker 0 met ps 0" in logs.stdout
    assert "worker 0 found y = 2.0 x + -1.0" in logs.stdout
    assert job(site, "stop", "mnist_fit", "--yes").returncode == 0
    assert until(
        lambda: site.kubectl("get", "pods,secrets,jobsets", f"--namespace={GROUP}", "--output=name") == "", 120
    )
    kept_of(site, found)


def kept_of(site: Cluster, before: dict[str, Any]) -> None:
    """What the recorder keeps of the job, now that nothing of it is there."""
    assert until(lambda: shown(site, "mnist_fit")["gone"].startswith("20"), 60)
    found = shown(site, "mnist_fit")
    assert (found["state"], found["user"]) == ("SUCCEEDED", "alice")
    (worker,) = (role for role in found["roles"] if role["name"] == "worker")
    (was,) = (role for role in before["roles"] if role["name"] == "worker")
    assert worker == {**was, "pods": [{**was["pods"][0], "gone": True}]}
    assert worker["pods"][0]["machine"]
    assert worker["pods"][0]["exit_code"] == 0
    lines = "worker 0 found y = 2.0 x + -1.0"
    assert until(lambda: lines in job(site, "logs", "mnist_fit", "--role", "worker").stdout)
    assert "ps 0" in job(site, "logs", "mnist_fit", "--role", "ps_server").stdout


def test_two_jobs_with_devices_for_one_run_after_each_other_and_none_in_part(site: Cluster, tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text(held("half", 8))  # of the quota
    assert job(site, "submit", str(tmp_path / "half.json"), "--group", GROUP).returncode == 0
    try:
        run_after_each_other(site, tmp_path)
        assert shown(site, "half")["state"] == "RUNNING", "it held the other devices all the time"
    finally:
        assert job(site, "stop", "half", "--yes").returncode == 0


def run_after_each_other(site: Cluster, folder: Path) -> None:
    """Two jobs, each of which needs what is left."""
    for name in ("first", "second"):
        done = job(site, "submit", file_of(folder, name, 1.0 if name == "first" else 0.1), "--group", GROUP)
        assert done.returncode == 0, done.stdout + done.stderr
    assert until(lambda: shown(site, "first")["state"] == "RUNNING", 120)
    waits = shown(site, "second")
    assert waits["state"] == "WAITING"
    assert "quota" in waits["why"]
    assert "second" not in site.kubectl("get", "pods", f"--namespace={GROUP}", "--output=name")
    assert until(lambda: shown(site, "first")["state"] == "SUCCEEDED", 120)
    assert until(lambda: shown(site, "second")["state"] == "SUCCEEDED", 120)


def held(name: str, gpus: int, **labels: str) -> str:
    """A Job that holds GPUs and does nothing."""
    resources = {"requests": {"cpu": "50m", "memory": "32Mi", GPU_NAME: gpus}, "limits": {GPU_NAME: gpus}}
    command = ["python3", "-c", "import time; time.sleep(3600)"]
    container = {"name": "main", "image": IMAGE, "command": command, "resources": resources}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    metadata = {"name": name, "labels": labels}
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    return json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def use_of(cluster: Cluster, name: str) -> dict[str, Any]:
    """What the machine of a Job's only pod says of it; empty where it says nothing yet."""
    selector = f"--selector=batch.kubernetes.io/job-name={name}"
    pods = json.loads(cluster.kubectl("get", "pods", f"--namespace={GROUP}", selector, "--output=json"))["items"]
    told = [it["message"] for pod in pods for it in pod["status"]["conditions"] if it["type"] == "pai-install/use"]
    found: dict[str, Any] = json.loads(told[0]) if told else {}
    return found


def test_the_machine_says_how_busy_the_gpus_of_a_pod_are(site: Cluster, tmp_path: Path) -> None:
    """By the kubelet's word which they are, and by nvidia-smi's how busy; no one else can say it."""
    for worker in (ONE, OTHER):
        assert pai_install("lab", "busy", "--site", str(site.site), worker, "42").returncode == 0
    try:
        (tmp_path / "held.json").write_text(held("held", 3))
        assert job(site, "submit", str(tmp_path / "held.json"), "--group", GROUP).returncode == 0
        assert until(lambda: shown(site, "held")["state"] == "RUNNING", 60)
        machine = shown(site, "held")["roles"][0]["pods"][0]["machine"]
        site.on(machine, "systemctl restart pai-gpu-use")  # a minute begins
        assert until(lambda: use_of(site, "held").get("gpu", [[0, 100]])[-1][1] == 42, 130)
        assert use_of(site, "held")["gpus"] == 3
        listed = job(site, "list", "--abnormal")
        assert (listed.returncode, listed.stdout) == (0, "no jobs\n")
        assert "not known" not in listed.stderr
        assert job(site, "stop", "held", "--yes").returncode == 0
    finally:
        for worker in (ONE, OTHER):
            pai_install("lab", "busy", "--site", str(site.site), worker, "0")


def usage(cluster: Cluster, key: str) -> dict[str, Any]:
    done = cluster.run("usage", "--by", key, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def seconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp())


def test_gpu_seconds_are_those_of_the_pod_although_the_recorder_is_killed(site: Cluster, tmp_path: Path) -> None:
    name = f"{GROUP}/alice/counted"

    def row() -> dict[str, Any]:
        return next((it for it in usage(site, "job")["rows"] if it["name"] == name), {})

    before, earlier = usage(site, "job")["total"]["held_gpu_s"], row().get("held_gpu_s", 0)
    (tmp_path / "counted.json").write_text(held("counted", 2))
    words = ("--group", GROUP, "--user", "alice")
    assert job(site, "submit", str(tmp_path / "counted.json"), *words).returncode == 0
    assert until(lambda: shown(site, "counted")["state"] == "RUNNING", 60)
    selector = "--selector=batch.kubernetes.io/job-name=counted"
    ask = ("get", "pods", f"--namespace={GROUP}", selector, "--output=json")
    (pod,) = json.loads(site.kubectl(*ask))["items"]
    site.on(MASTER, "systemctl kill --signal=KILL pai-job-recorder")
    (bound,) = (it["lastTransitionTime"] for it in pod["status"]["conditions"] if it["type"] == "PodScheduled")
    assert until(lambda: site.on(MASTER, "systemctl is-active pai-job-recorder || true").strip() == "active", 60)
    assert job(site, "stop", "counted", "--yes").returncode == 0
    assert until(lambda: row() and row() == row(), 60), "it holds devices no longer"
    lasted = (row()["held_gpu_s"] - earlier) // 2
    assert 5 < lasted <= time.time() - seconds(bound)
    totals = [usage(site, key)["total"] for key in ("user", "group", "virtual-cluster", "job", "sku", "node")]
    assert all(total == totals[0] for total in totals)
    assert totals[0]["held_gpu_s"] - before >= 2 * lasted
    assert {it["name"] for it in usage(site, "sku")["rows"]} == {"gpu"}


def test_logs_of_every_class(site: Cluster) -> None:
    for target in ("job-recorder", "registry", "kube-apiserver", "etcd", "kueue", MASTER):
        done = site.run("logs", target, "--lines", "5")
        assert done.returncode == 0, (target, done.stderr)
        assert done.stdout.strip(), target


# a machine that is lost is no failure of the job
LOST_IS_NONE = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}


def small_gang(folder: Path, name: str, gpus: int, restarts: int | None = None) -> str:
    """A JobSet of the same two roles: with less than a whole core each, so that one machine has room for both.

    Its worker has GPUs, or is for the machine OTHER alone. restarts: how many it is granted, where a lost machine is a
    failure.
    """
    hosts = [f"--{role}_hosts={name}-{role}-0-0.{name}:2222" for role in ("ps", "worker")]
    wanted = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    parts = []
    for role, devices_of_it, where in (("ps", {}, ONE), ("worker", wanted, "" if gpus else OTHER)):
        command = ["python3", "/opt/program.py", "--pause=10", *hosts, f"--job_name={role}", "--task_index=0"]
        resources = {"requests": {"cpu": "100m", "memory": "64Mi", **devices_of_it}, "limits": devices_of_it}
        container = {"name": "main", "image": IMAGE, "command": command, "resources": resources}
        place = {"nodeSelector": {"kubernetes.io/hostname": where}} if where else {}
        pod = {"spec": {"restartPolicy": "Never", "containers": [container], **place}}
        rules = {"podFailurePolicy": LOST_IS_NONE} if restarts is None else {}
        parts.append({"name": role, "template": {"spec": {"backoffLimit": 0, "template": pod, **rules}}})
    again = {} if restarts is None else {"failurePolicy": {"maxRestarts": restarts}}
    network = {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    spec = {"network": network, "replicatedJobs": parts, **again}
    path = folder / f"{name}.json"
    path.write_text(
        json.dumps(
            {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}
        )
    )
    return str(path)


def machine_of(cluster: Cluster, name: str, role: str) -> str:
    """Where the only pod of a role is."""
    pods = next(one["pods"] for one in shown(cluster, name)["roles"] if one["name"] == role)
    return str(pods[0]["machine"]) if pods else ""


def plugin(cluster: Cluster, verb: str) -> None:
    """Starts or stops what gives the devices of the existing machine to the kubelet; without it there are none."""
    cluster.on(ONE, f"systemctl {verb} device-plugin-stand-in")


def pods_of(cluster: Cluster, name: str) -> list[str]:
    """Names of a gang's pods that have not ended."""
    which = (
        f"--selector=jobset.sigs.k8s.io/jobset-name={name}",
        "--field-selector=status.phase!=Failed,status.phase!=Succeeded",
    )
    return cluster.kubectl("get", "pods", f"--namespace={GROUP}", *which, "--output=name").split()


@pytest.mark.soak
def test_a_gang_that_loses_its_machine_begins_again_whole_and_spends_no_retry(site: Cluster, tmp_path: Path) -> None:
    """Kueue takes all of it back once a part of it is not ready, before the job's own policy is asked.

    Where no other machine fits it waits; of none something half remains.
    """
    gangs = {
        "lasting": small_gang(tmp_path, "lasting", 4),
        "again": small_gang(tmp_path, "again", 4, restarts=1),
        "once": small_gang(tmp_path, "once", 0, restarts=0),
    }
    plugin(site, "stop")
    try:
        assert until(lambda: site.kubectl("get", "node", ONE, f"--output=jsonpath={FREE}") == "0", 60)
        for file in gangs.values():
            done = job(site, "submit", file, "--group", GROUP)
            assert done.returncode == 0, done.stdout + done.stderr
        assert until(lambda: all(shown(site, name)["state"] == "RUNNING" for name in gangs), 120)
        assert {machine_of(site, name, "worker") for name in gangs} == {OTHER}
        before = set(pods_of(site, "again"))
        plugin(site, "start")
        fault(site.site, OTHER, "power-off")
        assert until(lambda: f"{OTHER} has not reported for a while" in shown(site, "lasting")["why"], 120)
        assert until(lambda: "was stopped" in shown(site, "lasting")["why"], 420)
        assert until(lambda: machine_of(site, "lasting", "worker") == ONE, 240)
        assert until(lambda: shown(site, "lasting")["state"] == "RUNNING", 120)

        assert until(lambda: shown(site, "again")["state"] == "RUNNING", 120), shown(site, "again")
        assert shown(site, "again")["retries"] == 0
        assert machine_of(site, "again", "worker") == ONE
        assert len(pods_of(site, "again")) == len(before) == 2
        assert not before & set(pods_of(site, "again")), "a part of it went on as if nothing had happened"

        assert until(lambda: pods_of(site, "once") == [], 120), shown(site, "once")
        assert shown(site, "once")["state"] == "WAITING", "its worker is for the lost machine alone"

        pods = ("get", "pods", f"--namespace={GROUP}", "--output=name")
        assert site.kubectl(*pods, f"--field-selector=spec.nodeName={OTHER}") == ""
        for name in gangs:
            assert job(site, "stop", name, "--yes").returncode == 0
        assert until(lambda: site.kubectl(*pods) == "", 120)
    finally:
        plugin(site, "start")
        fault(site.site, OTHER, "heal")
        assert until(lambda: "True" in site.kubectl("get", "node", OTHER, f"--output=jsonpath={READY}"), 180)
