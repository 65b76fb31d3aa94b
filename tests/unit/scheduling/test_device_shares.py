"""What devices come with, where a limit of requests is needed, and that jobs of pai-install stay within it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.jobs.model import Job, Resources
from pai_install.jobs.place import JobOwner, JobPlace
from pai_install.schedulers.jobs import objects_of
from pai_install.schedulers.last_applied import kept_object, kept_of
from pai_install.scheduling.device_shares import ShareRules, admission_rules, is_within, share_rules
from pai_install.scheduling.job_queue import cell_type_of, cells_of, hived_spec
from pai_install.scheduling.model import BACKENDS, Backend, Scheduling
from tests.unit.jobs.examples import role
from tests.virtual_clusters import cluster, cores, gpus, mixed, quick_start, share, site, with_backend

GIBIBYTE = 2**30
LARGE, SMALL, PLAIN = gpus("a100", 2), replace(gpus("v100", 2, 4), cpu_millis=5000), cores("cpu", 2)


def several(backend: Backend) -> Scheduling:
    shares = share(LARGE, 16), share(SMALL, 8), share(PLAIN, 57)
    return with_backend(site(LARGE, SMALL, PLAIN, clusters=(cluster("default", *shares),)), backend)


def rules_of(scheduling: Scheduling) -> ShareRules:
    found = share_rules(scheduling)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("backend", "one_type", "several_types"),
    [("kueue", False, False), ("volcano", False, True), ("hived", True, True), ("default", True, True)],
)
def test_sites_with_a_limit(backend: Backend, *, one_type: bool, several_types: bool) -> None:
    """A queue of Volcano counts cores, but those of all machine types together."""
    assert (share_rules(with_backend(quick_start(), backend)) is not None) == one_type
    assert (share_rules(several(backend)) is not None) == several_types


def test_a_site_without_virtual_clusters_has_none() -> None:
    assert share_rules(None) is None


def test_machines_without_devices_have_cells_alone() -> None:
    assert [one.name for one in rules_of(several("default")).shares] == ["a100", "v100"]
    assert [one.name for one in rules_of(several("hived")).shares] == ["a100", "v100", "cpu"]
    assert share_rules(replace(several("default"), supply={"cpu": PLAIN})) is None


def test_names_of_cells_are_those_of_hived() -> None:
    odd = replace(gpus("a.b/c", 1), sku="a.b/c")
    made = with_backend(site(odd, clusters=(cluster("default", share(odd, 8)),)), "hived")
    assert [one.name for one in rules_of(made).shares] == ["a-b-c"]


@pytest.mark.parametrize(("percent", "millis"), [(None, 11_700), (100, 11_700), (150, 17_550), (10_000, 1_170_000)])
def test_the_setting_widens_the_share(percent: int | None, millis: int) -> None:
    found = rules_of(replace(with_backend(quick_start(), "default"), device_share=percent))
    assert found.shares[0].cpu_millis == millis


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_setting_removes_the_limit(backend: Backend) -> None:
    assert share_rules(replace(several(backend), device_share=0)) is None


def test_a_device_comes_with_a_core_at_least() -> None:
    few = replace(LARGE, cpu_millis=112)
    made = with_backend(site(few, clusters=(cluster("default", share(few, 16)),)), "default")
    assert rules_of(made).shares[0].cpu_millis == 1000


@pytest.mark.parametrize(
    ("units", "cores_", "memory", "within"),
    [
        (0, 0, 0, True),
        (0, 1, 0, False),
        (1, 11, 115, True),
        (1, 12, 1, False),
        (1, 1, 116, False),
        (3, 35, 345, True),
        (4, 47, 1, False),
        (7, 82, 1, False),
        (8, 1000, 10_000, True),
    ],
)
def test_within_the_share(units: int, cores_: int, memory: int, *, within: bool) -> None:
    """All devices of the largest machine have all of it. Half of its devices are all of a smaller one's."""
    shares = rules_of(several("default")).by_vendor["nvidia.com/"]
    assert is_within(shares, units, cores_ * 1000, memory * GIBIBYTE) == within


def test_cores_and_memory_are_of_one_machine_type() -> None:
    fast = replace(SMALL, cpu_millis=20_000, memory_bytes=GIBIBYTE)
    shares = rules_of(replace(several("default"), supply={"a100": LARGE, "v100": fast})).by_vendor["nvidia.com/"]
    assert is_within(shares, 1, 20_000, GIBIBYTE)
    assert is_within(shares, 1, 11_000, 115 * GIBIBYTE)
    assert not is_within(shares, 1, 20_000, 115 * GIBIBYTE)


@pytest.mark.parametrize("percent", [None, 0, 250])
def test_the_cluster_keeps_the_setting(percent: int | None) -> None:
    made = replace(mixed(), device_share=percent)
    assert kept_of(kept_object(made)) == made
    assert ("device_share" in kept_object(made)["data"]["virtual-clusters.json"]) == (percent is not None)


def test_the_message_names_few_types() -> None:
    many = {f"t{number}": replace(LARGE, sku=f"t{number}") for number in range(30)}
    (rule,) = admission_rules(rules_of(replace(several("default"), supply=many)))
    assert "t7 " in rule.says
    assert "t8 " not in rule.says
    assert "and 22 more types" in rule.says


@given(
    cpu=st.integers(1, 90),
    memory=st.integers(1, 900 * 1024),
    devices=st.integers(0, 8),
    sku=st.sampled_from([None, "a100", "v100"]),
    supply=st.sampled_from([(LARGE,), (LARGE, SMALL), (LARGE, SMALL, PLAIN)]),
)
def test_a_job_of_openpai_holds_cells_for_what_it_requests(
    cpu: int, memory: int, devices: int, sku: str | None, supply: tuple[object, ...]
) -> None:
    scheduling = several("hived")
    kept = {it: one for it, one in scheduling.supply.items() if one in supply}
    shares = tuple(one for one in scheduling.clusters[0].shares if one.sku in kept)
    scheduling = replace(scheduling, supply=kept, clusters=(replace(scheduling.clusters[0], shares=shares),))
    named = sku if sku in kept and devices else None
    job = Job("any", (replace(role("main"), resources=Resources(cpu, memory, devices, sku=named, shm_mb=1)),))
    place = JobPlace(scheduling, scheduling.clusters[0], "test", JobOwner("a", "default", "default"))
    made = objects_of(job, place)[0]
    template = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    spec = hived_spec(template)
    for candidates in rules_of(scheduling).candidates(cell_type_of(spec), ""):
        assert is_within(candidates, cells_of(spec), cpu * 1000, memory * 2**20), spec
