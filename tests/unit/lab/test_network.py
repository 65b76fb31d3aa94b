"""What is asked of ip, nft and iptables."""

from __future__ import annotations

import shutil
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.lab import network
from pai_install.lab.names import lab_names
from pai_install.lab.network import nat_rules
from pai_install.lab.spec import LabSpec


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch, stand_in: Any) -> Any:
    """A box with no interface and no namespace of the lab's."""
    monkeypatch.setattr(network, "has_link", lambda _name: False)
    monkeypatch.setattr(network, "has_netns", lambda _name: False)
    return stand_in(network)


def test_bridge_gets_the_boxs_address(spec: LabSpec, box: Any, snapshot: SnapshotAssertion) -> None:
    assert network.ensure_bridge(spec)
    assert box.commands == ["ip -batch -"]
    assert box.inputs[0] == snapshot


def test_bridge_that_is_there_stays(spec: LabSpec, box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "has_link", lambda name: name == "pb-ac1e4f00")
    assert not network.ensure_bridge(spec)
    assert box.commands == []


def test_machine_gets_namespace_cable_address_and_route(spec: LabSpec, box: Any, snapshot: SnapshotAssertion) -> None:
    assert network.ensure_link(spec, spec.machines[0])
    assert box.commands == snapshot
    assert box.inputs[1] == snapshot
    assert box.inputs[1] == snapshot
    inside = box.inputs[2]
    assert inside.index("addr add 172.30.79.11/24") < inside.index("link set eth0 up") < inside.index("default via")


def test_half_made_cable_is_finished(spec: LabSpec, box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "has_netns", lambda _name: True)
    assert network.ensure_link(spec, spec.machines[0])
    assert not box.matching("ip netns add")
    assert box.matching("ip -batch")


def test_whole_cable_stays(spec: LabSpec, box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "has_netns", lambda _name: True)
    monkeypatch.setattr(network, "has_link", lambda _name: True)
    assert not network.ensure_link(spec, spec.machines[0])
    assert box.commands == []


def test_nat_is_a_table_of_the_labs_own(spec: LabSpec, box: Any, snapshot: SnapshotAssertion) -> None:
    box.answer("nft list table", 1)
    assert network.ensure_nat(spec)
    rules = box.inputs[-1]
    assert rules.startswith("table ip pai_lab_ac1e4f00 {")
    assert rules == snapshot
    assert rules.count("{") == rules.count("}")


def test_nat_that_is_there_stays(spec: LabSpec, box: Any, snapshot: SnapshotAssertion) -> None:
    assert not network.ensure_nat(spec)
    assert box.commands == snapshot


@pytest.mark.parametrize(
    ("rules", "drops"), [("-P FORWARD DROP\n-A x", True), ("-P FORWARD ACCEPT\n", False), ("", False)]
)
def test_filter_that_drops_is_noticed(box: Any, monkeypatch: pytest.MonkeyPatch, *, rules: str, drops: bool) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/sbin/{name}")
    box.answer("iptables -w -S FORWARD", stdout=rules)
    assert network.drops_forwarded() is drops


def test_box_without_iptables_drops_nothing(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert not network.drops_forwarded()
    assert box.commands == []


def test_only_missing_forward_rules_are_added(spec: LabSpec, box: Any, snapshot: SnapshotAssertion) -> None:
    box.answer("iptables -w -C FORWARD -o", 1)
    assert network.ensure_forward_rules(spec)
    assert box.matching("iptables -w -I") == snapshot


def test_forward_rules_that_are_there_stay(spec: LabSpec, box: Any) -> None:
    assert not network.ensure_forward_rules(spec)
    assert not box.matching("iptables -w -I")


def test_packets_for_the_cluster_do_not_leave_the_lab(spec: LabSpec) -> None:
    inside = replace(spec, cluster_networks=(IPv4Network("10.192.0.0/16"),))
    bridge = lab_names(spec).bridge
    assert f'iifname "{bridge}" ip daddr 10.192.0.0/16 reject' in nat_rules(inside)
    assert "reject" not in nat_rules(spec)
