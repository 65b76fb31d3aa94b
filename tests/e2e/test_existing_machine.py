"""A Debian 12 machine that ran Docker, a container and settings of its admin's became a worker: nothing was lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from . import existing
from .conftest import EXISTING, LOST, Cluster, Founding

pytestmark = pytest.mark.lab


def test_preflight_stopped_for_the_container_with_a_device(founding: Founding) -> None:
    """The only thing in the way: without --force-check nothing would have been touched there."""
    report = json.loads(founding.preflight.stdout)
    assert founding.preflight.returncode == report["exit_code"] != 0
    failed = {(finding["subject"], finding["id"]) for finding in report["findings"] if finding["verdict"] == "FAIL"}
    assert failed == {(EXISTING, "gpu-containers")}


def test_the_plan_named_every_restart_before_the_first_run(founding: Founding) -> None:
    assert founding.plan.returncode == 0, founding.plan.stderr
    phases = {phase["name"]: phase["hosts"] for phase in json.loads(founding.plan.stdout)["phases"]}
    effects = {(name, step["host"]): step["effects"] for name, steps in phases.items() for step in steps}
    assert {key: value for key, value in effects.items() if value} == {
        ("time", EXISTING): ["restarts chrony.service"],
        ("runtime", EXISTING): ["restarts containerd.service", "restarts docker.service"],
    }


def test_the_plan_named_what_is_in_use_on_the_machine(founding: Founding) -> None:
    """Docker's old unit, its container, the device that it holds, the firewall's policy, another pod network."""
    phases = json.loads(founding.plan.stdout)["phases"]
    remarks = {
        remark for phase in phases for step in phase["hosts"] if step["host"] == EXISTING for remark in step["remarks"]
    }
    assert remarks == {
        "1 running container of Docker keeps running: live-restore is turned on first",
        "Docker's unit stops while containerd restarts, and starts again with it",
        "1 container has an NVIDIA device open: systemd reloads its units, which may take the device away",
        "started again by docker run --gpus, it gets no GPU unless gpu_visible_to_all_containers is true",
        "packages of Docker, containerd and the NVIDIA toolkit stay at their version when the system is upgraded",
        "the firewall drops what the machine forwards (iptables FORWARD): packets of pods are accepted there",
        f"containerd no longer reads /etc/cni/net.d ({existing.CNI_FILE.rpartition('/')[2]}, {existing.CNI_PODMAN})",
    }


def test_the_container_never_stopped(founding: Founding) -> None:
    """The very same process, under another containerd and a Docker that was restarted."""
    cluster = founding.cluster
    now = existing.container(cluster.on(EXISTING, "docker inspect at-work"))
    assert now == founding.container
    assert "/bin/sh" in cluster.on(EXISTING, f"cat /proc/{now.pid}/cmdline")
    beats = cluster.on(EXISTING, "docker exec at-work busybox tail -n 2 /beats")
    assert len(beats.splitlines()) == 2


def test_the_container_still_reads_its_device(cluster: Cluster) -> None:
    cluster.on(EXISTING, f"docker exec at-work busybox dd if={existing.GPU_STAND_IN} count=1")


def test_the_runtimes_really_were_replaced_under_it(cluster: Cluster) -> None:
    assert cluster.on(EXISTING, "readlink /proc/$(pidof containerd)/exe").strip() == "/usr/local/bin/containerd"
    information = json.loads(cluster.on(EXISTING, "docker info --format '{{json .}}'"))
    assert information["LiveRestoreEnabled"]
    assert "nvidia" in information["Runtimes"]


def test_it_is_a_machine_of_debian_12_with_what_that_brings(cluster: Cluster) -> None:
    """A Docker without flags of later ones, systemd 252, Python 3.11; the others are of Debian 13."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    systems = {node["metadata"]["name"]: node["status"]["nodeInfo"]["osImage"] for node in nodes}
    assert "(bookworm)" in systems[EXISTING]
    assert "(trixie)" in systems[LOST]
    assert cluster.on(EXISTING, "docker --version").startswith("Docker version 20.10.")


def test_docker_can_still_handle_it(cluster: Cluster) -> None:
    """A container beside it starts and ends, with the runtime that the admin brought."""
    run = "docker run --rm --runtime quiet --label owner=admin of-the-admin:1 /bin/sh -c 'echo alive'"
    assert cluster.on(EXISTING, run).strip() == "alive"
    assert "at-work" in cluster.on(EXISTING, "docker ps --format '{{.Names}}'").split()


def test_the_container_outlives_later_restarts_of_containerd(founding: Founding, cluster: Cluster) -> None:
    """As needrestart and upgrades of packages do them, under a unit of Docker that stops with containerd."""
    cluster.on(EXISTING, "systemctl restart containerd.service && systemctl start docker.service")
    cluster.on(EXISTING, "for second in $(seq 30); do docker version >/dev/null 2>&1 && break; sleep 1; done")
    assert existing.container(cluster.on(EXISTING, "docker inspect at-work")) == founding.container


def test_daemon_json_has_all_that_the_admin_wrote(cluster: Cluster) -> None:
    daemon = json.loads(cluster.on(EXISTING, "cat /etc/docker/daemon.json"))
    assert_contains(daemon, existing.DAEMON)
    assert daemon["live-restore"] is True


