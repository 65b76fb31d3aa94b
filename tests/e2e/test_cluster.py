"""The whole way on real machines: install, prove, run again, repair what was changed by hand."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_install.registry.identity import make_identity, read_identity
from pai_install.registry.model import ServedNames
from pai_install.run.state import open_state

from .conftest import PLANTED_SECRET, ROOT, Cluster

pytestmark = pytest.mark.lab

MACHINES = {"lab-master", "lab-worker1", "lab-worker2"}


def test_quickstart_ends_well(cluster: Cluster) -> None:
    assert cluster.quickstart.returncode == 0, cluster.quickstart.stdout + cluster.quickstart.stderr
    assert "3 machines are a verified Kubernetes cluster" in cluster.quickstart.stdout


def test_three_ready_nodes(cluster: Cluster) -> None:
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    conditions = {
        node["metadata"]["name"]: {entry["type"]: entry["status"] for entry in node["status"]["conditions"]}
        for node in nodes
    }
    assert set(conditions) == MACHINES
    assert all(found["Ready"] == "True" for found in conditions.values())
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {"v1.36.3"}


def test_second_apply_changes_nothing_and_does_little(cluster: Cluster) -> None:
    report = cluster.apply()
    assert report["ok"], report["stderr"]
    assert set(report["hosts"]) == MACHINES
    for counts in report["hosts"].values():
        assert counts["changed"] == 0
        assert counts["tasks"] <= 10


@pytest.mark.soak
def test_every_task_again_changes_nothing(cluster: Cluster) -> None:
    """The roles themselves are idempotent, not only the planner sparing: without records everything runs again."""
    for machine in MACHINES:
        cluster.on(machine, "rm -rf /var/lib/pai-install/roles")
    report = cluster.converge()
    assert report["ok"], report["stderr"]
    assert {host: counts["changed"] for host, counts in report["hosts"].items()} == dict.fromkeys(MACHINES, 0)
    # among them those of system_images and pod_forwarding, and what asks the component store for its certificate
    tasks = {host: counts["tasks"] for host, counts in report["hosts"].items()}
    assert max(tasks.values()) <= 50, tasks
    assert min(tasks.values()) <= 41, tasks


DRIFT: dict[str, tuple[str, str, str]] = {
    # what was done by hand, the words of the plan, a command that succeeds when it is repaired
    "daemon.json": (
        """sed -i 's/"live-restore": true/"live-restore": false/' /etc/docker/daemon.json""",
        "/etc/docker/daemon.json was changed by hand",
        """grep -q '"live-restore": true' /etc/docker/daemon.json""",
    ),
    "sysctl file": (
        "rm /etc/sysctl.d/zz-pai-install.conf",
        "/etc/sysctl.d/zz-pai-install.conf is missing",
        "test -f /etc/sysctl.d/zz-pai-install.conf",
    ),
    "sysctl value": (
        "sysctl -w net.ipv4.ip_local_port_range='32768 60999'",
        "net.ipv4.ip_local_port_range is 32768 60999 instead of 40000 65535",
        "sysctl -n net.ipv4.ip_local_port_range | grep -qw 40000",
    ),
    "modules file": (
        "echo dummy >> /etc/modules-load.d/zz-pai-install.conf",
        "/etc/modules-load.d/zz-pai-install.conf was changed by hand",
        "! grep -q dummy /etc/modules-load.d/zz-pai-install.conf",
    ),
    "hosts": (
        "sed -i 's/ lab-master registry/ lab-other registry/' /etc/hosts",
        "the block of pai-install in /etc/hosts was changed by hand",
        "grep -q ' lab-master registry.pai.internal$' /etc/hosts",
    ),
    "stopped service": (
        "systemctl stop chrony",
        "chrony.service is inactive instead of active",
        "systemctl is-active chrony",
    ),
    "chrony.conf": (
        "echo 'pool 2.debian.pool.ntp.org iburst' >> /etc/chrony/chrony.conf",
        "/etc/chrony/chrony.conf has the line 'pool 2.debian.pool.ntp.org iburst' again",
        "! grep -q '^pool ' /etc/chrony/chrony.conf",
    ),
    "time servers": (
        "sed -i 's/^server .*/server 192.0.2.1/' /etc/chrony/conf.d/pai-install.conf",
        "/etc/chrony/conf.d/pai-install.conf was changed by hand",
        "! chronyc -n sources | grep -q '192[.]0[.]2[.]1 '",
    ),
    "disabled service": (
        "systemctl disable docker",
        "docker.service is disabled instead of enabled",
        "systemctl is-enabled docker",
    ),
    "containerd": (
        "sed -i 's/enable_cdi = true/enable_cdi = false/' /etc/containerd/config.toml",
        "/etc/containerd/config.toml was changed by hand",
        "grep -q 'enable_cdi = true' /etc/containerd/config.toml",
    ),
    "registry of containerd": (
        "rm /etc/containerd/certs.d/registry.pai.internal/hosts.toml",
        "/etc/containerd/certs.d/registry.pai.internal/hosts.toml is missing",
        "test -s /etc/containerd/certs.d/registry.pai.internal/hosts.toml",
    ),
    "unit file": (
        "chmod 0666 /etc/systemd/system/containerd.service",
        "/etc/systemd/system/containerd.service has mode 0666 instead of 0644",
        "stat -c %a /etc/systemd/system/containerd.service | grep -qx 644",
    ),
    "kubelet settings": (
        "sed -i 's/^maxParallelImagePulls:.*/maxParallelImagePulls: 1/' /var/lib/kubelet/config.yaml",
        "/var/lib/kubelet/config.yaml was changed by hand",
        "grep -q 'maxParallelImagePulls: 4' /var/lib/kubelet/config.yaml",
    ),
    "kubelet flag": (
        "sed -i 's/--node-ip/--v=4 --node-ip/' /etc/default/kubelet && systemctl restart kubelet",
        "/etc/default/kubelet was changed by hand",
        "! xargs -0 < /proc/$(pidof kubelet)/cmdline | grep -e --v=4",
    ),
    "kubelet drop-in": (
        "echo 'Nice=19' >> /etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
        "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf was changed by hand",
        "systemctl show --property Nice kubelet | grep -x Nice=0",
    ),
    "removed package": (
        "apt-get remove -y -q socat",
        "package socat is not installed",
        "command -v socat",
    ),
    "removed package of a service": (
        "apt-get remove -y -q haproxy",
        "package haproxy is not installed",
        "test -x /usr/sbin/haproxy && ! systemctl -q is-enabled haproxy",
    ),
    "program": (
        "truncate -s 0 /opt/cni/bin/bridge",
        "/opt/cni/bin/bridge was changed by hand",
        "test -s /opt/cni/bin/bridge",
    ),
}
MASTER_DRIFT: dict[str, tuple[str, str, str]] = {
    "flag of the API server": (
        "sed -i 's/--profiling=false/--profiling=true/' /etc/kubernetes/manifests/kube-apiserver.yaml",
        "/etc/kubernetes/manifests/kube-apiserver.yaml was changed by hand",
        "grep -e --profiling=false /etc/kubernetes/manifests/kube-apiserver.yaml",
    ),
    "audit policy": (
        "echo '# by hand' >> /etc/kubernetes/audit/policy.yaml",
        "/etc/kubernetes/audit/policy.yaml was changed by hand",
        "! grep -q 'by hand' /etc/kubernetes/audit/policy.yaml",
    ),
    "kubeconfig of the administrator": (
        "rm /etc/kubernetes/admin.conf",
        "/etc/kubernetes/admin.conf is missing",
        "/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf get namespace default",
    ),
    "kubeconfig of the scheduler": (
        "rm /etc/kubernetes/scheduler.conf",
        # the kubelet makes an empty one when the scheduler happens to restart
        "/etc/kubernetes/scheduler.conf is ",
        "grep client-certificate-data /etc/kubernetes/scheduler.conf",
    ),
}


def reasons_of(plan: dict[str, Any]) -> set[tuple[str, str]]:
    """(machine, reason), without the proof and the look at the machines' health in the end."""
    phases = [phase for phase in plan["phases"] if phase["name"] not in ("verify", "health")]
    return {(step["host"], reason) for phase in phases for step in phase["hosts"] for reason in step["reasons"]}


