"""The scheduler that the site names: its controllers run, admit jobs, stop nothing of the system, and go again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import CompletedProcess
from typing import Any

import pytest

from .conftest import EXISTING, LOST, Cluster, equip, pai_install, until

pytestmark = pytest.mark.lab

SERVICES = """\
scheduler: {type: kueue}
virtual-clusters:
  - {name: default, quota: [{sku: lab-gpu, machines: 1}]}
"""
TEAM = "queued-team"
QUEUES: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}},
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "any"}},
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": TEAM},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": "100m"}]}],
                }
            ],
        },
    },
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "queue", "namespace": TEAM},
        "spec": {"clusterQueue": TEAM},
    },
]
# those in which it has a part
PHASES = {"components", "runtime", "addons"}
KINDS = ("workloads", "localqueues", "clusterqueues", "resourceflavors")


@pytest.fixture(scope="module")
def kueue(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with Kueue and a queue; without them again afterwards."""
    services = cluster.site / "services-configuration.yaml"
    services.write_text(SERVICES)
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        create(cluster, *QUEUES)
        yield cluster
    finally:
        remove_queues(cluster)
        services.unlink()
        report = cluster.converge()
    assert report["ok"], report["stderr"]
    cluster.ask("wait", "namespace/pai-kueue", "namespace/pai-jobset", "--for=delete", "--timeout=300s")
    left = cluster.kubectl(
        "get", "customresourcedefinitions,validatingwebhookconfigurations,namespaces", "--output=name"
    )
    assert "kueue" not in left
    assert "jobset" not in left


def create(cluster: Cluster, *objects: dict[str, Any]) -> None:
    path = cluster.site / ".pai" / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    try:
        cluster.kubectl("apply", f"--filename={path}")
    finally:
        path.unlink()


def remove_queues(cluster: Cluster) -> None:
    """All that would keep Kueue in the cluster; the jobs first."""
    cluster.ask("delete", "jobs", "--all", f"--namespace={TEAM}", "--timeout=300s")
    for kind in KINDS:
        cluster.ask("delete", f"{kind}.kueue.x-k8s.io", "--all", "--all-namespaces", "--timeout=300s")
    cluster.ask("delete", "namespace", TEAM, "--ignore-not-found", "--wait=false")