def assert_contains(whole: Any, part: Any) -> None:
    """Every key of `part` is in `whole` with its value; of a list, every word."""
    if isinstance(part, dict):
        for key, value in part.items():
            assert key in whole
            assert_contains(whole[key], value)
    elif isinstance(part, list):
        assert set(part) <= set(whole)
    else:
        assert whole == part


def test_containerd_has_all_that_the_admin_wrote(cluster: Cluster) -> None:
    """Also after its configuration was brought to the format of another version, and in the running daemon."""
    used = cluster.on(EXISTING, "/usr/local/bin/containerd config dump")
    assert "127.0.0.1:1338" in used
    assert "/var/lib/containerd/opt" in used
    assert cluster.on(EXISTING, "busybox wget -q -O - http://127.0.0.1:1338/v1/metrics | head -n 1").startswith("#")


def test_chrony_has_all_that_the_admin_wrote(cluster: Cluster) -> None:
    assert existing.CHRONY.strip() in cluster.on(EXISTING, "cat /etc/chrony/chrony.conf")
    assert "192.0.2.123" in cluster.on(EXISTING, "chronyc -n sources")


def test_firewall_rules_are_still_there(cluster: Cluster) -> None:
    assert "of the admin" in cluster.on(EXISTING, "nft list table inet admin")
    cluster.on(EXISTING, f"iptables -C {existing.IPTABLES_RULE}")


def test_containerds_runtimes_are_ours_although_a_file_beside_says_otherwise(cluster: Cluster) -> None:
    """What `nvidia-ctk runtime configure` wrote would be read last; the rest of that file still counts."""
    used = cluster.on(EXISTING, "/usr/local/bin/containerd config dump")
    assert "default_runtime_name = 'runc'" in used
    assert "BinaryName = '/usr/local/bin/nvidia-container-runtime'" in used
    assert "ignore_rdt_not_enabled_errors = true" in used
    cluster.on(EXISTING, "test -e /etc/containerd/conf.d/99-nvidia.toml")


def test_the_machines_own_hook_of_nvidia_is_still_found(cluster: Cluster) -> None:
    """Docker finds it by its name on PATH: one of ours would need another libnvidia-container."""
    assert cluster.on(EXISTING, "command -v nvidia-container-runtime-hook").strip().startswith("/usr/bin/")


def test_nvidias_devices_are_looked_after(cluster: Cluster) -> None:
    """The unit runs, finds the stand-in for a driver, and says that it cannot be described."""
    cluster.on(EXISTING, "systemctl is-active pai-nvidia.service")
    assert "could not be described" in cluster.on(EXISTING, "journalctl -u pai-nvidia.service --no-pager")


def test_pods_packets_are_as_large_as_the_network_between_the_machines_takes(cluster: Cluster) -> None:
    """The default route leaves by another interface, of 1400 bytes."""
    assert "dev mgmt0" in cluster.on(EXISTING, "ip route show default")
    assert "mtu 1450 " in cluster.on(EXISTING, "ip link show dev cni0")
    assert "mtu 1450 " in cluster.on(EXISTING, "ip link show dev flannel.1")


def test_root_never_entered_the_login_users_home(cluster: Cluster) -> None:
    """On NFS it could not; all that Ansible brought went by another folder."""
    cluster.on(EXISTING, "! ls /home/pai 2>/dev/null")
    assert ".ansible" not in cluster.on(EXISTING, "ls -A /srv/homes/pai")


def test_names_outlive_a_hosts_file_that_is_written_anew_at_every_start(cluster: Cluster) -> None:
    """The machine lost its power after the names were written, and started: cloud-init's template has them, too."""
    assert "pai-install" in cluster.on(LOST, "cat /etc/cloud/templates/hosts.debian.tmpl")
    assert "inactive" in cluster.on(LOST, "systemctl is-active rewrite-hosts.service || true"), "it has run, and ended"
    assert "kubernetes.pai.internal" in cluster.on(LOST, "cat /etc/hosts")


def test_old_files_lie_beside_the_new_ones(cluster: Cluster) -> None:
    lines = [line.split() for line in cluster.on(EXISTING, "cat /root/as-the-admin-left-them").splitlines()]
    last = {path: digest for digest, path in lines}  # two mix-ins may have written into one file
    assert len(last) == 3
    for path, digest in last.items():
        kept = cluster.on(EXISTING, f"sha256sum {path}.*.pai-backup")
        assert digest in kept, path


def test_pods_reach_each_other_although_the_firewall_drops(cluster: Cluster, pods: dict[str, str]) -> None:
    assert existing.FORWARD_POLICY in cluster.on(EXISTING, "iptables -S FORWARD")
    for here, there in ((EXISTING, LOST), (LOST, EXISTING)):
        get = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | busybox nc -w 10 {pods[there]} 8080"
        assert "HTTP/1." in cluster.kubectl("exec", f"on-{here}", "--", "/bin/busybox", "sh", "-c", get)


def test_the_other_pod_network_is_left_where_it_was(cluster: Cluster) -> None:
    assert json.loads(cluster.on(EXISTING, f"cat {existing.CNI_FILE}")) == existing.CNI
