"""Kubernetes 1.35 becomes 1.36 under a running service; whoever kills the upgrade, the same command ends it."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import SERVE, Cluster, equip, killed, killed_when, lab_of, lab_site, pai_install, traces, until
from .console_client import ConsoleClient, client_of
from .job_site import PASSWORD, USER

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.86"
OLD, NEW = "1.35", "1.36"
KILLS = 10
SEED = 20261125
MACHINES = ("lab-master", "lab-worker1", "lab-worker2")
PROBE = Path(__file__).with_name("probe.py")
LABELS = {"app": "answers"}
GROUP = "team"
SERVICES = f"""\
scheduler: {{type: default}}
virtual-clusters:
  - {{name: default, quota: [{{sku: lab-gpu, machines: 2}}], groups: [{GROUP}]}}
authentication:
  group-manager:
    admin-group: {{groupname: admins, extension: {{acls: {{admin: true}}}}}}
    grouplist: [{{groupname: {GROUP}}}]
rest-server: {{default-pai-admin-username: {USER}, default-pai-admin-password: {PASSWORD}}}
"""
# of the newer version alone: pods that their machine refuses are disrupted, and have not failed
POLICY = "pai-refused-pods"
POLICIES = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")


def set_version(site: Path, version: str) -> None:
    """Writes the version into config.yaml; empty: the line goes."""
    config = site / "config.yaml"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("kubernetes_version:")]
    lines += [f'kubernetes_version: "{version}"'] if version else []
    config.write_text("\n".join(lines) + "\n")


@pytest.fixture
def old_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster with the older minor version, on machines of its own; gone afterwards."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(tmp_path, SUBNET)
    (site / "services-configuration.yaml").write_text(SERVICES)
    equip(site)
    set_version(site, OLD)
    equip(site)
    up = pai_install("lab", "up", "--site", str(site), "--yes")
    try:
        assert up.returncode == 0, up.stderr
        cluster = Cluster(site, up)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        yield cluster
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


def service(cluster: Cluster) -> str:
    """Two replicas behind a Service, on different nodes, protected by a budget; the URL of the Service.

    A pod that ends goes on answering for some seconds, until every machine knows that it is going: what any program
    behind a Service has to do.
    """
    image = cluster.on(MACHINES[1], "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    container = {
        "name": "answers",
        "image": image,
        "command": list(SERVE),
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
        "lifecycle": {"preStop": {"sleep": {"seconds": 8}}},
    }
    spread = [{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": LABELS},
    }]  # fmt: skip
    pod = {"containers": [container], "topologySpreadConstraints": spread}
    objects = [
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "answers", "namespace": "default"},
            "spec": {"replicas": 2, "selector": {"matchLabels": LABELS},
                     "template": {"metadata": {"labels": LABELS}, "spec": pod}},
        },
        {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "answers", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}},
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "answers", "namespace": "default"},
            "spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    ]  # fmt: skip
    manifest = cluster.site / "answers.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    cluster.kubectl("apply", "--filename", str(manifest))
    cluster.kubectl("rollout", "status", "deployment/answers", "--timeout=180s")
    address = cluster.kubectl("get", "service", "answers", "--output=jsonpath={.spec.clusterIP}")
    return f"http://{address}/"


def start_probe(cluster: Cluster, url: str) -> None:
    """A program on the control plane that asks the Service all the time."""
    text = PROBE.read_text().replace("'", "'\\''")
    cluster.on(MACHINES[0], f"printf %s '{text}' > /run/probe.py")
    cluster.on(MACHINES[0], f"systemd-run --quiet --unit=probe python3 /run/probe.py {url} /run/probe.json")
    assert until(lambda: asked(cluster) > 10), "the probe asks nothing"


def probed(cluster: Cluster) -> dict[str, Any]:
    """How often the Service was asked, and what failed."""
    found: dict[str, Any] = json.loads(cluster.on(MACHINES[0], "cat /run/probe.json 2>/dev/null || echo '{}'"))
    return found


def asked(cluster: Cluster) -> int:
    return int(probed(cluster).get("asked", 0))


def versions(cluster: Cluster) -> dict[str, tuple[str, bool]]:
    """Node -> version of its kubelet, and whether it is out of scheduling."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
    return {
        node["metadata"]["name"]: (
            node["status"]["nodeInfo"]["kubeletVersion"].removeprefix("v"),
            bool(node["spec"].get("unschedulable")),
        )
        for node in nodes
    }


def kinds(cluster: Cluster) -> set[str]:
    """The kinds of admission policies that the API server knows."""
    served = json.loads(cluster.kubectl("get", "--raw", "/apis/admissionregistration.k8s.io/v1"))
    return {kind["name"] for kind in served["resources"]}