def job(cluster: Cluster, name: str, cpu: str) -> dict[str, Any]:
    """One of the queue, suspended until it is admitted."""
    image = cluster.on(EXISTING, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    container = {"name": "main", "image": image, "command": ["/bin/true"], "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": TEAM, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def test_its_controllers_run_and_nothing_is_left_to_do(kueue: Cluster) -> None:
    for name in ("kueue", "jobset"):
        words = (f"--namespace=pai-{name}", "deployment", f"{name}-controller-manager")
        assert kueue.kubectl("get", *words, "--output=jsonpath={.status.availableReplicas}") == "1"
    assert not PHASES & set(kueue.to_change())


def test_a_job_waits_for_its_quota(kueue: Cluster) -> None:
    create(kueue, job(kueue, "fits", "50m"), job(kueue, "too-large", "200m"))
    words = (f"--namespace={TEAM}", "--for=condition=Complete", "job/fits", "--timeout=300s")
    assert kueue.ask("wait", *words).returncode == 0, kueue.kubectl("describe", "workloads", f"--namespace={TEAM}")
    shown = kueue.kubectl("get", "job", "too-large", f"--namespace={TEAM}", "--output=jsonpath={.spec.suspend}")
    assert shown == "true"
    assert kueue.kubectl("get", "pods", f"--namespace={TEAM}", "--output=name").count("too-large") == 0
    assert "insufficient quota" in kueue.kubectl("get", "workloads", f"--namespace={TEAM}", "--output=yaml")


def test_what_is_used_and_what_would_change_is_said(kueue: Cluster) -> None:
    usage = asked(kueue, "usage")
    (default,) = usage["virtual_clusters"]
    assert default["name"] == "default"
    assert {row["sku"]: (row["guaranteed"], row["used"]) for row in default["quota"]} == {"lab-gpu": (8, 0)}
    assert asked(kueue, "plan")["changes"] == []


def asked(cluster: Cluster, verb: str) -> dict[str, Any]:
    """What `pai-install vc VERB` says, as data."""
    done = pai_install("vc", verb, "--site", str(cluster.site), "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_what_needs_no_quota_needs_no_kueue(kueue: Cluster) -> None:
    """With its controllers down the system's own pods and jobs are made as ever; jobs of users wait for them."""
    scale(kueue, 0)
    try:
        for namespace in ("kube-system", "kube-flannel", TEAM):
            assert refusal(kueue, "run", "one", "--image=x", f"--namespace={namespace}") == ""
        for namespace in ("kube-system", "kube-flannel", "pai-kueue"):
            assert refusal(kueue, "create", "job", "one", "--image=x", f"--namespace={namespace}") == ""
        refused = refusal(kueue, "create", "job", "one", "--image=x", f"--namespace={TEAM}")
        assert 'failed calling webhook "mjob.kb.io"' in refused
    finally:
        scale(kueue, 1)


def test_every_promise_is_kept_and_nothing_of_the_test_is_left(kueue: Cluster) -> None:
    """Also while the scheduler is stopped; what Kueue itself waits for, five minutes, is left out."""
    done = pai_install("scheduler", "test", "--site", str(kueue.site), "--disruptive", "--format", "json")
    report = json.loads(done.stdout)
    found = {row["id"]: row["verdict"] for row in report["findings"]}
    assert {check for check, verdict in found.items() if verdict != "PASS"} == {"scheduler-requeue"}, report["findings"]
    assert (done.returncode, len(found)) == (0, 12)
    assert "scheduler-self-test" not in kueue.kubectl("get", "namespaces", "--output=name")
    kinds = ",".join(f"{kind}.kueue.x-k8s.io" for kind in ("clusterqueues", "resourceflavors", "topologies"))
    assert "pai-self-test" not in kueue.kubectl("get", kinds, "--output=name")
    assert "pai-install/self-test" not in kueue.kubectl("get", "nodes", "--output=yaml")


DIVIDED = """\
scheduler: {{type: kueue}}
virtual-clusters:
  - {{name: research, quota: [{{sku: lab-gpu, devices: {devices}}}]{research}}}
  - {{name: product, quota: [{{sku: lab-gpu, devices: 2}}]{product}}}
"""
OWN = f", pinned: [{LOST}]"


def divided(cluster: Cluster, *, devices: int = 4, research: str = "", product: str = "") -> None:
    """Writes the site's file."""
    text = DIVIDED.format(devices=devices, research=research, product=product)
    (cluster.site / "services-configuration.yaml").write_text(text)


def vc_apply(cluster: Cluster) -> tuple[dict[str, Any], CompletedProcess[str]]:
    """`vc apply`: its document, and how it ended."""
    done = pai_install("vc", "apply", "--site", str(cluster.site), "--yes", "--format", "json")
    return json.loads(done.stdout or "{}"), done


def changed(report: dict[str, Any]) -> int:
    """How many tasks of all its runs changed something."""
    return sum(host["changed"] for run in report["runs"] for host in run["hosts"].values())


@contextmanager
def sleepers(cluster: Cluster) -> Iterator[Callable[[str, str, str], None]]:
    """Makes jobs that sleep: name, queue, whose own machine they run on, empty for those of all."""

    def start(name: str, queue: str, owner: str) -> None:
        made = job(cluster, name, "20m")
        made["metadata"] |= {"namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": queue}}
        pod = made["spec"]["template"]["spec"]
        pod |= {"nodeSelector": {"pai-install/pinned": owner}, "terminationGracePeriodSeconds": 0}
        pod["containers"][0]["command"] = ["/bin/busybox", "sleep", "3600"]
        made["spec"]["template"]["metadata"] = {"labels": {"sleeper": name}}
        create(cluster, made)
        assert until(lambda: name in running(cluster)), cluster.kubectl("describe", "workloads,pods")

    try:
        yield start
    finally:
        cluster.ask("delete", "jobs", "--all", "--namespace=default", "--timeout=300s")


def running(cluster: Cluster) -> dict[str, tuple[str, str, int]]:
    """Job that sleeps -> machine, uid and restarts of its pod that is ready."""
    found = json.loads(cluster.kubectl("get", "pods", "--selector=sleeper", "--output=json"))["items"]
    return {
        pod["metadata"]["labels"]["sleeper"]: (pod["spec"]["nodeName"], pod["metadata"]["uid"], state["restartCount"])
        for pod in found
        for state in pod["status"].get("containerStatuses", ())
        if state["ready"]
    }


@pytest.mark.soak
def test_a_machine_moves_to_another_virtual_cluster_and_no_other_job_is_disturbed(kueue: Cluster) -> None:
    divided(kueue, research=OWN)
    report, done = vc_apply(kueue)
    assert done.returncode == 0, done.stderr
    assert kueue.kubectl("get", "node", LOST, "--output=jsonpath={.metadata.labels.pai-install/pinned}") == "research"
    with sleepers(kueue) as start:
        start("stays", "research", "")
        start("stays-too", "product", "")
        start("moves", "research", "research")
        before = running(kueue)
        assert {name: pod[0] for name, pod in before.items()} == {
            "stays": EXISTING,
            "stays-too": EXISTING,
            "moves": LOST,
        }

        divided(kueue, product=OWN)
        report, done = vc_apply(kueue)
        assert done.returncode == 0, done.stderr
        assert "research: lab-gpu shrinks from 12 to 4\nproduct: lab-gpu grows from 2 to 10\n" in done.stderr
        assert {run["phases"][-1]["name"] for run in report["runs"]} == {"virtual-clusters", "scheduler-test"}
        assert {name: pod for name, pod in running(kueue).items() if name != "moves"} == {
            name: pod for name, pod in before.items() if name != "moves"
        }
        report, done = vc_apply(kueue)
        assert (done.returncode, changed(report)) == (0, 0), done.stderr
        assert not PHASES & set(kueue.to_change())

        kueue.kubectl("delete", "job", "moves", "--timeout=300s")
        start("arrives", "product", "product")
        assert running(kueue)["arrives"][0] == LOST

        (kueue.site / "services-configuration.yaml").write_text(SERVICES)
        _report, done = vc_apply(kueue)
        assert done.returncode == 4
        assert "product is to go: default/arrives runs" in done.stdout + done.stderr
        assert running(kueue).keys() == {"stays", "stays-too", "arrives"}


REFUSED = "not-three"
REFUSING: list[dict[str, Any]] = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": REFUSED},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["kueue.x-k8s.io"],
                        "apiVersions": ["*"],
                        "operations": ["UPDATE"],
                        "resources": ["clusterqueues"],
                    }
                ]
            },
            "validations": [
                {
                    "expression": "!object.spec.resourceGroups.exists(g, g.flavors.exists(f, "
                    "f.resources.exists(r, string(r.nominalQuota) == '3')))",
                    "message": "three is no number",
                }
            ],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": REFUSED},
        "spec": {"policyName": REFUSED, "validationActions": ["Deny"]},
    },
]


