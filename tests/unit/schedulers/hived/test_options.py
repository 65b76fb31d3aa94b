"""HiveD's options of a job of OpenPAI's: what its pods say, and jobs that HiveD can never start."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.jobs.model import Job
from pai_install.jobs.place import JobOwner, JobPlace
from pai_install.jobs.read import JobReading, read_job_text
from pai_install.profile.project import profile_of
from pai_install.schedulers.hived.placement import CellPool, PodGroup, guaranteed_cells, refusal
from pai_install.schedulers.job_check import check_job
from pai_install.schedulers.jobs import objects_of
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.simulation import simulate
from pai_install.schedulers.usage import kinds_of, usage_of
from pai_install.scheduling.job_request import read_job_request
from pai_install.scheduling.model import BACKENDS, Priority, Scheduling
from pai_install.scheduling.read import scheduling_of
from tests.hived_demo import demo_site
from tests.virtual_clusters import pinned, with_backend

HIVED_SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
_JOB = """\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {{type: dockerimage, name: image, uri: python}}
taskRoles:
{roles}defaults: {{virtualCluster: vc1}}
extras:
{extras}"""
_ROLE = """\
  {name}:
    instances: {instances}
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 1000, gpu: {gpus}}}
    commands: [run]
"""


def job_text(extras: str, **roles: tuple[int, int]) -> str:
    """A job. roles: name -> instances, and devices of one."""
    written = "".join(_ROLE.format(name=name, instances=one[0], gpus=one[1]) for name, one in roles.items())
    return _JOB.format(roles=written, extras="".join(f"  {line}\n" for line in extras.splitlines()))


def checked(folder: Path, extras: str, **roles: tuple[int, int]) -> JobReading:
    """The job beside the site of the demo."""
    return check_job(read_job_text(job_text(extras, **roles), Path("job")), profile_of(demo_site(folder)), None)


def specs(reading: JobReading, scheduling: Scheduling, priority: Priority = "prod") -> list[dict[str, Any]]:
    """What the pods of each role say to HiveD."""
    assert isinstance(reading.job, Job), reading.problems
    place = JobPlace(scheduling, scheduling.cluster("vc1"), priority, JobOwner("alice", "vision", "vision"))
    job_set = objects_of(reading.job, place)[0]
    templates = [one["template"]["spec"]["template"] for one in job_set["spec"]["replicatedJobs"]]
    return [yaml.safe_load(one["metadata"]["annotations"][HIVED_SPEC]) for one in templates]


def codes(reading: JobReading) -> list[tuple[str, str, str]]:
    return [(one.code, one.severity, one.path.rpartition(".")[2]) for one in reading.problems]


PIN = """\
hivedScheduler:
  taskRoles:
    plain: {skuType: K80, affinityGroupName: one}
    own: {pinnedCellId: VC1-K80, affinityGroupName: two}
