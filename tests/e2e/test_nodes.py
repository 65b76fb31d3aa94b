"""Machines come and go: two at once, one of which cannot; under a job; dead; killed half-way; rebooted; replaced."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from pai_install.operations.removed_machines import NAME as FENCE
from tests.layouts import worker_entry

from .conftest import Cluster, equip, killed_when, lab_site, pai_install, traces

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.90"
STAYS, SECOND, THIRD = "lab-worker1", "lab-worker2", "lab-worker3"
KILLS = 10
SEED = 20261124
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeName: %s
      containers: [{name: main, image: %s, command: [sleep, "%d"]}]
"""


def entry(name: str, last: int) -> str:
    """A worker of layout.yaml."""
    return f"\n  # {name} came later{worker_entry(name, f'{SUBNET}.{last}', 'lab-gpu')}"


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane and a worker, and two machines beside them that are of the layout and not of the cluster."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(tmp_path_factory.mktemp("nodes"), SUBNET)
    layout = site / "layout.yaml"
    layout.write_text(layout.read_text().rstrip() + "\n" + entry(THIRD, 14))
    equip(site)
    try:
        up = pai_install("lab", "up", "--site", str(site), "--yes")
        assert up.returncode == 0, up.stderr
        made = pai_install("apply", "--site", str(site), "--yes", f"--limit=lab-master,{STAYS}", timeout_s=4500)
        assert made.returncode == 0, made.stderr
        yield Cluster(site, made)
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


def nodes(growing: Cluster) -> dict[str, bool]:
    """Node -> whether it is ready."""
    found = json.loads(growing.kubectl("get", "nodes", "--output", "json"))["items"]
    return {
        one["metadata"]["name"]: any(
            it["type"] == "Ready" and it["status"] == "True" for it in one["status"]["conditions"]
        )
        for one in found
    }


def logins(growing: Cluster, machine: str) -> int:
    """The logins there so far; to ask is one more."""
    return int(growing.on(machine, "journalctl --unit ssh --output cat | grep -c '^Accepted'"))


def leftovers(growing: Cluster, machine: str) -> str:
    """What is left of pai-install and of Kubernetes on a machine; empty where it is clean. But the lab's."""
    return growing.on(
        machine,
        "{ ls -d /etc/kubernetes /etc/pai-install /usr/local/lib/pai-install /usr/local/bin/kube*"
        " /usr/local/bin/containerd /etc/systemd/system/pai-* /etc/systemd/system/kubelet*"
        " /var/lib/pai-install/roles 2>/dev/null;"
        " ls -A /var/lib/kubelet 2>/dev/null; grep pai-install /etc/hosts; ip -brief link | grep -E 'cni0|flannel';"
        " systemctl list-units --plain --no-legend 'pai-*' kubelet.service containerd.service; }"
        " | grep -v pai-lab-; true",
    ).strip()


def report_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The report in JSON."""
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return found


def test_of_two_at_once_one_joins_and_the_other_is_clean_and_named(growing: Cluster) -> None:
    growing.on(THIRD, "mkdir -p /root/apt && mv /etc/apt/sources.list.d/* /root/apt/ && rm -rf /var/lib/apt/lists/*")
    growing.on(THIRD, "echo 'deb http://127.0.0.1:9/ nowhere main' > /etc/apt/sources.list.d/broken.list")
    before = logins(growing, STAYS)
    done = growing.run("node", "add", SECOND, THIRD, "--yes", timeout_s=1800)
    assert leftovers(growing, THIRD) == ""
    assert logins(growing, STAYS) == before + 1, "the worker that was there is not contacted"
    assert done.returncode in (4, 6), (done.stdout, done.stderr)
    assert THIRD in done.stdout + done.stderr
    assert nodes(growing) == {"lab-master": True, STAYS: True, SECOND: True}
    growing.on(THIRD, "rm /etc/apt/sources.list.d/broken.list && mv /root/apt/* /etc/apt/sources.list.d/")
    again = growing.run("node", "add", THIRD, "--yes", timeout_s=1800)
    assert again.returncode == 0, (again.stdout, again.stderr)
    assert nodes(growing)[THIRD]
    assert logins(growing, STAYS) == before + 2
    assert growing.to_change() == []


def test_a_machine_under_a_job_leaves_when_the_job_has_ended(growing: Cluster) -> None:
    job = JOB % (THIRD, busybox(growing), 150)
    path = growing.site / "job.yaml"
    path.write_text(job)
    growing.kubectl("apply", "--filename", str(path))
    growing.kubectl("wait", "--for=jsonpath={.status.active}=1", "job/train", "--timeout=120s")
    refused = growing.run("node", "remove", THIRD, "--yes")
    assert refused.returncode == 4, (refused.stdout, refused.stderr)
    assert "Job default/train" in refused.stderr
    before = (growing.site / "layout.yaml").read_text()
    done = growing.run("node", "remove", THIRD, "--yes", "--wait=300", timeout_s=1800)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "waits for jobs: default/train" in done.stderr
    assert json.loads(growing.kubectl("get", "job", "train", "--output", "json"))["status"]["succeeded"] == 1
    assert set(nodes(growing)) == {"lab-master", STAYS, SECOND}
    assert leftovers(growing, SECOND) != ""
    text = (growing.site / "layout.yaml").read_text()
    assert THIRD not in [one["hostname"] for one in yaml.safe_load(text)["machine-list"]]
    assert f"# {THIRD} came later" in text, "comments stay"
    assert growing.to_change() == []
    (growing.site / "layout.yaml").write_text(before)  # the lab knows its machines from there
    fault(growing, THIRD, "heal")  # the site has forgotten its host key
    assert leftovers(growing, THIRD) == ""
    (growing.site / "layout.yaml").write_text(text)


def busybox(growing: Cluster) -> str:
    """An image that the machines hold."""
    said = growing.on(STAYS, "crictl images --output json")
    names = [tag for one in json.loads(said)["images"] for tag in one["repoTags"] if "busybox" in tag]
    assert names, said
    return str(names[0])


def test_a_dead_machine_that_comes_back_makes_no_node(growing: Cluster) -> None:
    fault(growing, SECOND, "power-off")
    growing.kubectl("wait", "--for=condition=Ready=Unknown", f"node/{SECOND}", "--timeout=180s")
    layout = growing.site / "layout.yaml"
    before = layout.read_text()
    done = growing.run("node", "remove", SECOND, "--dead", "--yes")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert SECOND not in nodes(growing)
    assert f"{SUBNET}.13" not in (growing.site / ".pai" / "known_hosts").read_text()
    layout.write_text(before)  # the lab knows its machines from there
    fault(growing, SECOND, "heal")
    wait_for(lambda: "was removed from the cluster" in growing.on(SECOND, "journalctl --unit kubelet --output cat"))
    assert SECOND not in nodes(growing)
    listed = json.loads(growing.kubectl("get", "configmap", FENCE, "--namespace=kube-system", "--output", "json"))
    assert SECOND in listed["data"]
    again = growing.run("node", "add", SECOND, "--yes", "--accept-new", timeout_s=1800)
    assert again.returncode == 0, (again.stdout, again.stderr)
    assert nodes(growing)[SECOND]
    assert "Clean the machines" in again.stderr
    assert growing.to_change() == []


def fault(growing: Cluster, machine: str, name: str) -> None:
    """Breaks a machine, or heals it."""
    done = pai_install("lab", "fault", "--site", str(growing.site), machine, name)
    assert done.returncode == 0, done.stderr


def wait_for(condition: Any, seconds: float = 180) -> None:
    """Until it holds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except AssertionError:
            pass  # it does not answer yet
        assert time.monotonic() < deadline
        time.sleep(2)


