"""A node of the cluster, after an attempt to join that was interrupted."""

from __future__ import annotations

import json

from testinfra.host import Host

KUBECTL = "/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/kubelet.conf"


def test_the_node_is_ready(host: Host) -> None:
    host.check_output(f"{KUBECTL} wait --for condition=Ready --timeout 120s node/worker")


def test_jobs_may_run_there(host: Host) -> None:
    node = json.loads(host.check_output(f"{KUBECTL} get node worker --output json"))
    assert "NoSchedule" not in {taint["effect"] for taint in node["spec"].get("taints", [])}


def test_the_kubelet_runs_with_the_sites_settings(host: Host) -> None:
    assert host.service("kubelet").is_running
    settings = host.file("/var/lib/kubelet/config.yaml").content_string
    for name in host.backend.ansible_runner.get_variables("control-plane")["control_plane_kubelet_config"]:
        assert f"\n{name}:" in settings


def test_nothing_of_the_token_stays(host: Host) -> None:
    assert not host.file("/etc/kubernetes/bootstrap-kubelet.conf").exists
    assert host.check_output("ls /tmp /var/tmp").find("pai-kubeadm-") == -1