def kills(cluster: Cluster) -> int:
    """How many of ten upgrades were killed: wherever they were, and in the middle of the steps that change the most."""
    moments = random.Random(SEED)  # noqa: S311 - a repeatable test
    few = (KILLS - 2) // 2

    def anywhere(most: float) -> bool:
        return killed(cluster.site, moments.uniform(4, most), "upgrade", "--yes")

    early = [anywhere(20) for _ in range(few)]
    # the earlier ones may have ended the first of the steps
    middle = [killed_in(cluster, "control-plane-1", "workers-1-runtime")]
    middle.append(killed_in(cluster, "workers-1-runtime", "workers-2-runtime"))
    late = [anywhere(40) for _ in range(few)]
    assert all(middle)
    return sum([*early, *middle, *late])


def killed_in(cluster: Cluster, *phases: str) -> bool:
    """Starts the upgrade and kills it in one of the steps; False when it ended before."""
    written = [f'"phase": "{phase}"' for phase in phases]
    return killed_when(cluster.site, lambda text: any(word in text for word in written), "upgrade", "--yes")


def act(console: ConsoleClient, name: str) -> None:
    """An administrator makes a user, in whose name the console then acts, without rights of administrators."""
    # it has just started, and reads the cluster
    assert until(lambda: console.ask("GET", "/api/v2/jobs")[0] == 200), console.ask("GET", "/api/v2/jobs")
    password = f"the password of {name}"
    made = console.ask("POST", "/api/v2/users", {"username": name, "password": password, "virtualCluster": [GROUP]})
    assert made[0] == 201, made
    member = ConsoleClient(console.host, console.trust)
    member.sign_in(name, password)
    assert member.ask("GET", "/api/v2/jobs") == (200, [])
    assert member.ask("GET", "/api/v2/users")[0] == 403
    refused = member.ask("POST", "/api/v2/users", {"username": "friend", "password": password})
    assert refused[0] == 403, refused
    assert console.ask("DELETE", f"/api/v2/users/{name}")[0] == 200
    assert until(lambda: member.ask("GET", "/api/v2/jobs")[0] == 401)


def test_kubernetes_is_upgraded_under_a_running_service(old_cluster: Cluster) -> None:
    cluster = old_cluster
    before = versions(cluster)
    assert {version.rpartition(".")[0] for version, _ in before.values()} == {OLD}
    assert kinds(cluster).isdisjoint(POLICIES), "the older version has no such policies, and needs none"
    console = client_of(cluster.site, str(lab_of(cluster.site).machine(MACHINES[0]).address))
    console.sign_in(USER, PASSWORD)
    act(console, "early")
    start_probe(cluster, service(cluster))

    # what is installed stays, whatever the catalogue prefers now
    set_version(cluster.site, "")
    assert cluster.to_change() == []
    assert versions(cluster) == before

    # a site that asks for the next version is told which command brings it there
    set_version(cluster.site, NEW)
    refused = cluster.run("apply", "--yes")
    assert refused.returncode == 4
    assert "pai-install upgrade" in refused.stderr

    assert kills(cluster) >= KILLS // 2
    done = cluster.run("upgrade", "--yes", "--format", "json", timeout_s=1800)
    report = json.loads(done.stdout)
    assert report["ok"], done.stderr
    after = versions(cluster)
    assert {version.rpartition(".")[0] for version, _ in after.values()} == {NEW}
    assert [name for name, (_, cordoned) in after.items() if cordoned] == []
    assert list((cluster.site / ".pai" / "backups").glob("*.tar.gz"))

    # the newer version limits what the console does in other names, and its sessions live on
    act(console, "late")

    policy, binding = (json.loads(cluster.kubectl("get", kind, POLICY, "--output=json")) for kind in POLICIES)
    assert policy["spec"]["mutations"]
    (within,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert within["values"] == ["admins", GROUP]

    # kubeadm's own upgrade would let whoever holds a token become any node again
    rules = ("kubeadm:kubelet-bootstrap", "kubeadm:node-autoapprove-bootstrap")
    assert cluster.kubectl("get", "clusterrolebinding", "--ignore-not-found", *rules) == ""

    found = probed(cluster)
    assert found["failed"] == [], found
    assert found["asked"] > 300
    again = cluster.apply()
    assert {host: counts["changed"] for host, counts in again["hosts"].items()} == dict.fromkeys(MACHINES, 0)
    assert cluster.run("upgrade", "--yes").returncode == 0
