"""The packet filter, loaded into a kernel: namespaces of the network stand for pods, one bridge for a node."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest

from pai_install.agents.group_network.ruleset import Rules, ruleset

RULES = Rules("10.200.0.0/16", {"tcp": (2379, 10250), "udp": (123,)})
# name -> address in the pod network, or outside of it
HOSTS = {"a1": "10.200.0.11", "a2": "10.200.0.12", "b": "10.200.0.21", "system": "10.200.0.31", "new": "10.200.0.41"}
MACHINE = "172.30.0.2"
LEADER, STRANGER = "172.30.0.3", "172.30.0.9"
SETS = {
    "group.a": [IPv4Address(HOSTS["a1"]), IPv4Address(HOSTS["a2"])],
    "group.b": [IPv4Address(HOSTS["b"])],
    "others": [IPv4Address(HOSTS["system"]), IPv4Address("10.200.0.1")],
    "machines": [IPv4Address(MACHINE), IPv4Address("10.200.0.1"), IPv4Address(LEADER)],
    "control-planes": [IPv4Address(LEADER)],
}
PAGES = [(IPv4Address(HOSTS["a2"]), 8888)]
OUTSIDE = {"machine": MACHINE, "leader": LEADER, "stranger": STRANGER}
needs_kernel = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nft"))), reason="needs root, ip, and nft"
)


def run(*words: str, rules: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, input=rules, capture_output=True, text=True, check=False)


def ip(*words: str) -> None:
    done = run("ip", *words)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A namespace that routes between its pods and one machine; its name."""
    prefix = f"pai{os.getpid()}"
    name = f"{prefix}-node"
    made = [name]
    ip("netns", "add", name)
    try:
        for number, (host, address) in enumerate({**HOSTS, **OUTSIDE}.items()):
            there = f"{prefix}-{host}"
            ip("netns", "add", there)
            made.append(there)
            ip("-n", name, "link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", there)
            gateway = "172.30.0.1/32" if host in OUTSIDE else "10.200.0.1/32"
            ip("-n", name, "addr", "add", gateway, "dev", f"v{number}")
            ip("-n", name, "link", "set", f"v{number}", "up")
            ip("-n", name, "route", "add", f"{address}/32", "dev", f"v{number}")
            ip("-n", there, "addr", "add", f"{address}/32", "dev", "eth0")
            ip("-n", there, "link", "set", "eth0", "up")
            ip("-n", there, "link", "set", "lo", "up")
            ip("-n", there, "route", "add", gateway, "dev", "eth0")
            ip("-n", there, "route", "add", "default", "via", gateway.removesuffix("/32"))
        ip("netns", "exec", name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        loaded = run("ip", "netns", "exec", name, "nft", "-f", "-", rules=ruleset(RULES, SETS, PAGES))
        assert loaded.returncode == 0, loaded.stderr
        yield prefix
    finally:
        for one in made:
            run("ip", "netns", "del", one)


TALK = """
import socket, sys
kind = socket.SOCK_STREAM if sys.argv[1] == "tcp" else socket.SOCK_DGRAM
it = socket.socket(socket.AF_INET, kind)
it.settimeout(0.7)
try:
    it.connect((sys.argv[2], int(sys.argv[3])))
    if kind == socket.SOCK_DGRAM:
        it.send(b"hi")
        it.recv(9)
except ConnectionRefusedError:
    print("arrived")
except TimeoutError:
    print("dropped")
"""


def sent(node: str, source: str, target: str, port: int, protocol: str = "tcp") -> bool:
    """Whether a packet arrives: the port is closed, so that the other side refuses what it sees."""
    words = ("ip", "netns", "exec", f"{node}-{source}", "python3", "-c", TALK, protocol, target, str(port))
    done = run(*words)
    assert done.stdout.strip() in ("arrived", "dropped"), done.stderr
    return done.stdout.strip() == "arrived"


CASES = [
    ("a1", HOSTS["a2"], 80, True),
    ("a1", HOSTS["b"], 80, False),
    ("b", HOSTS["a1"], 80, False),
    ("a1", HOSTS["system"], 80, True),
    ("system", HOSTS["a1"], 80, True),
    ("a1", HOSTS["new"], 80, False),
    ("new", HOSTS["a1"], 80, False),
    ("new", HOSTS["system"], 80, True),
    ("machine", HOSTS["a1"], 80, True),
    ("a1", MACHINE, 80, True),
    ("a1", MACHINE, 6443, True),
    ("a1", MACHINE, 10250, False),
    ("new", MACHINE, 2379, False),
    ("system", MACHINE, 10250, True),
    # the node itself
    ("a1", "10.200.0.1", 10250, False),
    ("a1", "10.200.0.1", 22, True),
    ("system", "10.200.0.1", 10250, True),
]


@needs_kernel
@pytest.mark.parametrize(("source", "target", "port", "arrives"), CASES)
def test_who_reaches_whom(node: str, source: str, target: str, port: int, arrives: bool) -> None:
    assert sent(node, source, target, port) == arrives


@needs_kernel
@pytest.mark.parametrize(("source", "arrives"), [("leader", True), *dict.fromkeys((*HOSTS, *OUTSIDE), False).items()])
def test_control_planes_alone_reach_a_web_page(node: str, source: str, arrives: bool) -> None:
    """Neither a colleague's pod, nor one outside of groups, nor a host in the network of the machines."""
    if source not in ("a2", "leader") or arrives:
        assert sent(node, source, HOSTS["a2"], 8888) == arrives


@needs_kernel
def test_other_ports_of_a_web_page_stay_open(node: str) -> None:
    assert sent(node, "a1", HOSTS["a2"], 8889)
    assert sent(node, "a1", HOSTS["a2"], 8888, "udp")
    # answers to its own connections come from anywhere
    assert sent(node, "a2", HOSTS["a1"], 80)
    assert sent(node, "a2", HOSTS["a1"], 8888)


@needs_kernel
def test_udp_is_judged_as_well(node: str) -> None:
    assert not sent(node, "a1", MACHINE, 123, "udp")
    assert not sent(node, "a1", HOSTS["b"], 53, "udp")
    assert sent(node, "a1", HOSTS["system"], 53, "udp")


@needs_kernel
def test_new_rules_replace_the_old_ones_in_one_step(node: str) -> None:
    words = ("ip", "netns", "exec", f"{node}-node", "nft")
    moved = {**SETS, "group.a": SETS["group.a"][:1], "group.b": [*SETS["group.b"], SETS["group.a"][1]]}
    assert run(*words, "-f", "-", rules=ruleset(RULES, moved)).returncode == 0
    try:
        assert not sent(node, "a1", HOSTS["a2"], 80)
        assert sent(node, "b", HOSTS["a2"], 80)
    finally:
        assert run(*words, "-f", "-", rules=ruleset(RULES, SETS, PAGES)).returncode == 0
    assert sent(node, "a1", HOSTS["a2"], 80)


@needs_kernel
def test_pods_of_a_node_do_not_speak_ipv6_on_its_bridge(node: str) -> None:
    """Every pod has a link-local address, and no set of addresses has those."""
    there = [f"{node}-six{number}" for number in range(2)]
    try:
        ip("-n", f"{node}-node", "link", "add", "cni0", "type", "bridge")
        ip("-n", f"{node}-node", "link", "set", "cni0", "up")
        run("ip", "netns", "exec", f"{node}-node", "sysctl", "-qw", "net.bridge.bridge-nf-call-ip6tables=1")
        for number, name in enumerate(there):
            ip("netns", "add", name)
            ip("-n", f"{node}-node", "link", "add", f"s{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", f"{node}-node", "link", "set", f"s{number}", "master", "cni0", "up")
            ip("-n", name, "addr", "add", f"fe80::{number + 1}/64", "dev", "eth0", "nodad")
            ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", f"{node}-node", "addr", "add", "fe80::9/64", "dev", "cni0", "nodad")
        where = "socket.getaddrinfo(sys.argv[2], 80, socket.AF_INET6)[0][4]"
        script = TALK.replace("AF_INET,", "AF_INET6,").replace("(sys.argv[2], int(sys.argv[3]))", where)
        nft = ("ip", "netns", "exec", f"{node}-node", "nft")
        for target in ("fe80::2%eth0", "fe80::9%eth0"):
            words = ("ip", "netns", "exec", there[0], "python3", "-c", script, "tcp", target)
            said = run(*words)
            assert said.stdout.strip() == "dropped", said.stderr
        assert run(*nft, "delete", "table", "ip6", "pai_groups").returncode == 0
        for target in ("fe80::2%eth0", "fe80::9%eth0"):
            words = ("ip", "netns", "exec", there[0], "python3", "-c", script, "tcp", target)
            assert run(*words).stdout.strip() == "arrived", f"{target}: without the rules it is reachable"
    finally:
        assert (
            run("ip", "netns", "exec", f"{node}-node", "nft", "-f", "-", rules=ruleset(RULES, SETS, PAGES)).returncode
            == 0
        )
        for name in there:
            run("ip", "netns", "del", name)
