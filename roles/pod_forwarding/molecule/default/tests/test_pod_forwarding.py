"""Pods pass the firewalls of others, which stay as they were; the cluster's machines alone reach tunnel and storage."""

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
    assert "udp dport 8472 ip saddr != @machines drop" in table
    assert "udp dport 8472 drop" in table
    assert "typeof ip saddr" in table  # the nft of kube-proxy reads it


def test_no_pod_sends_with_the_address_of_a_machine(host: Host) -> None:
    cidr = host.ansible.get_variables()["pod_forwarding_cidr"]
    for chain in ("forward", "input"):
        assert f'iifname "cni0" ip saddr != {cidr} drop' in host.check_output(f"nft list chain ip pai_install {chain}")


def test_no_pod_asks_a_storage_server(host: Host) -> None:
    cidr = host.ansible.get_variables()["pod_forwarding_cidr"]
    for chain in ("forward", "input"):
        rules = host.check_output(f"nft list chain ip pai_install {chain}")
        assert f"ip saddr {cidr} ip daddr 192.0.2.32 tcp dport 2049 drop" in rules


def test_machines_that_flannel_knows_reach_it(host: Host) -> None:
    """And those alone, as flannel comes to know them and forgets them."""
    host.check_output("ip link add flannel.1 type vxlan id 1 dev eth0 dstport 8472 nolearning")
    neighbour = "0e:00:00:00:00:01 dev flannel.1 dst 192.0.2.7"
    try:
        host.check_output(f"bridge fdb add {neighbour}")
        host.check_output(
            "for i in 1 2 3 4 5; do nft list table ip pai_install | grep -F 192.0.2.7 && break; sleep 1; done"
        )
        host.check_output("systemctl restart pai-pod-forwarding")
        assert "192.0.2.7" in host.check_output("nft list set ip pai_install machines")
        host.check_output(f"bridge fdb del {neighbour}")
        host.check_output(
            "for i in 1 2 3 4 5; do nft list table ip pai_install | grep -qF 192.0.2.7 || break; sleep 1; done"
        )
        assert "192.0.2.7" not in host.check_output("nft list set ip pai_install machines")
    finally:
        host.check_output("ip link delete flannel.1")


def test_a_second_start_adds_nothing(host: Host) -> None:
    host.check_output("systemctl restart pai-pod-forwarding")
    assert host.check_output("iptables -S FORWARD | grep -c pai-install") == "2"
    assert host.check_output("nft list chain inet company passing | grep -c pai-install") == "2"
