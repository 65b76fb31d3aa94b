"""Every add-on is the site's, whatever somebody wrote into its objects; what nobody wants any more is gone."""

from __future__ import annotations

import json
from typing import Any

from testinfra.host import Host

KUBECTL = "/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf"


def read(host: Host, *words: str) -> dict[str, Any]:
    """An object of the cluster."""
    found: dict[str, Any] = json.loads(host.check_output(f"{KUBECTL} get {' '.join(words)} --output json"))
    return found


def values(host: Host, addon: str) -> dict[str, Any]:
    """What the add-on's templates are filled with."""
    wanted = host.ansible.get_variables()["cluster_addons_wanted"]
    found: dict[str, Any] = next(entry["values"] for entry in wanted if entry["name"] == addon)
    return found


def test_the_network_is_the_sites(host: Host) -> None:
    data = read(host, "--namespace kube-flannel", "configmap", "kube-flannel-cfg")["data"]
    network = json.loads(data["net-conf.json"])
    assert network["Network"] == values(host, "flannel")["cidr"]
    assert network["Backend"] == {"Type": values(host, "flannel")["backend"]}


def test_what_belongs_to_the_admin_is_kept(host: Host) -> None:
    assert read(host, "--namespace kube-flannel", "configmap", "kube-flannel-cfg")["data"]["company"] == "by hand"
    assert read(host, "namespace", "kube-flannel")["metadata"]["labels"]["company/team"] == "network"
    plugin = read(host, "--namespace kube-system", "daemonset", "nvidia-device-plugin")
    assert plugin["metadata"]["labels"]["company/team"] == "gpu"


def test_flannel_runs_and_the_node_is_ready(host: Host) -> None:
    host.check_output(f"{KUBECTL} --namespace kube-flannel rollout status --timeout 120s daemonset/kube-flannel")
    host.check_output(f"{KUBECTL} wait --for condition=Ready --timeout 120s node/control-plane")


def test_pods_can_ask_for_the_nvidia_runtime(host: Host) -> None:
    assert read(host, "runtimeclass", "nvidia")["handler"] == "nvidia"


def test_the_device_plugin_is_the_sites(host: Host) -> None:
    pod = read(host, "--namespace kube-system", "daemonset", "nvidia-device-plugin")["spec"]["template"]["spec"]
    wanted = values(host, "device_plugin")
    images = {entry["name"]: entry["image"] for entry in pod["containers"]}
    assert images == {"plugin": wanted["image"], "watcher": wanted["watcher_image"]}
    assert pod["nodeSelector"]["nvidia.com/gpu.present"] == "true"


def test_what_no_add_on_has_any_more_is_gone_with_its_record(host: Host) -> None:
    left = host.check_output(f"{KUBECTL} --namespace kube-system get configmap left-over --ignore-not-found")
    assert left == ""
    assert not host.file("/var/lib/pai-install/roles/addon.gone.json").exists
