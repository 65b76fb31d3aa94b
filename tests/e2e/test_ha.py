"""Three control planes on real machines: any one may fail, also the first."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_install.lab.keys import ssh_command

from .conftest import ROOT, Cluster, equip, lab_of, lab_site, pai_install, shell_word, traces, until, user_environment

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
# three disks for etcd are files on one disk of the dev box, which other work keeps busy: a fault of the stand-in
FORCED = ("--force-check", "etcd-disk")
# the API as a worker's own programs reach it
READY = "kubectl --kubeconfig /etc/kubernetes/kubelet.conf get --raw /readyz --request-timeout=15s"
# a client that watches its node as controllers do: a watch that ends begins again where it ended
WATCH = """
import json, subprocess, sys, time
get = ["kubectl", "--kubeconfig", "/etc/kubernetes/kubelet.conf", "get", "--raw"]
path = "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dha-worker&timeoutSeconds=600"
version, ticks, errors, ends = "", [], [], 0
print("watching", flush=True)
while "end" not in ticks:
    where = path + (version and "&resourceVersion=" + version)
    watch = subprocess.Popen([*get, where], stdout=subprocess.PIPE, text=True)
    for line in watch.stdout:
        event = json.loads(line)
        if event["type"] == "ERROR":
            errors.append(event["object"].get("message", ""))
            break
        version = event["object"]["metadata"]["resourceVersion"]
        tick = event["object"]["metadata"].get("annotations", {}).get("tick", "")
        ticks += [tick] if tick and tick not in ticks else []
        if tick == "end":
            break
    watch.kill()
    ends += 1
    time.sleep(0.2)
print(json.dumps({"ticks": ticks, "errors": errors, "watches": ends}))
"""
# process ids: they change with every restart
PROGRAMS = "pgrep -x etcd; pgrep -x kube-apiserver"


@pytest.fixture(scope="module")
def ha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three control planes and a worker; afterwards nothing of them may be left."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(tmp_path_factory.mktemp("ha"), SUBNET)
    (site / "layout.yaml").write_text(LAYOUT)
    equip(site)
    up = pai_install("lab", "up", "--site", str(site), "--yes")
    try:
        assert up.returncode == 0, up.stderr
        yield Cluster(site, pai_install("apply", "--site", str(site), "--yes", *FORCED, timeout_s=4500))
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


def test_certificates_are_renewed_while_a_watch_goes_on(ha: Cluster) -> None:
    """Through the worker's own proxy: every change meanwhile is taken within seconds, and comes by the watch."""
    ha.kubectl("annotate", "node", "ha-worker", "tick-")
    watching = begin(ha, "ha-worker", f"python3 -c {shell_word(WATCH)}")
    assert watching.stdout is not None
    assert watching.stdout.readline() == "watching\n"
    before = {master: ha.on(master, PROGRAMS) for master in MASTERS}
    words = ["certs", "renew", "--site", str(ha.site), "--within", "400", "--yes"]
    made: list[str] = []
    with subprocess.Popen(
        [str(ROOT / "pai-install"), *words], cwd=ROOT, env=user_environment(), stdin=subprocess.DEVNULL
    ) as renewing:
        while renewing.poll() is None:
            began = time.monotonic()
            made.append(str(len(made)))
            ha.kubectl("annotate", "node", "ha-worker", f"tick={made[-1]}", "--overwrite", "--request-timeout=15s")
            assert time.monotonic() - began < 20, "the API was away"
            time.sleep(0.5)
    ha.kubectl("annotate", "node", "ha-worker", "tick=end", "--overwrite")
    out, errors = watching.communicate(timeout=120)
    found = json.loads(out)
    assert renewing.returncode == 0
    assert found == {**found, "ticks": [*made, "end"], "errors": []}, errors
    assert all(ha.on(master, PROGRAMS) != before[master] for master in MASTERS), "nothing restarted"
    ha.kubectl("annotate", "node", "ha-worker", "tick-")


def test_backup_destroy_and_restore(ha: Cluster, tmp_path: Path) -> None:
    """etcd of all three is gone; afterwards the objects are there again, and three members."""
    file = tmp_path / "backup.tar.gz"
    ha.kubectl("create", "configmap", "before-backup", "--from-literal=a=1")
    assert ha.run("backup", str(file)).returncode == 0
    for master in MASTERS:
        ha.on(master, "rm -rf /var/lib/etcd/member; pkill -x etcd || true")
    restored = ha.run("restore", str(file), "--yes", timeout_s=1800)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert "configmap/before-backup" in ha.kubectl("get", "configmaps", "--output=name").split()
    assert members(ha) == set(MASTERS)
    assert well_again(ha)


def test_a_control_plane_leaves_and_another_machine_takes_its_place(ha: Cluster) -> None:
    """The first, dead and gone: its member and its node go, a machine that is installed anew joins under its name."""
    gone = MASTERS[0]
    identity = ha.kubectl("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")
    alive = ha.run("node", "replace", gone, "--yes")
    assert alive.returncode == 4, "a machine that is alive is not replaced"
    fault = pai_install("lab", "fault", "--site", str(ha.site), gone, "power-off")
    assert fault.returncode == 0, fault.stderr
    assert until(lambda: gone not in ready_nodes(ha), 180)
    # the new hardware: nothing of the cluster is on it
    wipe = "rm -rf /etc/kubernetes /var/lib/etcd/member /var/lib/kubelet/pki /var/lib/pai-install"
    healing = pai_install("lab", "fault", "--site", str(ha.site), gone, "heal")
    assert healing.returncode == 0, healing.stderr
    ha.on(
        gone,
        f"systemctl disable --now kubelet; ctr -n k8s.io tasks ls -q | xargs -r ctr -n k8s.io tasks kill -s 9; {wipe}",
    )
    assert until(lambda: gone not in ready_nodes(ha), 180)
    replaced = ha.run("node", "replace", gone, "--accept-new", *FORCED, "--yes", timeout_s=1800)
    assert replaced.returncode == 0, replaced.stdout + replaced.stderr
    assert members(ha) == set(MASTERS)
    assert ha.kubectl("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}") == identity
    assert well_again(ha)


def test_three_become_one(ha: Cluster) -> None:
    """One member after the other leaves etcd, and what is left is a cluster that needs nothing."""
    names = ",".join(MASTERS[:2])
    removed = ha.run("node", "remove", *MASTERS[:2], "--force", f"--yes={names}", timeout_s=1800)
    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert members(ha) == {MASTERS[2]}
    report = ha.apply()
    assert report["ok"], report["stderr"]
    assert ready_nodes(ha) == {MASTERS[2], "ha-worker"}


def begin(cluster: Cluster, machine: str, command: str) -> subprocess.Popen[str]:
    """Begins a command as root on a machine; its output is text."""
    spec = lab_of(cluster.site)
    words = ssh_command(spec, spec.machine(machine), [f"sudo sh -c {shell_word(command)}"])
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def members(cluster: Cluster) -> set[str]:
    """Names of etcd's members, by the word of the last control plane."""
    found = json.loads(cluster.on(MASTERS[2], "etcdctl member list --write-out=json"))
    return {member.get("name", "") for member in found["members"]}
