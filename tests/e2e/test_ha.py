"""Three control planes on real machines: any one may fail, also the first."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest

from .conftest import Cluster, lab_site, pai_install, traces

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.81"
MASTERS = ("ha-master1", "ha-master2", "ha-master3")
MACHINES = (*MASTERS, "ha-worker")
LAYOUT = f"""
machine-sku:
  small: {{mem: 1Gi, cpu: {{vcore: 1}}}}
machine-list:
  - {{hostname: ha-master1, hostip: {SUBNET}.11, machine-type: small, pai-master: "true"}}
  - {{hostname: ha-master2, hostip: {SUBNET}.12, machine-type: small, pai-master: "true"}}
  - {{hostname: ha-master3, hostip: {SUBNET}.13, machine-type: small, pai-master: "true"}}
  - {{hostname: ha-worker, hostip: {SUBNET}.21, machine-type: small, pai-worker: "true"}}
"""
# the API as a worker's own programs reach it
READY = "kubectl --kubeconfig /etc/kubernetes/kubelet.conf get --raw /readyz --request-timeout=15s"
# process ids: they change with every restart
PROGRAMS = "pgrep -x etcd; pgrep -x kube-apiserver"


@pytest.fixture(scope="module")
def ha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three control planes and a worker; afterwards nothing of them may be left."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(tmp_path_factory.mktemp("ha"), SUBNET)
    (site / "layout.yaml").write_text(LAYOUT)
    try:
        yield Cluster(site, pai_install("quickstart", "--site", str(site), "--yes", timeout_s=4500))
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


def ready_nodes(cluster: Cluster) -> set[str]:
    """Names of the nodes that are Ready."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        node["metadata"]["name"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }


def test_three_control_planes_and_a_worker_are_ready(ha: Cluster) -> None:
    assert ha.quickstart.returncode == 0, ha.quickstart.stdout + ha.quickstart.stderr
    assert ready_nodes(ha) == set(MACHINES)


def test_etcd_has_a_member_on_each(ha: Cluster) -> None:
    pods = json.loads(ha.kubectl("--namespace", "kube-system", "get", "pods", "-l", "component=etcd", "-o", "json"))
    assert {pod["spec"]["nodeName"] for pod in pods["items"]} == set(MASTERS)


def test_the_key_for_secrets_at_rest_is_one(ha: Cluster) -> None:
    """Else an API server could not read what another one wrote."""
    keys = {ha.on(master, "sha256sum /etc/kubernetes/encryption/config.json") for master in MASTERS}
    assert len(keys) == 1


def test_second_apply_looks_once_and_changes_nothing(ha: Cluster) -> None:
    report = ha.apply()
    assert report["ok"], report["stderr"]
    assert {host: (counts["tasks"], counts["changed"]) for host, counts in report["hosts"].items()} == dict.fromkeys(
        MACHINES, (1, 0)
    )


def test_every_task_again_changes_nothing_and_restarts_nothing(ha: Cluster) -> None:
    before = {master: ha.on(master, PROGRAMS) for master in MASTERS}
    for machine in MACHINES:
        ha.on(machine, "rm -rf /var/lib/pai-install/roles")
    report = ha.apply()
    assert report["ok"], report["stderr"]
    assert {host: counts["changed"] for host, counts in report["hosts"].items()} == dict.fromkeys(MACHINES, 0)
    assert {master: ha.on(master, PROGRAMS) for master in MASTERS} == before


def test_the_first_control_plane_may_fail(ha: Cluster) -> None:
    """The one that made the cluster, serves the components and is in the kubeconfig."""
    fault = pai_install("lab", "fault", "--site", str(ha.site), MASTERS[0], "power-off")
    assert fault.returncode == 0, fault.stderr
    try:
        for _attempt in range(3):  # the proxy hands every request to another control plane
            began = time.monotonic()
            assert ha.on("ha-worker", READY).strip() == "ok"
            assert time.monotonic() - began < 20
        assert "ha-worker" in ha.kubectl("get", "nodes")
        report = ha.apply()
        assert report["exit_code"] == 5
        assert report["hosts"][MASTERS[0]]["unreachable"] == 1
        assert all(report["hosts"][host]["changed"] == 0 for host in MACHINES[1:])
        status = ha.run("status", "--format", "json")
        states = {machine["name"]: machine["state"] for machine in json.loads(status.stdout)["machines"]}
        assert status.returncode == 5
        assert states[MASTERS[0]] == "not reached"
        assert {states[host].partition(" at ")[0] for host in MACHINES[1:]} == {"node is Ready"}
    finally:
        healed = pai_install("lab", "fault", "--site", str(ha.site), MASTERS[0], "heal")
    assert healed.returncode == 0, healed.stderr
    assert well_again(ha)
    report = ha.apply()
    assert report["exit_code"] == 0, report["stderr"]
    assert ready_nodes(ha) == set(MACHINES)


def well_again(cluster: Cluster) -> bool:
    """Whether all is well within three minutes: nodes are Ready before the pods on them are."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if cluster.run("status").returncode == 0:
            return True
        time.sleep(2)
    return False
