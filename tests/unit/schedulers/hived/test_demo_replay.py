"""A recorded run of HiveD's demo in the lab: HiveD still gets the same, and its answers are those that we foretell.

`PAI_HIVED=PROGRAM PAI_RECORD=tests/golden/hived/demo.json pytest tests/e2e/test_hived_demo.py` records it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.jobs.model import Job
from pai_install.jobs.place import JobOwner, JobPlace
from pai_install.jobs.read import read_job_text
from pai_install.profile.project import profile_of
from pai_install.schedulers.hived.cells import hived_config
from pai_install.schedulers.job_check import check_job
from pai_install.schedulers.jobs import objects_of
from pai_install.site.load import load_site
from pai_install.site.model import Site
from tests.hived_scenarios import GROUP, MACHINES, services_of
from tests.unit.site.sites import write_site

RECORDED = Path(__file__).parents[3] / "golden" / "hived" / "demo.json"
SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
SCENARIOS: dict[str, list[dict[str, Any]]] = json.loads(RECORDED.read_text())
LAYOUT = (
    "machine-sku:\n"
    "  master: {mem: 4Gi, cpu: {vcore: 4}}\n"
    "  lab-gpu: {mem: 16Gi, cpu: {vcore: 16}, computing-device: {type: nvidia.com/gpu, model: K80, count: 4}}\n"
    "machine-list:\n"
    '  - {hostname: m, hostip: 10.0.0.1, machine-type: master, pai-master: "true"}\n'
) + "".join(
    f'  - {{hostname: {name}, hostip: 10.0.1.{number}, machine-type: lab-gpu, pai-worker: "true"}}\n'
    for number, name in enumerate(MACHINES, 1)
)


def steps(events: list[dict[str, Any]], folder: Path) -> Iterator[tuple[Site, dict[str, Any]]]:
    """Each event with the site of its moment."""
    for number, event in enumerate(events):
        if "use" in event:
            services, place = services_of(event["use"]), folder / str(number)
            site = load_site(write_site(place, layout=LAYOUT, services=services)).site
        yield site, event


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_hived_gets_the_same_as_in_the_recorded_run(name: str, tmp_path: Path) -> None:
    for site, event in steps(SCENARIOS[name], tmp_path):
        profile = profile_of(site)
        scheduling = profile.require_scheduling()
        if "use" in event:
            block = yaml.safe_load(event["use"])
            assert hived_config(scheduling)["virtualClusters"] == block["virtualClusters"]
            assert (
                hived_config(scheduling)["physicalCluster"]["physicalCells"]
                == block["physicalCluster"]["physicalCells"]
            )
        if "submit" not in event:
            continue
        read = read_job_text(event["submit"], tmp_path / "job.yaml")
        reading = check_job(read, profile, GROUP)
        assert (reading.job is None) == bool(event["refused"]), reading.problems
        if event["refused"]:
            continue
        assert isinstance(reading.job, Job)
        cluster = scheduling.cluster(reading.job.virtual_cluster or "")
        place = JobPlace(scheduling, cluster, reading.job.priority or "test", JobOwner("alice", GROUP, GROUP))
        jobs = objects_of(reading.job, place)[0]["spec"]["replicatedJobs"]
        specs = {one["name"]: one["template"]["spec"]["template"]["metadata"]["annotations"][SPEC] for one in jobs}
        for pod, spec in event["specs"].items():
            assert yaml.safe_load(specs[pod.rpartition("-")[0]]) == yaml.safe_load(spec)


def placed(event: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Machine and device of each placed pod."""
    for places in event.get("runs", {}).values():
        for machine, devices in places.values():
            yield from ((machine, device) for device in devices.split(","))


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_no_device_was_given_twice(name: str) -> None:
    for event in SCENARIOS[name]:
        found = list(placed(event))
        assert len(found) == len({*found}), event


def test_recorded_scenarios_are_those_of_the_lab() -> None:
    text = (Path(__file__).parents[3] / "e2e" / "test_hived_demo.py").read_text()
    tests = {line.split("(")[0].removeprefix("def ") for line in text.splitlines() if line.startswith("def test_")}
    assert {name.partition("[")[0] for name in SCENARIOS} == tests
