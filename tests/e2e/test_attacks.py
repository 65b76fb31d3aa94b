"""Attacks from inside a cluster that runs: with what a join left, from a pod, on programs that serve, on files."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .conftest import EXISTING, LOST, SERVE, SUBNET, Cluster

pytestmark = pytest.mark.lab

MASTER = "lab-master"
# kubeadm's own: whoever holds a token of theirs becomes any node that it likes
BOOTSTRAP_RULES = {"kubeadm:kubelet-bootstrap", "kubeadm:node-autoapprove-bootstrap"}
TUNNEL_PORT, OTHER_PORT = 8472, 8473
TARGET = f"{SUBNET}.13"
# of a registry with the same content under another name
PORT = 5999
# counts datagrams with two bytes: none of a real tunnel is that short
SEEN = f"""
table inet attack_seen {{
    chain input {{
        type filter hook input priority 10; policy accept;
        udp dport {TUNNEL_PORT} udp length 10 counter comment "tunnel"
        udp dport {OTHER_PORT} udp length 10 counter comment "other"
    }}
}}
"""

# root of a worker with flannel's token and with the kubelet's certificate: statuses and messages of the API server
CREDENTIALS = """
import base64, glob, json, ssl, urllib.error, urllib.request
CONFIG = open("/etc/kubernetes/kubelet.conf").read().split()
SERVER = CONFIG[CONFIG.index("server:") + 1]
NODE = open("/etc/hostname").read().strip()

def owner(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"]

def ask(method, path, body, token=""):
    trust = ssl.create_default_context(cafile="/etc/kubernetes/pki/ca.crt")
    if not token:
        trust.load_cert_chain("/var/lib/kubelet/pki/kubelet-client-current.pem")
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"Content-Type": kind, **({"Authorization": "Bearer " + token} if token else {})}
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, context=trust, timeout=20) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["message"]

