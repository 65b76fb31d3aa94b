"""What docs/security.md says of each control is so on the machines; what somebody loosens is tightened again."""

from __future__ import annotations

import base64
import inspect
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.lab.keys import ssh_command
from tests.hardening import evidence as program
from tests.hardening.controls import Control, controls
from tests.hardening.judge import problems, wanted
from tests.kube_bench import PROFILE, archive

from .conftest import PLANTED_SECRET, Cluster, lab_of

pytestmark = pytest.mark.lab

CHECKED = [control for control in controls() if control.checks]
Evidence = Mapping[str, Mapping[str, Any]]


def look(cluster: Cluster, machine: str, checks: list[Mapping[str, Any]]) -> dict[str, Any]:
    """What a machine shows for these checks."""
    source = base64.b64encode(inspect.getsource(program).encode()).decode()
    asked = base64.b64encode(json.dumps(wanted(checks)).encode()).decode()
    run = f"echo {source} | base64 -d >/run/pai-evidence.py; echo {asked} | base64 -d | python3 /run/pai-evidence.py"
    found: dict[str, Any] = json.loads(cluster.on(machine, f"{run}; rm /run/pai-evidence.py"))
    config = json.loads(cluster.kubectl("get", "--raw", f"/api/v1/nodes/{machine}/proxy/configz"))
    proxy = cluster.kubectl(
        "-n", "kube-system", "get", "configmap", "kube-proxy", "-o", "jsonpath={.data.config\\.conf}"
    )
    return {**found, "kubelet": config["kubeletconfig"], "proxy": yaml.safe_load(proxy)}


@pytest.fixture(scope="module")
def evidence(cluster: Cluster) -> Evidence:
    """Machine -> what it shows; a worker for the controls of workers only."""
    everywhere = [check for control in CHECKED if control.on_every_machine for check in control.checks]
    both = [check for control in CHECKED for check in control.checks]
    return {
        "lab-master": look(cluster, "lab-master", both),
        "lab-worker1": look(cluster, "lab-worker1", everywhere),
    }


@pytest.mark.parametrize("control", CHECKED, ids=lambda control: control.id)
def test_control(evidence: Evidence, control: Control) -> None:
    machines = evidence if control.on_every_machine else ["lab-master"]
    found = [
        (machine, problem)
        for machine in machines
        for check in control.checks
        for problem in problems(check, evidence[machine])
    ]
    assert found == []


def failed(cluster: Cluster, machine: str, *targets: str) -> dict[str, str]:
    """Control -> its text, of all that kube-bench calls failed on a machine."""
    spec = lab_of(cluster.site)
    unpack = ["sudo sh -c 'mkdir -p /run/kube-bench && tar -xz -C /run/kube-bench'"]
    with archive().open("rb") as content:
        subprocess.run(ssh_command(spec, spec.machine(machine), unpack), stdin=content, check=True, timeout=300)
    run = f"--config-dir cfg --benchmark {PROFILE} run --json --targets {','.join(targets)}"
    try:
        told = json.loads(cluster.on(machine, f"cd /run/kube-bench && PATH=$PATH:/usr/local/bin ./kube-bench {run}"))
    finally:
        cluster.on(machine, "rm -rf /run/kube-bench")
    results = [result for part in told["Controls"] for group in part["tests"] for result in group["results"]]
    assert len(results) > 10
    return {result["test_number"]: result["test_desc"] for result in results if result["status"] == "FAIL"}


@pytest.mark.soak
def test_kube_bench_fails_nothing_that_the_table_calls_met(cluster: Cluster) -> None:
    """A program of others, with a profile older than our table, judges the same machines."""
    promised = {control.id for control in controls() if control.state in ("met", "set")}
    master = failed(cluster, "lab-master", "master", "etcd", "controlplane", "node", "policies")
    worker = failed(cluster, "lab-worker1", "node")
    wrong = {number: text for number, text in {**master, **worker}.items() if number in promised}
    assert wrong == {}


