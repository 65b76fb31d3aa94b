"""Jobs beside a site: what could never start there, and who may not."""

from __future__ import annotations

import pytest

from pai_install.schedulers.job_check import check_job
from tests.unit.jobs.sites import GROUPS, STORAGES, research
from tests.unit.jobs.test_read import JOBSET, KUBEFLOW, POD, V2, read
from tests.unit.scheduling.test_read import VALID

LARGE = "{cpu: 1, memoryMB: 1000, gpu: 9}"
STORAGE = "submitFrom: web\n  storages: [{name: sets}]"
TASKS = V2[V2.index("    instances") : V2.index("extras")]
# what is wrong: what to replace in the job, by what, the group, the place, words of the message
REFUSED = {
    "no such virtual cluster": ("virtualCluster: default", "virtualCluster: reserch", None, "14:3", "research?"),
    "not the group's": ("virtualCluster: default", "virtualCluster: research", "nlp", "14:3", "may not submit"),
    "priority": (
        "  virtualCluster: default\nextras:\n  submitFrom: web",
        "  virtualCluster: research\nextras:\n  hivedScheduler: {jobPriorityClass: crit}", "Vision_1", "16:20",
        "above the highest",
    ),
    "storage of another": ("submitFrom: web", STORAGE, "Vision_1", "17:15", "may not mount sets"),
    "no such storage": ("submitFrom: web", STORAGE.replace("sets", "taem"), "Vision_1", "17:15", "did you mean team?"),
    "nine GPUs": ("{cpu: 1, memoryMB: 1000, gpu: 1}", LARGE, None, "10:5", "the largest machine type, a100, has 8"),
    "memory": ("memoryMB: 1000", "memoryMB: 1000000", None, "10:5", "for jobs"),
    "no such machine": (
        "submitFrom: web", "hivedScheduler: {taskRoles: {worker: {skuType: h100}}}", None, "16:41", "no machine type",
    ),
    "not of this virtual cluster": (
        "submitFrom: web", "hivedScheduler: {taskRoles: {worker: {skuType: t4}}}", None, "16:41", "may borrow none",
    ),
    "a gang that is too large": ("instances: 2", "instances: 25", None, "14:3", "has at most"),
    "a gang that fits no machines": (
        TASKS,
        TASKS.replace("instances: 2", "instances: 4").replace("gpu: 1", "gpu: 5").replace(": default", ": research"),
        None, "14:3", "room for 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_site_refuses(name: str) -> None:
    old, new, group, place, words = REFUSED[name]
    assert old in V2
    reading = read(V2.replace(old, new))
    assert reading.job is not None, reading.problems
    checked = check_job(reading, research(), group)
    assert checked.job is None
    told = [f"{one.line}:{one.column} {one.message} ({one.remedy})" for one in checked.problems]
    assert len(told) == 1, told
    assert told[0].startswith(f"{place} "), told
    assert words in told[0], told


@pytest.mark.parametrize("group", [None, "Vision_1", "nlp"])
def test_a_job_that_fits(group: str | None) -> None:
    reading = read(V2)
    assert check_job(reading, research(), group) == reading


def test_without_a_gang_each_instance_counts_alone() -> None:
    text = V2.replace("instances: 2", "instances: 999").replace("submitFrom: web", "gangAllocation: false")
    assert check_job(read(text), research(), None).job is not None


def test_a_site_without_virtual_clusters() -> None:
    site = research(GROUPS + STORAGES)
    assert check_job(read(V2), site, None).job is not None
    named = read(V2.replace("virtualCluster: default", "virtualCluster: research"))
    assert [one.code for one in check_job(named, site, None).problems] == ["job.virtual-cluster"]


def test_kinds_that_the_scheduler_does_not_queue() -> None:
    checked = check_job(read(KUBEFLOW.replace("TFJob", "MPIJob").replace("tfReplica", "mpiReplica")), research(), None)
    assert [(one.line, one.code, one.remedy) for one in checked.problems] == [
        (2, "job.kind", "write the job as another kind")
    ]
    assert check_job(read(JOBSET), research(), "Vision_1").job is not None
    assert [one.code for one in check_job(read(JOBSET), research(), "nlp").problems] == ["job.virtual-cluster"]


def test_namespaces_of_others() -> None:
    text = POD.replace("name: train", "name: train\n  namespace: nlp")
    assert check_job(read(text), research(), "nlp").job is not None
    checked = check_job(read(text), research(), "Vision_1")
    assert [(one.line, one.code) for one in checked.problems] == [(5, "job.namespace")]


def test_kubeflows_jobs_need_what_runs_them() -> None:
    (problem,) = check_job(read(KUBEFLOW), research(), None).problems
    assert (problem.line, problem.code) == (2, "job.kind")
    assert "training-operator: true" in problem.remedy
    services = (VALID + GROUPS).replace("type: kueue\n", "type: kueue\n  training-operator: true\n", 1)
    assert check_job(read(KUBEFLOW), research(services), None).job is not None


@pytest.mark.parametrize(("gpus", "priority", "refused"), [(4, "test", True), (3, "test", False), (4, "oppo", False)])
def test_with_hived_an_instance_without_devices_holds_one_too(gpus: int, priority: str, *, refused: bool) -> None:
    """Or else a gang would wait for ever that HiveD has no room for. What others leave idle, oppo may have."""
    cells = "scheduler: {type: hived}\nvirtual-clusters:\n  - {name: default, quota: [{sku: a100, devices: 8}]}\n"
    worker = TASKS[: TASKS.index("defaults")]
    servers = worker.replace("gpu: 1", "gpu: 0")
    text = V2.replace(worker, worker.replace("gpu: 1", f"gpu: {gpus}") + "  ps:\n" + servers)
    text = text.replace("submitFrom: web", f"hivedScheduler: {{jobPriorityClass: {priority}}}")
    checked = check_job(read(text), research(cells + GROUPS), None)
    told = [f"{one.message} ({one.remedy})" for one in checked.problems]
    assert bool(told) == refused, told
    if refused:
        assert "together hold 10 devices" in told[0]
        assert "each instance holds at least one" in told[0]


MIXED = """\
scheduler: {type: hived}
virtual-clusters:
  - {name: default, quota: [{sku: a100, devices: 8}, {sku: t4, devices: 4}]}
"""


@pytest.mark.parametrize(
    ("gpus", "skus", "words"),
    [
        (4, "", ""),
        (5, "", "8 devices"),
        (2, "worker: {skuType: t4}", ""),
        (3, "worker: {skuType: t4}", "4 devices"),
        (1, "worker: {skuType: t4}, ps: {skuType: a100}", "2 types: a100, t4"),
    ],
)
def test_with_hived_a_gang_is_on_machines_of_one_type(gpus: int, skus: str, words: str) -> None:
    """Those of several types together may have room, but HiveD would keep the gang waiting for ever."""
    worker = TASKS[: TASKS.index("defaults")].replace("instances: 2", "instances: 1").replace("gpu: 1", f"gpu: {gpus}")
    text = V2.replace(TASKS[: TASKS.index("defaults")], worker + "  ps:\n" + worker)
    text = text.replace("submitFrom: web", f"hivedScheduler: {{taskRoles: {{{skus}}}}}")
    told = [f"{one.message} ({one.remedy})" for one in check_job(read(text), research(MIXED + GROUPS), None).problems]
    assert bool(told) == bool(words), told
    assert all(words in one for one in told)


SHARED = """\
scheduler: {type: default}
virtual-clusters:
  - {name: default, quota: [{sku: a100, devices: 8}, {sku: t4, devices: 4}]}
"""
WIDER = SHARED + "jobs: {device-share-percent: 200}\n"
HIVED_SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"


def shares_of(text: str, services: str = SHARED) -> list[tuple[int, str]]:
    """Line and code of each problem. A device of an a100 comes with 10.8 cores and 112.5 GiB."""
    reading = read(text)
    assert reading.job is not None, reading.problems
    return [(one.line, one.code) for one in check_job(reading, research(services + GROUPS), None).problems]


@pytest.mark.parametrize(
    ("resources", "services", "found"),
    [
        ("{cpu: 10, memoryMB: 1000, gpu: 1}", SHARED, []),
        ("{cpu: 11, memoryMB: 1000, gpu: 1}", SHARED, [(10, "job.share")]),
        ("{cpu: 1, memoryMB: 120000, gpu: 1}", SHARED, [(10, "job.share")]),
        ("{cpu: 21, memoryMB: 1000, gpu: 2}", SHARED, []),
        ("{cpu: 96, memoryMB: 1000, gpu: 8}", SHARED, []),
        ("{cpu: 40, memoryMB: 1000, gpu: 0}", SHARED, []),
        ("{cpu: 21, memoryMB: 1000, gpu: 1}", WIDER, []),
        ("{cpu: 22, memoryMB: 1000, gpu: 1}", WIDER, [(10, "job.share")]),
        ("{cpu: 80, memoryMB: 1000, gpu: 1}", SHARED.replace("type: default", "type: kueue"), []),
        # it holds more cells instead
        ("{cpu: 21, memoryMB: 1000, gpu: 1}", SHARED.replace("type: default", "type: hived"), []),
    ],
)
def test_more_than_the_share_of_its_devices(resources: str, services: str, found: list[tuple[int, str]]) -> None:
    text = V2.replace("instances: 2", "instances: 1").replace("{cpu: 1, memoryMB: 1000, gpu: 1}", resources)
    assert shares_of(text, services) == found


@pytest.mark.parametrize(("cpu", "found"), [("10", []), ("10900m", [(9, "job.share")])])
def test_more_than_the_share_in_an_object(cpu: str, found: list[tuple[int, str]]) -> None:
    assert shares_of(POD.replace("cpu: 1,", f"cpu: {cpu},")) == found


@pytest.mark.parametrize(
    ("cpu", "lines", "refused"),
    [
        ("10", "leafCellType: a100\\nleafCellNumber: 1", False),
        ("11", "leafCellType: a100\\nleafCellNumber: 1", True),
        ("11", "leafCellType: a100\\nleafCellNumber: 2", False),
        ("10", "leafCellType: t4\\nleafCellNumber: 1", True),
        # cells of machines without devices have a core each
        ("10", "leafCellNumber: 1", True),
        ("1", "leafCellNumber: 1", False),
        ("11", "pinnedCellId: g3\\nleafCellNumber: 1", True),
    ],
)
def test_more_than_the_share_of_its_cells(cpu: str, lines: str, *, refused: bool) -> None:
    cells = f'{{metadata: {{annotations: {{{HIVED_SPEC}: "virtualCluster: default\\n{lines}"}}}}, spec:'
    marker = "hivedscheduler.microsoft.com/pod-scheduling-enable"
    limits = f"{{requests: {{cpu: {cpu}}}, limits: {{{marker}: 1}}}}"
    pod = f"{cells} {{containers: [{{name: a, image: b, resources: {limits}}}]}}}}"
    text = JOBSET.replace("{kueue.x-k8s.io/queue-name: research}", "{}").replace(
        "{spec: {containers: [{name: a, image: b}]}}", pod
    )
    assert text != JOBSET
    found = [code for _, code in shares_of(text, SHARED.replace("type: default", "type: hived"))]
    assert found == (["job.share"] if refused else [])
