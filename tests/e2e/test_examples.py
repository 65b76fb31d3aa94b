"""The examples on a cluster: each runs to its end, its instances meet; a search takes free GPUs and gives them back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pai_install.scheduling.model import Backend
from tests import examples

from .conftest import EXISTING, LOST, Cluster, equip, until
from .test_jobs import IMAGE, devices, job, python_image, shown

pytestmark = [pytest.mark.lab, pytest.mark.soak]

GROUP = "vision"
# two halves of the 16 devices that are only said to be there; both lend, and one borrows
SERVICES = f"""\
scheduler: {{{{type: {{scheduler}}, training-operator: true}}}}
virtual-clusters:
  - {{{{name: default, quota: [{{{{sku: lab-gpu, devices: 8}}}}], groups: [{GROUP}]}}}}
  - {{{{name: product, quota: [{{{{sku: lab-gpu, devices: 8, borrow: none}}}}], groups: [{GROUP}]}}}}
storages:
  - {{{{name: data, type: hostPath, path: /srv/pai-examples}}}}
authentication:
  group-manager:
    grouplist:
      - {{{{groupname: {GROUP}, extension: {{{{acls: {{{{storageConfigs: [data]}}}}}}}}}}}}
"""
ROOMY = "pai-test-roomy-machines"
# OpenPAI's jobs ask for whole cores, and the machines have two: kubelets say that they have more
CORES = "32"
SAID = ", ".join(
    f'JSONPatch{{op: "replace", path: "/status/{held}/cpu", value: "{CORES}"}}' for held in ("capacity", "allocatable")
)
SKU = "lab-gpu"


def with_cores(layout: str) -> str:
    """layout.yaml whose workers have the cores that their kubelets say, and memory for as many jobs."""
    head, workers = layout.split(f"  {SKU}:", 1)
    return f"{head}  {SKU}:{workers.replace('vcore: 1', 'vcore: 16').replace('mem: 1Gi', 'mem: 16Gi')}"


POLICY: list[dict[str, Any]] = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": ROOMY},
        "spec": {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["UPDATE"],
                        "resources": ["nodes/status"],
                    }
                ]
            },
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{SAID}]"}}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": ROOMY},
        "spec": {"policyName": ROOMY},
    },
]
# who meets whom, by role and number, and the job's name where it is not the file's
PS_WORKER = {"ps": 2, "worker": 2}
RANKS = {"rank": 2}
MEETINGS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "cpu-only/job.yaml": ("prepare", {}),
    "mindspore/volcano.yaml": ("mindspore", {"scheduler": 1, "worker": 2}),
    "mpi/jobset.yaml": ("horovod", RANKS),
    "openpai/ddp.yaml": ("ddp_cifar", RANKS),
    "openpai/ps-worker.json": ("mnist_ps", PS_WORKER),
    "openpai/single.json": ("mnist_024", {"alone": 1}),
    "pytorch/jobset.yaml": ("ddp", RANKS),
    "pytorch/pytorchjob.yaml": ("pytorchjob-ddp", RANKS),
    "tensorflow/tfjob.yaml": ("tfjob-ps", PS_WORKER),
    "tensorflow/volcano.yaml": ("tf-ps", PS_WORKER),
}
# those that end by themselves; the others are stopped with the job, and their logs with them
WORKERS = {"worker", "rank", "alone"}
TRIALS = 24
DEVICES = 16
# in which an owner has its devices back on a busy lab: Kueue takes them back in two rounds, pods end, others start
BACK_S = 180


@pytest.fixture(scope="module")
def site(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The cluster with a scheduler, two virtual clusters, and machines that say they have more than they do."""
    services, layout = cluster.site / "services-configuration.yaml", cluster.site / "layout.yaml"
    before = layout.read_text()
    services.write_text(SERVICES.format(scheduler=request.param))
    layout.write_text(with_cores(before))
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        make(cluster, POLICY)
        for worker in (EXISTING, LOST):
            cluster.on(worker, f"mkdir -p /srv/pai-examples && {python_image()}")
        assert until(lambda: equipped(cluster))
        yield cluster
    finally:
        cluster.ask("delete", "jobs", f"--namespace={GROUP}", "--selector=search=search", "--timeout=60s")
        for one in json.loads(job(cluster, "list", "--format", "json").stdout or "{}").get("jobs", ()):
            job(cluster, "stop", f"{one['kind'].lower()}/{one['name']}", "--yes")
        cluster.ask("delete", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", ROOMY)
        for worker in (EXISTING, LOST):
            devices(cluster, worker, "remove")
            cluster.on(worker, f"rm -rf /srv/pai-examples; ctr --namespace=k8s.io images rm {IMAGE}")
        services.unlink()
        layout.write_text(before)
        report = cluster.converge()
        cluster.ask("delete", "namespace", GROUP, "--wait=false")
    assert report["ok"], report["stderr"]


def equipped(cluster: Cluster) -> bool:
    """Whether the workers have devices and cores; the API server takes a moment to heed a policy."""
    for worker in (EXISTING, LOST):
        devices(cluster, worker, "add", "8")
    cores = "--output=jsonpath={.items[*].status.allocatable.cpu}"
    return cluster.kubectl("get", "nodes", EXISTING, LOST, cores).split() == [CORES, CORES]


def make(cluster: Cluster, objects: list[dict[str, Any]]) -> None:
    path = cluster.site / ".pai" / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    try:
        cluster.kubectl("apply", f"--filename={path}")
    finally:
        path.unlink()


def written(folder: Path, name: str, text: str) -> str:
    """A file with the job as the lab can run it."""
    path = folder / Path(name).name
    path.write_text(examples.lab_variant(text, IMAGE))
    return str(path)


def run(cluster: Cluster, file: str, *words: str, group: str = GROUP) -> None:
    """Submits, without waiting."""
    done = job(cluster, "submit", file, "--group", group, "--user", "alice", *words)
    assert done.returncode == 0, done.stdout + done.stderr


def taken(scheduler: Backend) -> list[str]:
    """The examples that it takes, but for those with a test of their own."""
    return [name for name in MEETINGS if examples.takes(name, scheduler)]


def expected(roles: Mapping[str, int]) -> set[str]:
    """What those tell that end by themselves: that they met all others, and found the line."""
    everyone = [f"{role} {number}" for role, count in roles.items() for number in range(count)]
    working = [who for who in everyone if who.split()[0] in WORKERS]
    if everyone == ["alone 0"]:
        return {"alone found y = 2.0 x + -1.0"}
    met = {f"{one} met {other}" for one in working for other in everyone if other != one}
    return met | {f"{one} found y = 2.0 x + -1.0" for one in working}


def test_every_example_is_tried() -> None:
    assert {*MEETINGS, examples.SEARCH, *examples.NOT_IN_THE_LAB} == set(examples.names())


@pytest.mark.parametrize("site", ["kueue"], indirect=True, scope="module")
@pytest.mark.parametrize("name", taken("kueue"))
def test_with_kueue_it_ends_and_its_instances_meet(site: Cluster, name: str, tmp_path: Path) -> None:
    ends(site, name, tmp_path)


@pytest.mark.parametrize("site", ["volcano"], indirect=True, scope="module")
@pytest.mark.parametrize("name", taken("volcano"))
def test_with_volcano_it_ends_and_its_instances_meet(site: Cluster, name: str, tmp_path: Path) -> None:
    ends(site, name, tmp_path)


@pytest.mark.parametrize("site", ["default"], indirect=True, scope="module")
@pytest.mark.parametrize("name", taken("default"))
def test_with_no_scheduler_but_kubernetes_own_it_ends_and_its_instances_meet(
    site: Cluster, name: str, tmp_path: Path
) -> None:
    ends(site, name, tmp_path)


def ends(cluster: Cluster, name: str, folder: Path, *words: str, group: str = GROUP, text: str = "") -> None:
    """Runs an example (text: as it is here) to its end, reads that its instances have met, and removes it."""
    called, roles = MEETINGS[name]
    run(cluster, written(folder, name, text or examples.text_of(name)), "--watch", *words, group=group)
    logs = job(cluster, "logs", called, "--group", group).stdout
    assert {line for line in expected(roles) if line not in logs} == set(), logs
    if not roles:
        assert logs.count("deviation") == 4
    assert job(cluster, "stop", called, "--group", group, "--yes").returncode == 0
    assert until(lambda: not pods(cluster, called, group), 120)


def pods(cluster: Cluster, called: str, group: str = GROUP) -> list[dict[str, Any]]:
    """Those of a job that are there."""
    found = json.loads(cluster.kubectl("get", "pods", f"--namespace={group}", "--output=json"))["items"]
    return [pod for pod in found if pod["metadata"]["labels"].get("pai-install/job") == called]


@pytest.mark.parametrize("site", ["volcano"], indirect=True, scope="module")
def test_a_gang_that_loses_a_pod_begins_again_whole(site: Cluster, tmp_path: Path) -> None:
    """Volcano takes back devices pod by pod: PodEvicted -> RestartJob."""
    text = examples.text_of("tensorflow/volcano.yaml").replace("train.py --job_name", "train.py --pause=1 --job_name")
    run(site, written(tmp_path, "tf.yaml", text))
    assert until(lambda: shown(site, "tf-ps")["state"] == "RUNNING", 180)
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods(site, "tf-ps")}
    assert len(before) == 4
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "tf-ps-worker-0"}}
    path = tmp_path / "eviction.json"
    path.write_text(json.dumps(eviction))
    where = f"/api/v1/namespaces/{GROUP}/pods/tf-ps-worker-0/eviction"
    site.kubectl("create", f"--raw={where}", f"--filename={path}")

    def others() -> bool:
        now = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods(site, "tf-ps")}
        return now.keys() == before.keys() and not set(now.values()) & set(before.values())

    assert until(others, 180), pods(site, "tf-ps")
    assert until(lambda: shown(site, "tf-ps")["state"] == "SUCCEEDED", 300)
    assert shown(site, "tf-ps")["retries"] == 1
    logs = job(site, "logs", "tf-ps", "--group", GROUP).stdout
    assert {line for line in expected(PS_WORKER) if line not in logs} == set(), logs
    assert job(site, "stop", "tf-ps", "--group", GROUP, "--yes").returncode == 0


