"""Pods pass the firewalls of others, which stay as they were; no pod reaches the tunnel."""

from __future__ import annotations

from testinfra.host import Host


def test_iptables_accepts_packets_of_pods_before_it_drops(host: Host) -> None:
    cidr = host.ansible.get_variables()["pod_forwarding_cidr"]
    rules = host.check_output("iptables -S FORWARD").splitlines()
    assert rules[0] == "-P FORWARD DROP"
    assert {f"-A FORWARD {side} {cidr} -m comment --comment pai-install -j ACCEPT" for side in ("-s", "-d")} <= set(
        rules
    )


def test_firewall_of_nftables_accepts_them_and_keeps_its_rules(host: Host) -> None:
    cidr = host.ansible.get_variables()["pod_forwarding_cidr"]
    chain = host.check_output("nft list chain inet company passing")
    assert f'ip saddr {cidr} accept comment "pai-install"' in chain
    assert f'ip daddr {cidr} accept comment "pai-install"' in chain
    assert "tcp dport 9999 accept" in chain
    assert "pai-install" not in host.check_output("nft list chain inet company coming")


def test_no_pod_reaches_the_tunnel(host: Host) -> None:
    table = host.check_output("nft list table ip pai_install")
    assert table.count("udp dport 8472 drop") == 2


def test_a_second_start_adds_nothing(host: Host) -> None:
    host.check_output("systemctl restart pai-pod-forwarding")
    assert host.check_output("iptables -S FORWARD | grep -c pai-install") == "2"
    assert host.check_output("nft list chain inet company passing | grep -c pai-install") == "2"