def quotas(cluster: Cluster) -> str:
    """The amounts of the queue research."""
    where = "--output=jsonpath={.spec.resourceGroups[*].flavors[*].resources[*].nominalQuota}"
    return cluster.kubectl("get", "clusterqueue", "research", where)


@pytest.mark.soak
def test_what_is_refused_is_taken_back(kueue: Cluster) -> None:
    divided(kueue)
    _report, done = vc_apply(kueue)
    assert done.returncode == 0, done.stderr
    good = quotas(kueue)
    create(kueue, *REFUSING)
    try:
        change = '[{"op":"replace","path":"/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota","value":"3"}]'
        words = ("patch", "clusterqueue", "research", "--type=json", f"--patch={change}")
        assert until(lambda: "three is no number" in refusal(kueue, *words))
        divided(kueue, devices=3, product=OWN)
        report, done = vc_apply(kueue)
        assert done.returncode == 6, done.stderr
        assert "restored" in done.stderr
        assert "three is no number" in json.dumps(report["runs"][0])
        assert report["runs"][1]["ok"]
        assert quotas(kueue) == good
        assert kueue.kubectl("get", "node", LOST, "--output=jsonpath={.metadata.labels.pai-install/pinned}") == ""
        assert [row["kind"] for row in asked(kueue, "plan")["changes"]] == ["shrinks", "grows"]
    finally:
        kueue.ask("delete", "validatingadmissionpolicies,validatingadmissionpolicybindings", REFUSED)
    _report, done = vc_apply(kueue)
    assert done.returncode == 0, done.stderr
    assert quotas(kueue) != good


@pytest.mark.soak
def test_a_scheduler_that_a_hand_edited_configuration_makes_crash_is_put_right(kueue: Cluster) -> None:
    where = ("--namespace=pai-kueue",)
    garbage = json.dumps({"data": {"configuration.yaml": "kind: [garbage"}})
    kueue.kubectl("patch", "configmap", "kueue-controller-manager", *where, "--type=merge", f"--patch={garbage}")
    kueue.kubectl("delete", "pods", "--all", *where)
    restarts = "--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}"
    assert until(lambda: kueue.kubectl("get", "pods", *where, restarts) not in ("", "0"))
    reasons = [why for phase in kueue.plan()["phases"] for host in phase["hosts"] for why in host["reasons"]]
    assert any("configmap/kueue-controller-manager" in why for why in reasons), reasons
    assert "configmap/kueue-controller-manager" in kueue.run("status", "--format", "json").stdout
    _report, done = vc_apply(kueue)
    assert done.returncode == 0, done.stderr
    available = "--output=jsonpath={.status.availableReplicas}"
    assert kueue.kubectl("get", "deployment", "kueue-controller-manager", *where, available) == "1"
    assert "garbage" not in kueue.kubectl("get", "configmap", "kueue-controller-manager", *where, "--output=yaml")
    assert not PHASES & set(kueue.to_change())


def scale(cluster: Cluster, replicas: int) -> None:
    for name in ("kueue", "jobset"):
        words = (f"--namespace=pai-{name}", f"deployment/{name}-controller-manager")
        cluster.kubectl("scale", *words, f"--replicas={replicas}")
        if replicas:
            cluster.kubectl("rollout", "status", *words, "--timeout=300s")
        else:
            cluster.kubectl("wait", words[0], "pod", "--all", "--for=delete", "--timeout=300s")


def refusal(cluster: Cluster, *words: str) -> str:
    """What the API server says against an object; empty where it would be made."""
    done = cluster.ask(*words, "--dry-run=server")
    return done.stderr if done.returncode else ""
