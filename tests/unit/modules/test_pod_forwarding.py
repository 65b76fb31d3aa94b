"""The rules of the role pod_forwarding, loaded into a kernel: a namespace of the network stands for a node."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment, StrictUndefined

from tests.addons import ROOT

CIDR, PORT = "10.200.0.0/16", 8472
GUARD = "/usr/local/lib/pai-install/tunnel-guard"
# Networks of the node. veths stand for bridges: rules see the names alone. `second` is in the network of eth0, `far`
# leads to machines of another network, and `docker0` and `br-vm` to containers and virtual machines of this machine.
NODE = {
    "eth0": "172.30.0.2/24",
    "second": "172.30.0.8/24",
    "far": "172.30.9.1/24",
    "cni0": "10.200.1.1/24",
    "docker0": "172.17.0.1/16",
    "br-vm": "192.168.7.1/24",
}
OWN, PEER, OTHER, REMOTE, STRANGER = "172.30.0.2", "172.30.0.3", "172.30.0.4", "172.30.9.3", "172.30.0.77"
POD, POD_THERE = "10.200.1.5", "10.200.2.5"
# counts datagrams of two bytes behind the rules: none of a tunnel is that short
SEEN = """table ip seen {
    chain input { type filter hook input priority 10; udp length 10 counter; }
    chain forward { type filter hook forward priority 10; udp length 10 counter; }
}
"""
SEND = """
import socket, struct, sys
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for line in sys.stdin:
    source, target, port = line.split()
    packet = struct.pack("!HHHH2s", int(port), int(port), 10, 0, b"hi")
    ends = socket.inet_aton(source), socket.inet_aton(target)
    raw.sendto(struct.pack("!BBHHHBBH4s4s", 69, 0, 30, 1, 0, 64, 17, 0, *ends) + packet, (target, 0))
