"""HiveD in a cluster: gangs by real kubelets, devices taken back whole, a configuration that it does not start with.

PAI_HIVED names HiveD's program, built as docs/decisions/010 says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import examples
from tests.hived_program import NEEDS_HIVED, PROGRAM
from tests.integration.hived.pods import ISOLATION, MARKER, SPEC, annotation

from .conftest import EXISTING, LOST, Cluster, equip, until
from .hived_image import write_image
from .test_examples import CORES, POLICY, ROOMY, SKU, ends, taken, with_cores
from .test_jobs import IMAGE, python_image
from .test_scheduler import asked, create, refusal, vc_apply

pytestmark = [
    pytest.mark.lab,
    pytest.mark.soak,
    NEEDS_HIVED,
]

SERVICES = f"""\
scheduler: {{type: hived}}
virtual-clusters:
  - {{name: research, groups: [research], quota: [{{sku: {SKU}, machines: 1}}]}}
  - {{name: product, groups: [product], quota: [{{sku: {SKU}, machines: 1}}]}}
storages: [{{name: data, type: hostPath, path: /srv/pai-examples}}]
authentication:
  group-manager:
    grouplist:
      - {{groupname: research, extension: {{acls: {{storageConfigs: [data]}}}}}}
      - {{groupname: product}}
"""
TEAMS = ("research", "product")
WHERE = ("--namespace=pai-hived",)
DEVICES = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
JOBS = "system:serviceaccount:kube-system:job-controller"
CLASSES = {-1: "oppo", 10: "test", 100: "prod"}


@pytest.fixture(scope="module")
def hived(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with HiveD and two teams; without them again afterwards."""
    names = ("config.yaml", "services-configuration.yaml", "layout.yaml")
    config, services, layout = (cluster.site / name for name in names)
    before, machines, image = config.read_text(), layout.read_text(), cluster.site / "hived.tar"
    write_image(Path(PROGRAM), image)
    config.write_text(f"{before}\ncomponent_images: {{hivedscheduler: {image.name}}}\n")
    services.write_text(SERVICES)
    # a cell comes with its part of the machine's cores: jobs of OpenPAI ask for whole ones
    layout.write_text(with_cores(machines))
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        yield cluster
    finally:
        remove_pods(cluster)
        services.unlink()
        config.write_text(before)
        layout.write_text(machines)
        report = cluster.converge()
        cluster.kubectl("delete", "namespace", *TEAMS, "--ignore-not-found", "--wait=false")
        image.unlink()
    assert report["ok"], report["stderr"]
    left = cluster.kubectl("get", "namespaces,clusterroles,priorityclasses,validatingadmissionpolicies", "-o", "name")
    assert "hived" not in left


@pytest.fixture
def empty(hived: Cluster) -> Iterator[Cluster]:
    """No pods of the teams, before and after."""
    yield hived
    remove_pods(hived)


def remove_pods(cluster: Cluster) -> None:
    for team in TEAMS:
        cluster.ask("delete", "pods", "--all", f"--namespace={team}", "--grace-period=0", "--force", "--timeout=60s")


def gang(cluster: Cluster, team: str, name: str, count: int, devices: int, priority: int = 10) -> None:
    """Pods that sleep and tell their devices."""
    image = cluster.on(EXISTING, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    script = 'echo "$NVIDIA_VISIBLE_DEVICES"; exec busybox sleep 3600'
    container = {
        "name": "main",
        "image": image,
        "command": ["/bin/busybox", "sh", "-c", script],
        "resources": {"limits": {MARKER: "1"}},
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": ISOLATION}}}],
    }
    spec = {
        "schedulerName": f"hivedscheduler-ds-{team}",
        "priorityClassName": CLASSES[priority],
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    asks = annotation(team, priority, devices, (name, count)).replace("leafCellType: a100", f"leafCellType: {SKU}")
    create(
        cluster,
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{name}-{it}", "namespace": team, "annotations": {SPEC: asks}},
                "spec": spec,
            }
            for it in range(count)
        ),
    )


def pods(cluster: Cluster, team: str) -> dict[str, dict[str, Any]]:
    found = json.loads(cluster.kubectl("get", "pods", f"--namespace={team}", "--output=json"))["items"]
    return {pod["metadata"]["name"]: pod for pod in found}


def running(cluster: Cluster, team: str) -> dict[str, str]:
    """Pod that runs -> its machine."""
    return {
        name: pod["spec"]["nodeName"]
        for name, pod in pods(cluster, team).items()
        if pod["status"]["phase"] == "Running"
    }


def test_it_runs_and_nothing_is_left_to_do(hived: Cluster) -> None:
    again = hived.converge()
    assert sum(host["changed"] for host in again["hosts"].values()) == 0
    rows = asked(hived, "usage")["virtual_clusters"]
    assert {row["name"]: row["quota"][0]["guaranteed"] for row in rows} == {"research": 8, "product": 8}