@pytest.mark.parametrize("site", ["kueue"], indirect=True, scope="module")
def test_with_kueue_two_at_once_with_devices_for_one_run_one_after_the_other(site: Cluster, tmp_path: Path) -> None:
    after_each_other(site, tmp_path)


@pytest.mark.parametrize("site", ["volcano"], indirect=True, scope="module")
def test_with_volcano_two_at_once_with_devices_for_one_run_one_after_the_other(site: Cluster, tmp_path: Path) -> None:
    after_each_other(site, tmp_path)


def after_each_other(cluster: Cluster, folder: Path) -> None:
    """Parameter servers and workers, submitted twice at once: no part of the one that waits holds anything."""
    # three minutes each: on a busy box a question takes ten seconds, and several are asked while the first runs
    text = examples.text_of("openpai/ps-worker.json").replace("--task_index", "--pause=3 --task_index")
    names = ("one", "other")
    files = [written(folder, f"{name}.json", text.replace("mnist_ps", name)) for name in names]
    try:
        with ThreadPoolExecutor(len(files)) as pool:
            list(pool.map(lambda file: run(cluster, file, "--vc", "product"), files))
        assert until(lambda: "RUNNING" in {shown(cluster, name)["state"] for name in names}, 180)
        first, second = sorted(names, key=lambda name: shown(cluster, name)["state"] != "RUNNING")
        assert (len(placed(cluster, first)), shown(cluster, second)["state"]) == (4, "WAITING")
        none_in_part(cluster, first, second)
        assert shown(cluster, first)["state"] == "SUCCEEDED"
        assert until(lambda: shown(cluster, second)["state"] == "SUCCEEDED", 480), shown(cluster, second)
    finally:
        stopped = [job(cluster, "stop", name, "--group", GROUP, "--yes").returncode for name in names]
    assert stopped == [0, 0]