def damage(cluster: Cluster, machine: str, drift: Mapping[str, tuple[str, str, str]]) -> None:
    """Does all of it at once: a pod that restarts between two of them could put something in a file's place."""
    cluster.on(machine, "set -e\n" + "\n".join(command for command, _words, _repaired in drift.values()))


def broken(cluster: Cluster, machine: str, drift: Mapping[str, tuple[str, str, str]]) -> list[str]:
    """The names of what is not repaired."""
    looks = (f"({repaired}) >/dev/null || echo {name}" for name, (_damage, _words, repaired) in drift.items())
    return cluster.on(machine, "\n".join(looks)).splitlines()


def test_drift_is_seen_in_the_plan_and_repaired(cluster: Cluster) -> None:
    """All kinds at once, on one machine: the others must be left alone."""
    damage(cluster, "lab-worker1", DRIFT)
    plan = cluster.plan()
    reasons = reasons_of(plan)
    assert {host for host, _reason in reasons} == {"lab-worker1"}
    assert {("lab-worker1", words) for _damage, words, _repaired in DRIFT.values()} <= reasons
    effects = {effect for phase in plan["phases"] for step in phase["hosts"] for effect in step["effects"]}
    assert effects >= {"restarts docker.service", "restarts containerd.service", "restarts kubelet.service"}
    report = cluster.converge()
    assert report["ok"], report["stderr"]
    assert report["hosts"]["lab-worker2"]["changed"] == 0
    assert broken(cluster, "lab-worker1", DRIFT) == []
    assert cluster.to_change() == []