def test_a_gang_starts_whole_with_devices_of_its_own_or_not_at_all(empty: Cluster) -> None:
    gang(empty, "research", "fits", 2, 4)
    assert until(lambda: len(running(empty, "research")) == 2), empty.kubectl(
        "describe", "pods", "--namespace=research"
    )
    assert len(set(running(empty, "research").values())) == 1, "a virtual cluster's machine is one machine"
    told = {empty.kubectl("logs", f"fits-{it}", "--namespace=research").strip() for it in range(2)}
    assert told == {"0,1,2,3", "4,5,6,7"}
    gang(empty, "product", "large", 3, 4)
    assert not until(lambda: running(empty, "product"), 10)
    (used,) = [
        row["quota"][0]["used"] for row in asked(empty, "usage")["virtual_clusters"] if row["name"] == "research"
    ]
    assert used == 8


def test_an_owner_takes_back_what_it_lent_and_no_half_of_a_gang_is_left(empty: Cluster) -> None:
    gang(empty, "product", "guest", 4, 4, priority=-1)
    assert until(lambda: len(running(empty, "product")) == 4)
    gang(empty, "research", "owner", 2, 4, priority=100)
    assert until(lambda: len(running(empty, "research")) == 2), empty.kubectl(
        "describe", "pods", "--namespace=research"
    )
    assert until(lambda: not pods(empty, "product"), 30), "the other half of the guest stayed"


def test_what_hived_does_not_survive_is_refused(empty: Cluster) -> None:
    """To who makes pods of jobs; an administrator decides himself."""
    container = {"name": "crashes", "image": "x", "resources": {"limits": {MARKER: "1"}}}
    ours = {"schedulerName": "hivedscheduler-ds-research", "nodeName": EXISTING}
    for spec, why in ((ours, "HiveD does not survive it"), ({}, "any other has neither")):
        overrides = json.dumps({"spec": {**spec, "containers": [container]}})
        words = (f"--as={JOBS}", "run", "crashes", "--image=x", "--namespace=research", f"--overrides={overrides}")
        assert why in refusal(empty, *words)


@pytest.fixture(scope="module")
def roomy(hived: Cluster) -> Iterator[Cluster]:
    """Machines that say they have more cores than they do, and the image of the examples."""
    cores = "--output=jsonpath={.items[*].status.allocatable.cpu}"
    try:
        create(hived, *POLICY)
        for worker in (EXISTING, LOST):
            hived.on(worker, f"mkdir -p /srv/pai-examples && {python_image()}")
        assert until(lambda: hived.kubectl("get", "nodes", EXISTING, LOST, cores).split() == [CORES, CORES], 120)
        yield hived
    finally:
        hived.ask("delete", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", ROOMY)
        for worker in (EXISTING, LOST):
            hived.on(worker, f"rm -rf /srv/pai-examples; ctr --namespace=k8s.io images rm {IMAGE}")


@pytest.mark.parametrize("name", taken("hived"))
def test_an_example_ends_and_its_instances_meet(roomy: Cluster, empty: Cluster, name: str, tmp_path: Path) -> None:
    """OpenPAI's as oppo, on all machines: a virtual cluster has 8 devices, and each parameter server holds one."""
    del empty
    words = ("--priority", "oppo") if name.startswith("openpai/") else ()
    text = examples.text_of(name).replace("queue-name: default", "queue-name: research")
    ends(roomy, name, tmp_path, "--vc", "research", *words, group="research", text=text)


def test_a_configuration_that_it_does_not_start_with_is_replaced_by_the_last_good_one(empty: Cluster) -> None:
    """Jobs are placed all the while; the pod is not ready, and `vc apply` writes the site's."""
    gang(empty, "product", "before", 2, 4)
    assert until(lambda: len(running(empty, "product")) == 2)
    wrong = json.dumps(
        {"data": {"hivedscheduler.yaml": "physicalCluster: {cellTypes: {}, physicalCells: [{cellType: X}]}"}}
    )
    empty.kubectl("patch", "configmap", "hivedscheduler", *WHERE, "--type=merge", f"--patch={wrong}")
    condition = "--output=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
    assert until(lambda: "False" in empty.kubectl("get", "pods", *WHERE, condition), 240)

    def restored() -> bool:
        log = empty.ask("logs", "deployment/hived", "--container=bridge", *WHERE).stdout
        return "last good" in log

    assert until(restored, 240)
    gang(empty, "research", "meanwhile", 2, 4)
    assert until(lambda: len(running(empty, "research")) == 2, 180)
    assert "configmap/hivedscheduler" in empty.run("status", "--format", "json").stdout
    _report, done = vc_apply(empty)
    assert done.returncode == 0, done.stderr
    assert until(lambda: empty.kubectl("get", "pods", *WHERE, condition) == "True", 180)
    assert set(running(empty, "product")) == {"before-0", "before-1"}
    assert empty.to_change() == []
