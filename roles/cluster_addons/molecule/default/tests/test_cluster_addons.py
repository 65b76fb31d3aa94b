"""flannel runs with the site's network, whatever somebody wrote into its objects."""

from __future__ import annotations

import json
from typing import Any

from testinfra.host import Host

KUBECTL = "/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf"


def read(host: Host, *words: str) -> dict[str, Any]:
    """An object of the cluster."""
    found: dict[str, Any] = json.loads(host.check_output(f"{KUBECTL} get {' '.join(words)} --output json"))
    return found


def test_the_network_is_the_sites(host: Host) -> None:
    data = read(host, "--namespace kube-flannel", "configmap", "kube-flannel-cfg")["data"]
    variables = host.ansible.get_variables()
    network = json.loads(data["net-conf.json"])
    assert network["Network"] == variables["pod_network_cidr"]
    assert network["Backend"] == {"Type": variables["pod_network_backend"]}


def test_what_belongs_to_the_admin_is_kept(host: Host) -> None:
    assert read(host, "--namespace kube-flannel", "configmap", "kube-flannel-cfg")["data"]["company"] == "by hand"
    assert read(host, "namespace", "kube-flannel")["metadata"]["labels"]["company/team"] == "network"


def test_flannel_runs_and_the_node_is_ready(host: Host) -> None:
    host.check_output(f"{KUBECTL} --namespace kube-flannel rollout status --timeout 120s daemonset/kube-flannel")
    host.check_output(f"{KUBECTL} wait --for condition=Ready --timeout 120s node/control-plane")


def test_pods_can_ask_for_the_nvidia_runtime(host: Host) -> None:
    assert read(host, "runtimeclass", "nvidia")["handler"] == "nvidia"