def none_in_part(cluster: Cluster, first: str, second: str) -> None:
    """As long as the first runs, no pod of the second has a machine."""
    seen, runs = set(), True
    while runs:
        there = len(placed(cluster, second))
        # asked afterwards: as soon as the first has ended the second may begin
        if runs := shown(cluster, first)["state"] == "RUNNING":
            seen.add(there)
    assert seen == {0}


def placed(cluster: Cluster, called: str) -> list[dict[str, Any]]:
    """The pods of a job that have a machine."""
    return [pod for pod in pods(cluster, called) if pod["spec"].get("nodeName")]


def trials(cluster: Cluster) -> list[dict[str, Any]]:
    """The search's pods."""
    words = ("pods", f"--namespace={GROUP}", "--selector=search=search", "--output=json")
    found: list[dict[str, Any]] = json.loads(cluster.kubectl("get", *words))["items"]
    return found


def holding(cluster: Cluster) -> set[str]:
    """The uids of those that have their device."""
    return {
        pod["metadata"]["uid"]
        for pod in trials(cluster)
        if pod["spec"].get("nodeName") and pod["status"]["phase"] in ("Pending", "Running")
    }


def finished(cluster: Cluster) -> dict[str, str]:
    """Trial -> uid of the pod that ended well."""
    return {
        pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]: pod["metadata"]["uid"]
        for pod in trials(cluster)
        if pod["status"]["phase"] == "Succeeded"
    }