def test_drift_of_the_control_plane_is_repaired_and_nothing_is_lost(cluster: Cluster) -> None:
    """Also without admin.conf it stays the control plane of its cluster: beginning again would empty etcd."""
    before = cluster.kubectl("get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}")
    damage(cluster, "lab-master", MASTER_DRIFT)
    reasons = reasons_of(cluster.plan())
    seen = [reason for host, reason in reasons if host == "lab-master"]
    for _damage, words, _repaired in MASTER_DRIFT.values():
        assert any(reason.startswith(words) for reason in seen), f"{words}: {seen}"
    report = cluster.converge()
    assert report["ok"], report["stderr"]
    assert broken(cluster, "lab-master", MASTER_DRIFT) == []
    after = cluster.kubectl("get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}")
    assert after == before
    assert cluster.to_change() == []


def test_deleted_object_comes_back(cluster: Cluster) -> None:
    cluster.kubectl("delete", "--namespace", "kube-flannel", "daemonset", "kube-flannel")
    plan = cluster.plan()
    assert [phase["name"] for phase in plan["phases"]] == ["network", "verify", "health"]
    assert cluster.converge()["ok"]


def test_verify_names_every_proof(cluster: Cluster) -> None:
    done = cluster.run("verify", "--format", "json")
    findings = json.loads(done.stdout)["findings"]
    assert done.returncode == 0, findings
    seen = {(finding["id"], finding["subject"]): finding["verdict"] for finding in findings}
    for worker in ("lab-worker1", "lab-worker2"):
        for check in ("cluster-dns", "service", "api", "time-sync", "node-ready", "runtime-class-nvidia"):
            assert seen[(check, worker)] == "PASS"
        for runtime in ("containerd-runc", "containerd-nvidia", "docker-runc", "docker-nvidia"):
            assert seen[(runtime, worker)] == "PASS"
    assert seen[("system-pods", "cluster")] == "PASS"
    assert "docker-nvidia" not in {check for check, subject in seen if subject == "lab-master"}


