"""Labels and taints of the site beside those of the admin."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testinfra.host import Host


@pytest.fixture(name="node")
def node_of_this_machine(host: Host) -> dict[str, Any]:
    """The node, as the machine's kubelet sees it."""
    kubectl = "/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/kubelet.conf"
    found: dict[str, Any] = json.loads(host.check_output(f"{kubectl} get node worker --output json"))
    return found


def test_labels_of_the_site(node: dict[str, Any]) -> None:
    assert node["metadata"]["labels"]["example.com/rack"] == "r1"


def test_labels_of_the_admin(node: dict[str, Any]) -> None:
    assert node["metadata"]["labels"]["company.example/owner"] == "ada"


def test_taints_of_both(node: dict[str, Any]) -> None:
    taints = {(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]}
    assert {("example.com/new", "PreferNoSchedule"), ("company.example/old", "PreferNoSchedule")} <= taints
