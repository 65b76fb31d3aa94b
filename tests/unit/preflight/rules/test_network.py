"""MTU, overlapping networks, the way to other machines, firewalls."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Verdict
from pai_install.preflight.judge import judge
from pai_install.site import Site
from tests.unit.preflight.machines import findings_of, fleet, installed, interface, peer


def test_mtu(site: Site) -> None:
    odd = {"worker1": {"interfaces": [interface("10.0.0.2/24", mtu=9000)]}}
    found = findings_of(site, "mtu", odd)
    assert [found[name].verdict for name in ("master", "worker1", "worker2")] == ["PASS", "WARN", "PASS"]
    assert (found["worker1"].value, found["worker1"].expected) == ("9000", "1500")


def test_mtu_of_an_unknown_interface(site: Site) -> None:
    odd = {"worker1": {"interfaces": [interface("192.168.1.2/24")]}}
    assert findings_of(site, "mtu", odd)["worker1"].verdict is Verdict.SKIP


@pytest.mark.parametrize(
    ("network", "name", "verdict"),
    [
        ("10.200.7.0/24", "eth1", "FAIL"),
        ("10.192.0.0/16", "eth1", "FAIL"),
        ("10.0.0.0/8", "eth1", "WARN"),
        ("0.0.0.0/0", "eth0", "PASS"),
        ("172.17.0.0/16", "docker0", "PASS"),
        ("10.200.1.0/25", "cni0", "FAIL"),
    ],
)
def test_overlap(site: Site, network: str, name: str, verdict: str) -> None:
    routes = {"worker1": {"routes": [{"network": network, "interface": name}]}}
    assert findings_of(site, "network-overlap", routes)["worker1"].verdict == verdict


@pytest.mark.parametrize("network", ["0.0.0.0/0", "10.0.0.0/8"])
def test_a_route_that_covers_services_is_enough(site: Site, network: str) -> None:
    routes = [{"network": network, "interface": "eth0"}]
    found = findings_of(site, "service-route", {"master": {"routes": routes}, "worker1": {"routes": routes}})
    assert {found[name].verdict for name in ("master", "worker1")} == {Verdict.PASS}


def test_without_a_default_route_a_control_plane_is_refused_and_a_worker_warned_of(
    site: Site, snapshot: SnapshotAssertion
) -> None:
    """The API server asks webhooks at Services' addresses; on a worker only users' own programs could."""
    routes = [{"network": "10.0.0.0/24", "interface": "eth0"}]
    found = findings_of(site, "service-route", {"master": {"routes": routes}, "worker1": {"routes": routes}})
    assert [found[name].verdict for name in ("master", "worker1", "worker2")] == ["FAIL", "WARN", "PASS"]
    assert found["master"].remedy == snapshot
    assert str(site.settings.service_cidr) in found["worker1"].expected


@pytest.mark.parametrize("network", ["10.0.0.0/8", "10.128.0.0/9"])
def test_summary_route_of_a_company_is_a_warning(site: Site, network: str) -> None:
    """Pods' own routes are more specific and win; what the company has at pods' addresses is not reached."""
    routes = [{"network": "0.0.0.0/0", "interface": "eth0"}, {"network": network, "interface": "eth1"}]
    found = findings_of(site, "network-overlap", {"worker1": {"routes": routes}})["worker1"]
    assert found.verdict is Verdict.WARN
    assert network in found.value
    assert "pod_cidr" in found.remedy
    routes.append({"network": "10.200.7.0/24", "interface": "eth2"})
    assert findings_of(site, "network-overlap", {"worker1": {"routes": routes}})["worker1"].verdict is Verdict.FAIL


@pytest.mark.parametrize(("name", "verdict"), [("cni0", "PASS"), ("flannel.1", "PASS"), ("eth1", "FAIL")])
def test_our_own_pod_network_overlaps_with_nothing(site: Site, name: str, verdict: str) -> None:
    routes = {"worker1": {"routes": [{"network": "10.200.1.0/25", "interface": name}]}}
    assert findings_of(site, "network-overlap", routes, installed)["worker1"].verdict == verdict


def test_interfaces_of_an_earlier_cluster_are_to_be_deleted_and_the_networks_kept(
    site: Site, snapshot: SnapshotAssertion
) -> None:
    left = {
        "routes": [
            {"network": "10.200.0.0/25", "interface": "flannel.1"},
            {"network": "10.200.1.0/25", "interface": "cni0"},
        ],
        "leftovers": {"interfaces": ["flannel.1", "cni0"]},
    }
    found = findings_of(site, "network-overlap", {"worker1": left})["worker1"]
    assert found.verdict is Verdict.FAIL
    assert found.remedy == snapshot
    assert "pod_cidr" not in found.remedy


def test_a_network_of_the_machine_beside_left_interfaces_still_needs_another_one(site: Site) -> None:
    routes = [{"network": "10.200.1.0/25", "interface": "cni0"}, {"network": "10.200.0.0/16", "interface": "eth1"}]
    found = findings_of(site, "network-overlap", {"worker1": {"routes": routes}})["worker1"]
    assert "choose another pod_cidr" in found.remedy


SILENT = {"22": "silent", "6443": "silent", "5080": "silent"}


@pytest.mark.parametrize(
    ("answer", "verdict", "word"),
    [
        (peer(), "PASS", "answer"),
        (peer(tcp=SILENT, small=False), "FAIL", "cannot reach master"),
        (peer(tcp={**SILENT, "22": "open"}), "FAIL", "are filtered"),
        (peer(tcp={"22": "open", "6443": "rejected"}), "FAIL", "are filtered"),
        (peer(tcp={"22": "silent", "6443": "refused"}), "PASS", "answer"),
        (peer(tcp={"22": "open", "6443": "open"}, small=False, large=None), "PASS", "answer"),
    ],
)
def test_peers(site: Site, answer: dict[str, Any], verdict: str, word: str) -> None:
    found = findings_of(site, "peers", {"worker1": {"peers": {"master": answer}}})["worker1"]
    assert found.verdict == verdict
    assert word in found.message
    if "filtered" in word:
        assert "6443/tcp of master is" in found.value


def test_a_machine_that_is_off_is_not_its_neighbours_fault(site: Site) -> None:
    seen = fleet({"worker1": {"peers": {"master": peer(tcp=SILENT, small=False)}}})
    del seen["master"]
    found = [item for item in judge(site, seen, {"master": "off"}) if item.id == "peers" and item.subject == "worker1"]
    assert [item.verdict for item in found] == [Verdict.SKIP]


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ({"master": peer(), "worker2": peer()}, "PASS"),
        ({"master": peer(large=False, size=9000), "worker2": peer()}, "WARN"),
        ({"master": peer(large=False, size=9000), "worker2": peer(large=False, size=9000)}, "FAIL"),
        ({"master": peer(large=False, size=9000), "worker2": peer(small=False, large=None)}, "FAIL"),
        ({"master": peer(small=False, large=None)}, "SKIP"),
    ],
)
def test_packet_size(site: Site, answers: dict[str, Any], verdict: str) -> None:
    found = findings_of(site, "packet-size", {"worker1": {"peers": answers}})["worker1"]
    assert found.verdict == verdict
    if verdict in ("WARN", "FAIL"):
        assert "master (9000 bytes)" in found.value


@pytest.mark.parametrize(
    ("seen", "names"),
    [
        ({"ufw": True}, "ufw"),
        ({"firewalld": True, "chains": ["nftables inet firewalld"]}, "firewalld"),
        ({"chains": ["nftables inet filter input"]}, "a chain that drops by default: nftables inet filter input"),
    ],
)
def test_firewall(site: Site, seen: dict[str, Any], names: str) -> None:
    found = findings_of(site, "firewall", {"master": {"firewall": seen}})["master"]
    assert (found.verdict, found.value) == (Verdict.WARN, names)
    for port in ("6443/tcp", "2379/tcp", "2380/tcp", "10250/tcp", "8472/udp", "5080/tcp"):
        assert port in found.expected
    assert "7443" not in found.expected
    assert "10.200.0.0/13" in found.remedy


def test_a_worker_opens_less(site: Site) -> None:
    found = findings_of(site, "firewall", {"worker1": {"firewall": {"ufw": True}}})["worker1"]
    assert "6443" not in found.expected


def test_a_firewall_that_only_root_may_see(site: Site) -> None:
    unseen = {"worker1": {"firewall": {"chains": None}}}
    assert findings_of(site, "firewall", unseen)["worker1"].verdict is Verdict.UNKNOWN
    named = {"worker1": {"firewall": {"ufw": True, "chains": None}}}
    assert findings_of(site, "firewall", named)["worker1"].verdict is Verdict.WARN
