"""The device plugin is the site's, whatever somebody made under its name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testinfra.host import Host

KUBECTL = "/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf --namespace kube-system"


@pytest.fixture(name="plugin")
def device_plugin(host: Host) -> dict[str, Any]:
    """The DaemonSet."""
    found: dict[str, Any] = json.loads(host.check_output(f"{KUBECTL} get daemonset nvidia-device-plugin --output json"))
    return found


def test_the_images_are_the_sites(host: Host, plugin: dict[str, Any]) -> None:
    variables = host.ansible.get_variables()
    images = {entry["name"]: entry["image"] for entry in plugin["spec"]["template"]["spec"]["containers"]}
    assert images == {
        "plugin": variables["device_plugin_image"],
        "watcher": variables["device_plugin_watcher_image"],
    }


def test_it_goes_where_the_label_is(plugin: dict[str, Any]) -> None:
    assert plugin["spec"]["template"]["spec"]["nodeSelector"]["nvidia.com/gpu.present"] == "true"


def test_what_belongs_to_the_admin_is_kept(plugin: dict[str, Any]) -> None:
    assert plugin["metadata"]["labels"]["company/team"] == "gpu"
