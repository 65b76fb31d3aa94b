"""Pods pass the firewalls of others, which stay as they were; the cluster's machines alone reach tunnel and storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from testinfra.host import Host

PEER = "192.0.2.7"
# counts datagrams of two bytes behind the rules: none of a tunnel is that short
SEEN = "table ip seen { chain input { type filter hook input priority 10; udp dport 8472 udp length 10 counter; }; }"
SPOOF = """
import socket, struct
packet = struct.pack("!HHHH2s", 8472, 8472, 10, 0, b"hi")
for source, target in {pairs}:
    ends = socket.inet_aton(source), socket.inet_aton(target)
    header = struct.pack("!BBHHHBBH4s4s", 69, 0, 30, 1, 0, 64, 17, 0, *ends)
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW).sendto(header + packet, (target, 0))
"""


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
    assert "udp dport 8472 goto tunnel" in table
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


@contextmanager
def flannel(host: Host) -> Iterator[None]:
    """Its device, with one machine that it knows."""
    own = host.check_output("ip -o -4 addr show dev eth0 | awk '{print $4; exit}'").partition("/")[0]
    words = f"type vxlan id 1 local {own} dev eth0 dstport 8472 nolearning"
    host.check_output(f"ip link add flannel.1 {words}")
    try:
        host.check_output(f"bridge fdb add 0e:00:00:00:00:01 dev flannel.1 dst {PEER}")
        host.check_output(
            f"for i in 1 2 3 4 5; do nft list table ip pai_install | grep -F {PEER} && break; sleep 1; done"
        )
        yield
    finally:
        host.check_output("ip link delete flannel.1")


def test_machines_that_flannel_knows_reach_it(host: Host) -> None:
    """And those alone, as flannel comes to know them and forgets them."""
    with flannel(host):
        host.check_output("systemctl restart pai-pod-forwarding")
        assert PEER in host.check_output("nft list set ip pai_install machines")
        host.check_output(f"bridge fdb del 0e:00:00:00:00:01 dev flannel.1 dst {PEER}")
        host.check_output(
            f"for i in 1 2 3 4 5; do nft list table ip pai_install | grep -qF {PEER} || break; sleep 1; done"
        )
        assert PEER not in host.check_output("nft list set ip pai_install machines")


def test_no_container_reaches_the_tunnel_with_the_address_of_a_machine(host: Host) -> None:
    """Nor with its own. The rules find the interface of flannel's address while they run."""
    own = host.check_output("ip -o -4 addr show dev eth0 | awk '{print $4; exit}'").partition("/")[0]
    source = own.rpartition(".")[0] + ".250"
    host.check_output("ip netns add container && ip link add docker9 type veth peer name eth0 netns container")
    try:
        host.check_output("ip addr add 192.168.99.1/24 dev docker9 && ip link set docker9 up")
        there = "ip -n container"
        host.check_output(f"{there} addr add 192.168.99.2/24 dev eth0 && {there} link set eth0 up")
        host.check_output(f"{there} route add default via 192.168.99.1")
        host.check_output(f"nft -f - <<'END'\n{SEEN}\nEND")
        with flannel(host):
            host.check_output(f"bridge fdb add 0e:00:00:00:00:02 dev flannel.1 dst {source}")
            host.check_output(
                f"for i in 1 2 3 4 5; do nft list table ip pai_install | grep -qF {source} && break; sleep 1; done"
            )
            tunnel = host.check_output("nft list chain ip pai_install tunnel")
            assert 'iifname "eth0" ip saddr @machines accept' in tunnel
            sources = (source, PEER, "192.168.99.2", "10.200.9.9")
            pairs = [(it, target) for it in sources for target in (own, "192.168.99.1")]
            program = SPOOF.format(pairs=pairs)
            host.check_output(f"ip netns exec container python3 - <<'END'\n{program}\nEND")
            assert "counter packets 0 " in host.check_output("nft list table ip seen")
            # they arrive where the rules do not stand in between
            host.check_output("nft flush chain ip pai_install tunnel && nft flush chain ip pai_install passing")
            host.check_output(f"ip netns exec container python3 - <<'END'\n{program}\nEND")
            assert "counter packets 0 " not in host.check_output("nft list table ip seen")
    finally:
        host.check_output("nft delete table ip seen; ip netns del container; systemctl restart pai-pod-forwarding")


def test_a_second_start_adds_nothing(host: Host) -> None:
    host.check_output("systemctl restart pai-pod-forwarding")
    assert host.check_output("iptables -S FORWARD | grep -c pai-install") == "2"
    assert host.check_output("nft list chain inet company passing | grep -c pai-install") == "2"