# what somebody loosens, the words of the plan, a command that succeeds when it is tight again
LOOSENED = (
    (
        "chmod 644 /etc/kubernetes/admin.conf",
        "/etc/kubernetes/admin.conf has mode 0644, more than 0600",
        "test $(stat -c %a /etc/kubernetes/admin.conf) = 600",
    ),
    (
        "chown daemon /etc/kubernetes/pki/ca.key",
        "/etc/kubernetes/pki/ca.key belongs to 1:0, not to root",
        "test $(stat -c %U /etc/kubernetes/pki/ca.key) = root",
    ),
    (
        "chmod 644 /var/lib/kubelet/config.yaml",
        "/var/lib/kubelet/config.yaml has mode 0644 instead of 0600",
        "test $(stat -c %a /var/lib/kubelet/config.yaml) = 600",
    ),
    (
        "sed -i s/--profiling=false/--profiling=true/ /etc/kubernetes/manifests/kube-scheduler.yaml",
        "/etc/kubernetes/manifests/kube-scheduler.yaml was changed by hand",
        "grep -q -- --profiling=false /etc/kubernetes/manifests/kube-scheduler.yaml",
    ),
)


@contextmanager
def command_lines_with(secret: str) -> Iterator[set[str]]:
    """Collects the names of programs on the controller host in whose command line the secret is seen meanwhile."""
    found: set[str] = set()
    ended = threading.Event()

    def look_around() -> None:
        while not ended.wait(0.3):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    if secret.encode() in (words := path.read_bytes()):
                        found.add(words.split(b"\0")[0].decode())

    watcher = threading.Thread(target=look_around)
    watcher.start()
    try:
        yield found
    finally:
        ended.set()
        watcher.join()


def test_a_secret_in_a_command_line_would_be_seen() -> None:
    with command_lines_with("word-on-the-line-5d1c") as seen:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(2)", "word-on-the-line-5d1c"], check=True)
    assert seen == {sys.executable}


def test_what_is_loosened_is_drift_and_tightened_again(cluster: Cluster) -> None:
    """And nobody who lists the processes of the controller host learns the password of the site."""
    for damage, _words, _tight in LOOSENED:
        cluster.on("lab-master", damage)
    phases = {phase["name"]: phase["hosts"] for phase in cluster.plan()["phases"]}
    reasons = {(step["host"], reason) for step in phases["control-plane"] for reason in step["reasons"]}
    assert reasons == {("lab-master", words) for _damage, words, _tight in LOOSENED}
    with command_lines_with(PLANTED_SECRET) as seen:
        report = cluster.converge()
    assert report["ok"], report["stderr"]
    assert seen == set()
    for damage, _words, tight in LOOSENED:
        assert cluster.on("lab-master", f"{tight} && echo yes").strip() == "yes", damage
    assert cluster.to_change() == []


# a join token: six characters, a dot, sixteen more
TOKEN = r"(^|[^a-z0-9-])[a-z0-9]{6}\.[a-z0-9]{16}([^a-z0-9.]|$)"


@pytest.mark.parametrize("machine", ["lab-master", "lab-worker1"])
class TestMachine:
    """What others than root could read on a machine."""

    def test_its_journal_holds_no_secret(self, cluster: Cluster, machine: str) -> None:
        for pattern in (PLANTED_SECRET, TOKEN):
            # the bracket keeps sudo's own record of this very command from matching
            searched = f"[{pattern[0]}]{pattern[1:]}" if pattern == PLANTED_SECRET else pattern
            assert cluster.on(machine, f"journalctl --no-pager | grep -cE '{searched}' || true").strip() == "0"

    def test_nobody_else_can_read_its_private_keys(self, cluster: Cluster, machine: str) -> None:
        places = "/etc /root /home /tmp /var/tmp /var/log /var/lib/kubelet/pki /var/lib/pai-install/rendered"
        keys = f"grep -rlE -e '^-+BEGIN [A-Z ]*PRIVATE KEY' -e 'client-key-data: ' {places} || true"
        found = cluster.on(machine, keys).split()
        assert found
        modes = cluster.on(machine, f"stat -c '%a %n' {' '.join(found)}").splitlines()
        assert [line for line in modes if not line.split()[0].endswith("00")] == []