tokens = [open(path).read() for path in glob.glob("/var/lib/kubelet/pods/*/volumes/kubernetes.io~projected/*/token")]
flannel = next(one for one in tokens if owner(one) == "system:serviceaccount:kube-flannel:flannel")
label = {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
note = {"metadata": {"annotations": {"flannel.alpha.coreos.com/backend-data": "{}"}}}
uid = json.load(urllib.request.urlopen(urllib.request.Request(
    SERVER + "/api/v1/nodes/" + NODE, headers={"Authorization": "Bearer " + flannel}),
    context=ssl.create_default_context(cafile="/etc/kubernetes/pki/ca.crt")))["metadata"]["uid"]
pod = {
    "metadata": {
        "name": "dns-" + NODE,
        "labels": {"k8s-app": "kube-dns"},
        "annotations": {"kubernetes.io/config.mirror": "any"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": uid, "controller": True}
        ],
    },
    "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "any"}]},
}
print(json.dumps({
    "label": ask("PATCH", f"/api/v1/nodes/{NODE}/status?dryRun=All", label, flannel),
    "other": ask("PATCH", "/api/v1/nodes/OTHER/status?dryRun=All", note, flannel),
    "static": ask("POST", "/api/v1/namespaces/kube-system/pods?dryRun=All", pod),
}))
"""


def test_join_credentials_ended_with_the_joins(cluster: Cluster) -> None:
    tokens = "--field-selector=type=bootstrap.kubernetes.io/token"
    assert cluster.kubectl("--namespace", "kube-system", "get", "secrets", tokens, "--output", "name") == ""
    rules = cluster.kubectl("get", "clusterrolebindings", "--output", "name").split()
    assert not BOOTSTRAP_RULES & {rule.partition("/")[2] for rule in rules}
    requests = json.loads(cluster.kubectl("get", "certificatesigningrequests", "--output", "json"))["items"]
    assert [one["metadata"]["name"] for one in requests if not one["status"].get("conditions")] == []


def test_credentials_of_a_worker_change_that_node_alone(cluster: Cluster) -> None:
    program = base64.b64encode(CREDENTIALS.replace("OTHER", EXISTING).encode()).decode()
    answers = json.loads(cluster.on(LOST, f"echo {program} | base64 -d | python3 -"))
    policies = {"label": "pai-flannel-nodes", "other": "pai-flannel-nodes", "static": "pai-static-pods"}
    assert {name: (status, policies[name] in message) for name, (status, message) in answers.items()} == (
        dict.fromkeys(policies, (422, True))
    ), answers


@contextmanager
def counting(cluster: Cluster, machine: str = LOST) -> Iterator[Callable[[], dict[str, int]]]:
    """A worker that counts what arrives behind its firewall: a function that says comment of the rule -> packets."""
    cluster.on(machine, f"nft -f - <<END\n{SEEN}\nEND")
    try:
        yield lambda: arrived(json.loads(cluster.on(machine, "nft --json list table inet attack_seen")))
    finally:
        cluster.on(machine, "nft delete table inet attack_seen")


def test_pod_does_not_reach_the_tunnel(cluster: Cluster, pods: dict[str, str]) -> None:
    """What arrives at the tunnel's port of a machine is taken for a packet of any pod: none may send there."""
    assert pods
    with counting(cluster) as seen:
        for port in (TUNNEL_PORT, OTHER_PORT):
            send = f"printf hi > /dev/udp/{TARGET}/{port}"
            # the oldest: the shell that looks for it has the same words
            pod = f"$(pgrep --oldest --full '{' '.join(SERVE)}')"
            cluster.on(EXISTING, f"nsenter --net --target {pod} bash -c '{send}'")
        assert seen() == {"tunnel": 0, "other": 1}


SPOOF = """
import socket, struct
packet = struct.pack("!HHHH2s", {port}, {port}, 10, 0, b"hi")
header = struct.pack("!BBHHHBBH4s4s", 69, 0, 20 + len(packet), 1, 0, 64, 17, 0,
                     socket.inet_aton("{source}"), socket.inet_aton("{target}"))
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
    raw.sendto(header + packet, ("{target}", 0))
"""


def test_pod_does_not_send_with_the_address_of_a_machine(cluster: Cluster, pods: dict[str, str]) -> None:
    """containerd gives pods NET_RAW by default, and the tunnel trusts the addresses of machines."""
    assert pods
    source = cluster.on(MASTER, "hostname -I").split()[0]
    pod = f"$(pgrep --oldest --full '{' '.join(SERVE)}')"
    with counting(cluster) as seen:
        for port in (TUNNEL_PORT, OTHER_PORT):
            program = SPOOF.format(port=port, source=source, target=TARGET)
            cluster.on(EXISTING, f"nsenter --net --target {pod} python3 - <<'END'\n{program}\nEND")
        assert seen() == {"tunnel": 0, "other": 0}


def test_stranger_in_the_network_does_not_reach_the_tunnel(cluster: Cluster) -> None:
    """The controller host is in the same network and no machine of the cluster; flannel's machines are let in."""
    with counting(cluster) as seen, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for port in (TUNNEL_PORT, OTHER_PORT):
            stranger.sendto(b"hi", (TARGET, port))
            send = f"printf hi > /dev/udp/{TARGET}/{port}"
            cluster.on(EXISTING, f"bash -c '{send}'")
        assert seen() == {"tunnel": 1, "other": 2}


@pytest.mark.parametrize("target", [EXISTING, LOST])
def test_container_of_docker_does_not_reach_the_tunnel(cluster: Cluster, target: str) -> None:
    """Docker gives NET_RAW too. Without it, masquerading gives a container the address of its machine."""
    machine, source = (cluster.on(it, "hostname -I").split()[0] for it in (target, MASTER))
    container = "$(docker inspect --format '{{.State.Pid}}' at-work)"
    own = cluster.on(EXISTING, f"nsenter --net --target {container} hostname -I").split()[0]
    with counting(cluster, target) as seen:
        for word in (source, own):
            for port in (TUNNEL_PORT, OTHER_PORT):
                program = SPOOF.format(port=port, source=word, target=machine)
                cluster.on(EXISTING, f"nsenter --net --target {container} python3 - <<'END'\n{program}\nEND")
        counts = seen()
    assert counts["tunnel"] == 0
    assert counts["other"] > 0


def test_stranger_in_the_network_sends_with_no_address_of_a_pod(cluster: Cluster, pods: dict[str, str]) -> None:
    """Past the tunnel as well: other pods would take it for a pod of its group."""
    with counting(cluster) as seen:
        for source in (*pods.values(), f"{SUBNET}.1"):
            exec(SPOOF.format(port=OTHER_PORT, source=source, target=TARGET))  # noqa: S102 - our own program
        assert seen() == {"tunnel": 0, "other": 1}


def arrived(table: dict[str, Any]) -> dict[str, int]:
    """The comment of each rule -> the packets that it counted, from `nft --json list table`."""
    rules = [entry["rule"] for entry in table["nftables"] if "rule" in entry]
    return {rule["comment"]: part["counter"]["packets"] for rule in rules for part in rule["expr"] if "counter" in part}


def test_programs_that_serve_others_are_not_root(cluster: Cluster) -> None:
    registry = cluster.on(MASTER, "ps -o user= -p $(systemctl show --value --property MainPID pai-component-store)")
    assert registry.strip() not in ("", "root")
    for machine in (MASTER, EXISTING, LOST):
        workers = cluster.on(machine, "ps -o user= --ppid $(systemctl show --value --property MainPID pai-api-proxy)")
        assert set(workers.split()) == {"haproxy"}


def test_file_that_was_given_away_is_drift(cluster: Cluster) -> None:
    """Who owns the kubelet's login is the node: another owner is seen, and taken back."""
    path = "/etc/kubernetes/kubelet.conf"
    cluster.on(LOST, f"chown nobody:nogroup {path}")
    reasons = [
        reason
        for phase in cluster.plan()["phases"]
        for step in phase["hosts"]
        if step["host"] == LOST
        for reason in step["reasons"]
    ]
    assert any(path in reason and "root" in reason for reason in reasons), reasons
    assert cluster.converge()["ok"]
    assert cluster.on(LOST, f"stat -c %U:%G {path}").strip() == "root:root"


@pytest.mark.parametrize("by", ["tag", "digest", "other-name"])
def test_pod_that_pulls_a_system_image_leaves_its_pin(cluster: Cluster, by: str) -> None:
    """containerd forgets the labels of a name that is pulled again, and the kubelet deletes what is not pinned."""
    names = cluster.on(LOST, "ctr --namespace k8s.io images ls --quiet").split()
    tag = next(name for name in names if name.startswith("registry.pai.internal/pause:"))
    with_digest = next(name for name in names if name.startswith("registry.pai.internal/pause@"))
    image = {"tag": tag, "digest": with_digest, "other-name": f"127.0.0.1:{PORT}/member/own:1"}[by]
    overrides = json.dumps({"spec": {"nodeName": LOST}})
    words = ("--restart=Never", "--image-pull-policy=Always", f"--image={image}", f"--overrides={overrides}")
    program = base64.b64encode((Path(__file__).parent / "other_registry.py").read_bytes()).decode()
    start = f"systemd-run --unit=other-registry python3 /run/other.py {PORT} {with_digest.partition('@')[2]}"
    hosts = f"/etc/containerd/certs.d/127.0.0.1:{PORT}"
    as_http = f"mkdir {hosts} && echo 'server = \"http://127.0.0.1:{PORT}\"' >{hosts}/hosts.toml"
    cluster.on(LOST, f"echo {program} | base64 -d >/run/other.py && {as_http} && {start}")
    try:
        cluster.kubectl("run", "pulls-pause", *words)
        cluster.kubectl("wait", "--for=condition=Ready", "pod/pulls-pause", "--timeout=120s")
    finally:
        cluster.kubectl("delete", "pod", "pulls-pause", "--ignore-not-found", "--grace-period=0")
        cluster.on(LOST, f"systemctl stop other-registry; rm -r {hosts}")
    assert '"pinned": true' in cluster.on(LOST, f"crictl inspecti --output json {tag}")
    assert cluster.to_change() == []