def test_killed_half_way_the_same_command_comes_to_its_end(growing: Cluster) -> None:
    """Ten times, at random moments of adding and removing, early ones and late ones."""
    layout = growing.site / "layout.yaml"
    whole = layout.read_text()
    moments = random.Random(SEED)  # noqa: S311 - a repeatable test
    lengths = {"remove": 12, "add": 40}  # tasks that end on machines, at least; what a run takes is learned
    early_or_late = []
    for number in range(KILLS):
        verb = "remove" if number % 2 == 0 else "add"
        words = ["node", verb, SECOND, "--yes", *(["--keep-in-layout"] if verb == "remove" else [])]
        after = moments.randrange(lengths[verb])
        early_or_late.append(killed_when(growing.site, partial(at_least, after), *words))
        time.sleep(3)  # what Ansible still had to say to the machine
        done = growing.run(*words, timeout_s=1800)
        assert done.returncode == 0, (number, verb, after, done.stdout, done.stderr)
        lengths[verb] = max(lengths[verb], last_run(growing))
        assert (SECOND in nodes(growing)) == (verb == "add")
        assert growing.to_change() == [], (number, verb, after)
        if verb == "remove":
            absent = layout.read_text()
            layout.write_text(whole)  # the lab knows its machines from there
            assert leftovers(growing, SECOND) == "", (number, after)
            layout.write_text(absent)
    assert early_or_late.count(True) >= KILLS - 2


def at_least(tasks: int, events: str) -> bool:
    """Whether so many tasks have ended."""
    return events.count("\n") >= tasks


def last_run(growing: Cluster) -> int:
    """How many tasks ended on machines in the last run that wrote any down."""
    files = (growing.site / ".pai" / "runs").glob("*/events.jsonl")
    return max(files, key=lambda file: file.stat().st_mtime).read_text().count("\n")


def test_reboots_come_one_after_the_other(growing: Cluster) -> None:
    boots = {name: growing.on(name, "cat /proc/sys/kernel/random/boot_id") for name in (STAYS, SECOND)}
    done = growing.run("node", "reboot", STAYS, SECOND, "--yes", "--force", timeout_s=1800)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert all(growing.on(name, "cat /proc/sys/kernel/random/boot_id") != boot for name, boot in boots.items())
    assert nodes(growing) == {"lab-master": True, STAYS: True, SECOND: True}


def test_another_machine_takes_the_name_of_one_that_is_gone(growing: Cluster) -> None:
    """A stand-in for other hardware: another machine id and another host key, and no kubelet that starts."""
    ready = growing.run("node", "replace", SECOND, "--yes")
    assert ready.returncode == 4, (ready.stdout, ready.stderr)
    assert "the node is ready" in ready.stderr
    old = identity(growing, SECOND)
    growing.on(SECOND, "systemctl disable kubelet; tr -d - < /proc/sys/kernel/random/uuid > /etc/machine-id; sync")
    growing.on(
        SECOND, "rm /etc/ssh/ssh_host_ed25519_key* && ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key"
    )
    fault(growing, SECOND, "power-off")
    fault(growing, SECOND, "heal")
    growing.kubectl("wait", "--for=condition=Ready=Unknown", f"node/{SECOND}", "--timeout=180s")
    done = growing.run("node", "replace", SECOND, "--yes", "--accept-new", timeout_s=1800)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert identity(growing, SECOND) != old
    assert growing.to_change() == []


def identity(growing: Cluster, name: str) -> str:
    """The machine id of a node."""
    node = json.loads(growing.kubectl("get", "node", name, "--output", "json"))
    return str(node["status"]["nodeInfo"]["machineID"])
