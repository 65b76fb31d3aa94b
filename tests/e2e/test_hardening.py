"""What docs/security.md says of each control is so on the machines; what somebody loosens is tightened again."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.hardening import evidence as program
from tests.hardening.controls import Control, controls
from tests.hardening.judge import problems, wanted

from .conftest import Cluster

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
        "/var/lib/kubelet/config.yaml has mode 0644, more than 0600",
        "test $(stat -c %a /var/lib/kubelet/config.yaml) = 600",
    ),
    (
        "sed -i s/--profiling=false/--profiling=true/ /etc/kubernetes/manifests/kube-scheduler.yaml",
        "/etc/kubernetes/manifests/kube-scheduler.yaml was changed by hand",
        "grep -q -- --profiling=false /etc/kubernetes/manifests/kube-scheduler.yaml",
    ),
)


def test_what_is_loosened_is_drift_and_tightened_again(cluster: Cluster) -> None:
    for damage, _words, _tight in LOOSENED:
        cluster.on("lab-master", damage)
    phases = {phase["name"]: phase["hosts"] for phase in cluster.plan()["phases"]}
    reasons = {(step["host"], reason) for step in phases["control-plane"] for reason in step["reasons"]}
    assert reasons == {("lab-master", words) for _damage, words, _tight in LOOSENED}
    report = cluster.apply()
    assert report["ok"], report["stderr"]
    for damage, _words, tight in LOOSENED:
        assert cluster.on("lab-master", f"{tight} && echo yes").strip() == "yes", damage
    assert cluster.plan()["phases"] == []