"""


def test_options_go_to_hived(tmp_path: Path) -> None:
    extras = f"{PIN}  lazyPreemptionEnable: true\n  gangReleaseEnable: true\n  ignoreK8sSuggestedNodes: false\n"
    reading = checked(tmp_path, extras, plain=(4, 1), own=(2, 2))
    assert codes(reading) == []
    scheduling = profile_of(demo_site(tmp_path)).require_scheduling()
    plain, own = specs(reading, scheduling)
    assert plain == {
        "virtualCluster": "vc1",
        "priority": 100,
        "leafCellType": "K80",
        "leafCellNumber": 1,
        "gangReleaseEnable": True,
        "lazyPreemptionEnable": True,
        "ignoreK8sSuggestedNodes": False,
        "affinityGroup": {"name": "vision.demo.one", "members": [{"podNumber": 4, "leafCellNumber": 1}]},
    }
    assert own["pinnedCellId"] == "VC1-K80"
    assert "leafCellType" not in own
    assert own["affinityGroup"] == {"name": "vision.demo.two", "members": [{"podNumber": 2, "leafCellNumber": 2}]}


def test_roles_that_start_together_have_one_pinned_cell(tmp_path: Path) -> None:
    extras = "hivedScheduler: {taskRoles: {own: {pinnedCellId: VC1-K80}}}\n"
    found = codes(checked(tmp_path, extras, plain=(1, 1), own=(1, 1)))
    assert set(found) == {("job.contradiction", "error", "pinnedCellId")}


def test_a_name_of_the_blocks_skus_is_a_machine_type(tmp_path: Path) -> None:
    sku = "hivedScheduler: {taskRoles: {main: {skuType: %s}}}\n"
    assert codes(checked(tmp_path, sku % "K80", main=(2, 1))) == []
    assert codes(checked(tmp_path, sku % "M60", main=(2, 1))) == [("job.too-large", "error", "skuType")]


@pytest.mark.parametrize(
    ("extras", "roles", "at"),
    [
        ("submitFrom: web\n", {"main": (4, 1)}, None),
        # 4 devices are pinned, and 4 are not
        ("submitFrom: web\n", {"main": (8, 1)}, "virtualCluster"),
        ("submitFrom: web\n", {"main": (2, 3)}, "virtualCluster"),
        ("gangAllocation: false\n", {"main": (8, 1)}, None),
        (PIN, {"plain": (4, 1), "own": (4, 1)}, None),
        (PIN, {"plain": (4, 1), "own": (5, 1)}, "pinnedCellId"),
        (PIN.replace("VC1-K80", "VC2-K80"), {"plain": (4, 1), "own": (1, 1)}, "pinnedCellId"),
        (PIN.replace("hivedScheduler:", "hivedScheduler:\n  jobPriorityClass: oppo"), {"plain": (1, 1), "own": (1, 1)},
         "pinnedCellId"),
        ("hivedScheduler: {jobPriorityClass: oppo}\n", {"main": (3, 4)}, None),
    ],
)  # fmt: skip
def test_a_job_that_hived_can_never_start_is_refused(
    tmp_path: Path, extras: str, roles: dict[str, tuple[int, int]], at: str | None
) -> None:
    assert codes(checked(tmp_path, extras, **roles)) == ([("job.too-large", "error", at)] if at else [])


def test_a_pod_of_two_needs_a_cell_that_has_them(tmp_path: Path) -> None:
    """vc2 has two pairs of devices: a pod of three or four fits in none, two pods of two do."""
    scheduling = scheduling_of(demo_site(tmp_path))
    assert scheduling is not None
    found = {cells: refusal(scheduling, "vc2", PodGroup(Counter({cells: 1})), opportunistic=False) for cells in (2, 3)}
    assert [bool(why) for why in found.values()] == [False, True]
    assert not refusal(scheduling, "vc2", PodGroup(Counter({2: 2})), opportunistic=False)
    assert refusal(scheduling, "vc2", PodGroup(Counter({2: 3})), opportunistic=False)


def test_a_group_never_spans_two_groups_of_machines(tmp_path: Path) -> None:
    scheduling = scheduling_of(demo_site(tmp_path))
    assert scheduling is not None
    assert not refusal(scheduling, "default", PodGroup(Counter({4: 3})), opportunistic=True)
    assert refusal(scheduling, "default", PodGroup(Counter({4: 4})), opportunistic=True)


def test_the_cells_of_each_virtual_cluster_are_listed(tmp_path: Path) -> None:
    scheduling = scheduling_of(demo_site(tmp_path))
    assert scheduling is not None
    assert list(guaranteed_cells(scheduling)) == [
        "vc1: 1 of 3-K80-NODE.K80-NODE, each 1 machine with 4 K80",
        "vc1: pinned cell VC1-K80, 1 machine with 4 K80",
        "vc2: 2 of 3-K80-NODE.K80-NODE.K80-2GPU, each 2 K80 of one machine",
        "default: 1 of 2-K80-NODE, each 2 machines with 4 K80",
    ]
    assert list(guaranteed_cells(replace(scheduling, block=None))) == []


@pytest.mark.parametrize(("instances", "outcome"), [(4, "fits"), (8, "never")])
def test_simulate_knows_the_cells(tmp_path: Path, instances: int, outcome: str) -> None:
    profile = profile_of(demo_site(tmp_path))
    scheduling = profile.require_scheduling()
    reading = read_job_text(job_text("submitFrom: web\n", main=(instances, 1)), Path("job"))
    assert isinstance(reading.job, Job)
    place = JobPlace(scheduling, scheduling.cluster("vc1"), "prod", JobOwner("alice", "default", "default"))
    request = read_job_request(yaml.safe_dump(objects_of(reading.job, place)[0]))
    usage = usage_of(scheduling, [() for _ in kinds_of("hived")], {})
    assert simulate(profile, backend_of("hived").rules, usage, request).outcome == outcome


def test_generated_cells_count_as_well() -> None:
    """research has 8 devices of all machines, and the machine a100-4 of its own."""
    scheduling = with_backend(pinned(), "hived")
    assert not refusal(scheduling, "research", PodGroup(Counter({8: 1}), pin="a100-4"), opportunistic=False)
    assert refusal(scheduling, "research", PodGroup(Counter({8: 2})), opportunistic=False)


@pytest.mark.parametrize(
    ("parts", "pods", "fits"),
    [({4: 1}, {2: 2}, True), ({2: 2}, {4: 1}, False), ({4: 2}, {3: 2, 1: 2}, True), ({4: 2}, {3: 2, 2: 1}, False),
     ({8: 1, 2: 1}, {2: 5}, True), ({8: 1, 2: 1}, {3: 2, 2: 2}, True), ({}, {1: 1}, False)],
)  # fmt: skip
def test_pods_fit_in_parts(parts: dict[int, int], pods: dict[int, int], *, fits: bool) -> None:
    assert CellPool("room", "K80", Counter(parts)).holds(PodGroup(Counter(pods))) is fits


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "hived"])
def test_options_of_hived_are_a_warning_elsewhere(tmp_path: Path, backend: Any) -> None:
    profile = profile_of(demo_site(tmp_path))
    scheduling = replace(profile.require_scheduling(), backend=backend, block=None)
    reading = read_job_text(job_text(f"{PIN}  lazyPreemptionEnable: true\n", plain=(1, 1), own=(1, 1)), Path("job"))
    found = check_job(reading, profile.model_copy(update={"scheduling": scheduling}), None)
    assert {(code, severity) for code, severity, _ in codes(found)} == {("job.no-effect", "warning")}
    assert {at for *_, at in codes(found)} == {"lazyPreemptionEnable", "pinnedCellId", "affinityGroupName"}
