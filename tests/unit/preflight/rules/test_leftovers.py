"""What a machine still has of a cluster that it left."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Verdict
from pai_install.site import Site
from tests.unit.preflight.machines import findings_of, installed


@pytest.mark.parametrize(
    ("left", "verdict", "command"),
    [
        ({}, "PASS", ""),
        ({"interfaces": ["flannel.1"]}, "FAIL", "sudo ip link delete flannel.1"),
        ({"folders": ["/etc/kubernetes/pki"]}, "FAIL", "sudo rm -r /etc/kubernetes/pki"),
        ({"folders": ["/var/lib/cni/networks"]}, "WARN", "sudo rm -r /var/lib/cni/networks"),
        ({"tables": ["ip kube-proxy"]}, "WARN", "sudo nft delete table ip kube-proxy"),
        ({"tables": None, "chains": None}, "UNKNOWN", ""),
        ({"interfaces": ["cni0"], "tables": None, "chains": None}, "FAIL", "sudo ip link delete cni0"),
        ({"chains": ["KUBE-SERVICES"]}, "WARN", "sudo reboot"),
    ],
)
def test_leftovers(site: Site, left: dict[str, Any], verdict: str, command: str) -> None:
    found = findings_of(site, "leftovers", {"worker1": {"leftovers": left}})["worker1"]
    assert found.verdict == verdict
    assert command in found.remedy


def test_a_node_keeps_what_it_has(site: Site) -> None:
    assert {found.verdict for found in findings_of(site, "leftovers", base=installed).values()} == {Verdict.PASS}


def test_many_chains_are_counted_and_not_all_named(site: Site, snapshot: SnapshotAssertion) -> None:
    chains = [f"KUBE-{number}" for number in range(40)]
    found = findings_of(site, "leftovers", {"worker1": {"leftovers": {"chains": chains}}})["worker1"]
    assert found.value == snapshot


def test_a_node_of_this_very_cluster_without_its_record_is_told_apart(site: Site, snapshot: SnapshotAssertion) -> None:
    """Its certificate is that of the first control plane; the file of pai-install is gone."""
    lost: dict[str, Any] = {"kubernetes": {"marker": {}, "roles": []}}
    found = findings_of(site, "kubernetes", {"worker1": lost}, installed)["worker1"]
    assert found.verdict is Verdict.FAIL
    assert found.message == snapshot
    assert found.remedy == snapshot
    other = {"kubernetes": {"marker": {}, "roles": [], "authority": "another"}}
    found = findings_of(site, "kubernetes", {"worker1": other}, installed)["worker1"]
    assert "another installer" in found.message