"""
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "bridge", "nft"))), reason="needs root, ip, bridge, and nft"
)


def run(*words: str, text: str = "") -> str:
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def script(name: str, folder: Path, **other: object) -> Path:
    """A script of the role that finds the other one in this folder."""
    values = {
        "cidr": CIDR,
        "tunnel_port": PORT,
        "tunnel_device": "flannel.1",
        "storage_port": 0,
        "storage_servers": [],
        **other,
    }
    environment = Environment(trim_blocks=True, undefined=StrictUndefined, autoescape=False)  # noqa: S701 - no HTML
    text = (ROOT / f"roles/pod_forwarding/templates/{name}.sh.j2").read_text()
    path = folder / name
    path.write_text(
        environment.from_string(text)
        .render({f"pod_forwarding_{key}": value for key, value in values.items()})
        .replace(GUARD, str(folder / "tunnel-guard"))
    )
    path.chmod(0o755)
    return path


class Node:
    """A namespace with the networks of a node, and one namespace at the other end of each."""

    def __init__(self, folder: Path) -> None:
        self.name, self.folder = f"pai{os.getpid()}-forwarding", folder
        self.made = [self.name, *(f"{self.name}-{network}" for network in NODE)]

    def __call__(self, *words: str, text: str = "") -> str:
        return run("ip", "netns", "exec", self.name, *words, text=text)

    def build(self) -> None:
        for name in self.made:
            run("ip", "netns", "add", name)
        for network, address in NODE.items():
            there = f"{self.name}-{network}"
            run("ip", "-n", self.name, "link", "add", network, "type", "veth", "peer", "name", "x", "netns", there)
            run("ip", "-n", self.name, "addr", "add", address, "dev", network)
            run("ip", "-n", self.name, "link", "set", network, "up")
            run("ip", "-n", there, "link", "set", "x", "up")
            # whatever is at the other end, it sends to the node
            mac = self("cat", f"/sys/class/net/{network}/address").strip()
            run("ip", "-n", there, "addr", "add", "192.0.2.1/24", "dev", "x")
            run("ip", "-n", there, "route", "add", "default", "via", "192.0.2.2")
            run("ip", "-n", there, "neigh", "add", "192.0.2.2", "lladdr", mac, "dev", "x")
        self("sysctl", "-qw", "net.ipv4.ip_forward=1")
        # loose, as Debian and Ubuntu set it
        self("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=2")
        self("ip", "route", "add", "default", "via", PEER)
        self("nft", "-f", "-", text=SEEN)
        self.tunnel(OWN, "eth0")
        script("tunnel-guard", self.folder)
        self(str(script("pod-forwarding", self.folder)))

    def tunnel(self, address: str, device: str) -> None:
        """As flannel makes it."""
        words = ("type", "vxlan", "id", "1", "local", address, "dev", device, "dstport", str(PORT), "nolearning")
        self("ip", "link", "add", "flannel.1", *words)
        for number, machine in enumerate((PEER, OTHER, REMOTE)):
            self("bridge", "fdb", "add", f"0e:00:00:00:00:0{number}", "dev", "flannel.1", "dst", machine)
        # pods of another machine
        self("ip", "link", "set", "flannel.1", "up")
        self("ip", "route", "add", "10.200.2.0/24", "dev", "flannel.1")

    def arriving(self, network: str, *packets: tuple[str, str], port: int = PORT, within_s: float = 10) -> int:
        """How many of the packets, each with its source and target, pass the rules. within_s: unless all of them do."""
        before = self._seen()
        lines = "".join(f"{source} {target} {port}\n" for source, target in packets)
        run("ip", "netns", "exec", f"{self.name}-{network}", "python3", "-c", SEND, text=lines)
        # the receiving side of a veth may run on another processor
        end = time.monotonic() + within_s
        while (now := self._seen() - before) < len(packets) and time.monotonic() < end:
            time.sleep(0.02)
        return now

    def passing(self, network: str, *packets: tuple[str, str], port: int = PORT) -> int:
        """As `arriving`, where none of them should."""
        return self.arriving(network, *packets, port=port, within_s=0.1)

    def _seen(self) -> int:
        words = self("nft", "list", "table", "ip", "seen").split()
        return sum(int(words[place + 1]) for place, word in enumerate(words) if word == "packets")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    made = Node(tmp_path_factory.mktemp("forwarding"))
    try:
        made.build()
        yield made
    finally:
        for name in made.made:
            subprocess.run(("ip", "netns", "del", name), check=False, capture_output=True)


def test_the_tunnel_takes_packets_of_machines(node: Node) -> None:
    assert node.arriving("eth0", (PEER, OWN), (OTHER, OWN), (REMOTE, OWN)) == 3
    # Linux answers for an address on each interface of the network
    assert node.arriving("second", (PEER, OWN)) == 1
    # a machine that is the router of others
    assert node.arriving("far", (REMOTE, OTHER)) == 1
    assert node.arriving("eth0", (PEER, REMOTE)) == 1


@pytest.mark.parametrize("source", [PEER, OTHER, STRANGER, POD, POD_THERE, "172.17.0.5"])
@pytest.mark.parametrize("network", ["cni0", "docker0", "br-vm"])
def test_no_container_sends_into_the_tunnel(node: Node, network: str, source: str) -> None:
    """With any address of its choice: NET_RAW lets it write that of a machine."""
    targets = (OWN, "172.17.0.1", "10.200.1.1", PEER, REMOTE)
    assert node.passing(network, *((source, target) for target in targets)) == 0


def test_no_network_but_that_of_flannel_sends_into_the_tunnel(node: Node) -> None:
    assert node.passing("far", (PEER, OWN), (REMOTE, OWN)) == 0
    assert node.passing("eth0", (STRANGER, OWN), (STRANGER, REMOTE)) == 0


@pytest.mark.parametrize("network", ["eth0", "docker0", "far"])
def test_no_pod_address_comes_past_the_tunnel(node: Node, network: str) -> None:
    """Neither to a pod nor to the machine."""
    targets = ("10.200.1.9", OWN)
    assert node.arriving(network, *((STRANGER, target) for target in targets), port=53) == 2
    assert node.passing(network, *((it, target) for it in (POD, POD_THERE) for target in targets), port=53) == 0


def test_pods_send_as_before(node: Node) -> None:
    assert node.arriving("cni0", (POD, POD_THERE), (POD, OWN), (POD, STRANGER), port=53) == 3


def test_a_second_run_changes_nothing(node: Node) -> None:
    before = node("nft", "list", "table", "ip", "pai_install")
    node(str(node.folder / "pod-forwarding"))
    assert node("nft", "list", "table", "ip", "pai_install") == before


def test_without_a_tunnel_there_are_no_rules_for_it(node: Node) -> None:
    node(str(script("pod-forwarding", node.folder, tunnel_port=0)))
    try:
        assert node.arriving("eth0", (STRANGER, OWN), (POD_THERE, POD)) == 2
        assert node.passing("cni0", (PEER, OWN)) == 0
    finally:
        node(str(script("pod-forwarding", node.folder)))


def test_the_rules_follow_the_device_of_flannel(node: Node) -> None:
    """flannel makes it again for another interface or address. In between the rules stay."""
    words = ("ip", "netns", "exec", node.name, str(node.folder / "tunnel-guard"))
    with subprocess.Popen(words, start_new_session=True) as guard:
        try:
            time.sleep(1.5)
            node("ip", "link", "del", "flannel.1")
            assert 'iifname "eth0"' in node("nft", "list", "chain", "ip", "pai_install", "tunnel")
            node.tunnel("172.30.9.1", "far")
            deadline = time.monotonic() + 60
            while not node.passing("far", (REMOTE, "172.30.9.1")):
                assert time.monotonic() < deadline
            assert node.passing("eth0", (PEER, OWN)) + node.passing("docker0", (PEER, OWN)) == 0
        finally:
            os.killpg(guard.pid, 15)
    node("ip", "link", "del", "flannel.1")
    node.tunnel(OWN, "eth0")
    node(str(node.folder / "pod-forwarding"))