@pytest.mark.parametrize("site", ["kueue"], indirect=True, scope="module")
def test_a_search_grows_gives_back_and_loses_no_finished_trial(site: Cluster, tmp_path: Path) -> None:
    rates = ",".join(f"0.{number:02}" for number in range(5, 5 + TRIALS // 3))
    text = examples.text_of(examples.SEARCH, f"--rates={rates}", "--widths=16,64,256")
    # they end one after the other, as trials do: after 30 seconds, 60, and 120
    for width, pause in ((16, 0.5), (64, 1), (256, 2)):
        text = text.replace(f"--width={width}]", f"--width={width}, --pause={pause}]")
    run(site, written(tmp_path, "search.yaml", text))
    assert until(lambda: len(holding(site)) == DEVICES, 240), trials(site)
    assert until(lambda: finished(site) and len(holding(site)) == DEVICES, 240), trials(site)

    before, held = finished(site), holding(site)
    begun = time.monotonic()
    run(site, written(tmp_path, "owner.json", examples.text_of("openpai/ps-worker.json")), "--vc", "product")
    assert until(lambda: shown(site, "mnist_ps")["state"] in ("RUNNING", "SUCCEEDED"), BACK_S), shown(site, "mnist_ps")
    print(f"the owner had its devices back after {time.monotonic() - begun:.0f} s")  # noqa: T201 - a measurement
    assert until(lambda: shown(site, "mnist_ps")["state"] == "SUCCEEDED", 180)
    logs = job(site, "logs", "mnist_ps", "--group", GROUP).stdout
    assert {line for line in expected(PS_WORKER) if line not in logs} == set(), logs
    assert job(site, "stop", "mnist_ps", "--group", GROUP, "--yes").returncode == 0

    assert until(lambda: len(finished(site)) == TRIALS, 900), trials(site)
    after = finished(site)
    assert {name: after[name] for name in before} == before
    # some were stopped for the owner, and began again
    assert held - set(after.values())
    succeeded = "--output=jsonpath={.items[*].status.succeeded}"
    words = ("jobs", f"--namespace={GROUP}", "--selector=search=search", succeeded)
    assert site.kubectl("get", *words).split() == ["1"] * TRIALS
    site.kubectl("delete", "jobs", f"--namespace={GROUP}", "--selector=search=search", "--timeout=120s")