def test_broken_cluster_is_no_success(cluster: Cluster) -> None:
    """Nothing to install, but a pod of the cluster's DNS cannot start: exit code 7 until a proof has succeeded."""
    cluster.kubectl("--namespace", "kube-system", "patch", "deployment", "coredns", "--patch", BAD_IMAGE)
    try:
        _wait(lambda: cluster.apply()["exit_code"] == 7)
        assert cluster.run("verify").returncode == 7
    finally:
        cluster.kubectl("--namespace", "kube-system", "rollout", "undo", "deployment/coredns")
        cluster.kubectl("--namespace", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
    unproven = cluster.run("status", "--format", "json")
    assert unproven.returncode == 7
    assert json.loads(unproven.stdout)["unproven"]
    proof = cluster.apply()
    assert proof["ok"], proof["stderr"]
    assert "verify" in {phase["name"] for phase in proof["phases"]}
    assert cluster.run("status").returncode == 0


BAD_IMAGE = json.dumps(
    {"spec": {"template": {"spec": {"containers": [{"name": "coredns", "image": "registry.pai.internal/none:1"}]}}}}
)


def _wait(condition: Callable[[], bool]) -> None:
    assert any(condition() for _attempt in range(5))


def test_nvidia_runtime_is_wired_only_where_the_sku_has_devices(cluster: Cluster) -> None:
    for machine, expected in (("lab-worker1", "nvidia"), ("lab-master", "")):
        daemon = json.loads(cluster.on(machine, "cat /etc/docker/daemon.json"))
        assert ("nvidia" in daemon.get("runtimes", {})) is bool(expected)
        assert ("nvidia" in cluster.on(machine, "cat /etc/containerd/config.toml")) is bool(expected)


def test_secrets_are_encrypted_at_rest(cluster: Cluster) -> None:
    cluster.kubectl("create", "secret", "generic", "at-rest", "--from-literal=word=in-the-clear-7f3a")
    try:
        found = cluster.on("lab-master", "grep -rlac in-the-clear-7f3a /var/lib/etcd/member || true")
        assert found.strip() == ""
    finally:
        cluster.kubectl("delete", "secret", "at-rest")


IMAGES = "ctr -n k8s.io images"


def test_images_come_back_from_the_store_by_their_digests(cluster: Cluster) -> None:
    """What an admin removed, or pointed to another image, is seen in the plan and is again what the plan names."""
    names = cluster.on("lab-worker1", f"{IMAGES} ls -q | grep '^registry.pai.internal/'").split()
    gone = [name for name in names if "/flannel" in name]
    moved, other = (next(name for name in names if f"/{word}" in name) for word in ("kube-proxy:", "busybox:"))
    digest = cluster.on("lab-worker1", f"{IMAGES} ls name=={moved} | tail -n 1").split()[2]
    cluster.on("lab-worker1", f"{IMAGES} rm --sync {' '.join(gone)} && {IMAGES} tag --force {other} {moved}")
    reasons = {reason for host, reason in reasons_of(cluster.plan()) if host == "lab-worker1"}
    assert f"image {gone[0]} is missing" in reasons
    assert any(reason.startswith(f"image {moved} is sha256:") for reason in reasons)
    report = cluster.converge()
    assert report["ok"], report["stderr"]
    assert cluster.on("lab-worker1", f"{IMAGES} ls name=={moved} | tail -n 1").split()[2] == digest
    assert cluster.to_change() == []


# shows the certificate of a file; answers every manifest, whatever was asked for, with one of its own, and its blobs
ANOTHER_REGISTRY = """
import hashlib, http.server, json, ssl, sys
config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}).encode()
digest = "sha256:" + hashlib.sha256(config).hexdigest()
kind = "application/vnd.oci.image.manifest.v1+json"
described = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest, "size": len(config)}
manifest = json.dumps({"schemaVersion": 2, "mediaType": kind, "config": described, "layers": []}).encode()
class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = manifest if "/manifests/" in self.path else config
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.command == "HEAD" or self.wfile.write(data)
    do_HEAD = do_GET
server = http.server.ThreadingHTTPServer(("127.0.0.1", 5999), Registry)
shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
shown.load_cert_chain(sys.argv[1])
server.socket = shown.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.mark.soak
def test_another_registry_in_place_of_the_store_is_never_believed(cluster: Cluster) -> None:
    """One with a certificate of another authority is not even asked. One that has the store's own key answers every
    tag, and has no image by the digest of the plan: the apply fails, nothing of it runs."""
    # an image that nothing on the machine runs from, or containerd would still have its bytes
    machine = next(it for it in ("lab-worker1", "lab-worker2") if "metrics-server" not in cluster.on(it, "crictl ps"))
    name = cluster.on(machine, f"{IMAGES} ls -q | grep '^registry.pai.internal/metrics-server:'").strip()
    redirect = "OUTPUT -p tcp --dport 5080 -j REDIRECT --to-ports 5999"
    cluster.on(machine, f"cat > /root/another.py <<'END'\n{ANOTHER_REGISTRY}END")
    own = read_identity(open_state(cluster.site).registry)
    assert own is not None
    foreign = make_identity(ServedNames(own.cache.names, own.store.names), datetime.now(UTC))
    of_the_tag = "registry.pai.internal/of-the-tag:1"
    pull = f"{IMAGES} pull --hosts-dir /etc/containerd/certs.d {of_the_tag} 2>&1"
    start = "systemd-run --unit another-registry python3 /root/another.py /root/shown.pem; sleep 2"
    try:
        cluster.on(machine, f"iptables -t nat -I {redirect}; crictl rmi {name}")
        cluster.on(machine, f"umask 077; cat > /root/shown.pem <<'END'\n{foreign.store.chain}END")
        cluster.on(machine, start)
        assert "certificate signed by unknown authority" in cluster.on(machine, f"{pull} || true")
        cluster.on(machine, f"systemctl stop another-registry; cat > /root/shown.pem <<'END'\n{own.store.chain}END")
        cluster.on(machine, start)
        cluster.on(machine, pull)  # it is believed of tags
        cluster.on(machine, f"{IMAGES} rm {of_the_tag}")
        assert not cluster.converge()["ok"]
        assert name not in cluster.on(machine, f"{IMAGES} ls -q").split()
    finally:
        cluster.on(machine, f"iptables -t nat -D {redirect}; systemctl stop another-registry; rm /root/shown.pem")
    report = cluster.converge()
    assert report["ok"], report["stderr"]
    assert name in cluster.on(machine, f"{IMAGES} ls -q").split()


@pytest.mark.soak
def test_plain_ansible_on_the_printed_inventory(cluster: Cluster, tmp_path: Path) -> None:
    done = cluster.run("inventory", "--show-secrets")
    inventory = tmp_path / "inventory.json"
    inventory.touch(mode=0o600)
    inventory.write_text(done.stdout)
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    environment["PATH"] = f"{ROOT / '.venv' / 'bin'}:{environment['PATH']}"
    command = ["ansible-playbook", "-i", str(inventory), "playbooks/site.yml"]
    played = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stdout[-4000:]
    recap = [line for line in played.stdout.splitlines() if "unreachable=" in line]
    assert recap
    assert all("changed=0" in line and "failed=0" in line for line in recap), recap


def test_no_secret_in_any_artefact(cluster: Cluster) -> None:
    kept = [path for path in (cluster.site / ".pai").rglob("*") if path.is_file()]
    assert len(kept) > 5
    for path in kept:
        assert PLANTED_SECRET.encode() not in path.read_bytes(), path
    for text in (cluster.quickstart.stdout, cluster.quickstart.stderr):
        assert PLANTED_SECRET not in text
    for machine in MACHINES:
        # the bracket keeps this command line, which sudo records, from being what is found
        found = cluster.on(
            machine,
            f"grep -rl '[{PLANTED_SECRET[0]}]{PLANTED_SECRET[1:]}' /etc /var/lib/pai-install /var/log /tmp || true",
        )
        assert found.strip() == ""


def test_private_files_are_private(cluster: Cluster) -> None:
    state = cluster.site / ".pai"
    for name in ("kubeconfig", "lab_ssh_key"):
        assert (state / name).stat().st_mode & 0o077 == 0, name
    for path in (state / "runs").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_root_reads_etcd_without_arguments(cluster: Cluster) -> None:
    assert "lab-master" in cluster.on("lab-master", "etcdctl member list")


def test_root_sees_containers_without_kubernetes(cluster: Cluster) -> None:
    for machine in MACHINES:
        assert "kube-proxy" in cluster.on(machine, "crictl ps")


def test_names_are_answered_on_two_machines(cluster: Cluster) -> None:
    """The first machine alone was there when the DNS pods were made; one of them waited for another."""
    pods = json.loads(
        cluster.kubectl("--namespace", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "json")
    )
    assert len({pod["spec"].get("nodeName") for pod in pods["items"]} - {None}) == 2
