"""Virtual clusters as HiveD's configuration, and what stands around it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from syrupy.assertion import SnapshotAssertion

from pai_install.schedulers.compile import objects_of, remarks
from pai_install.schedulers.hived.cells import hived_config
from pai_install.schedulers.hived.compile import as_yaml, kube_scheduler_config
from pai_install.schedulers.last_applied import kept_object, kept_of
from pai_install.scheduling.model import Scheduling, Supply
from pai_install.scheduling.read import scheduling_of
from tests.hived_demo import BLOCK, content, demo_site
from tests.unit.scheduling.sites import divided_sites
from tests.virtual_clusters import (
    CASES,
    cluster,
    gpus,
    mixed,
    pinned,
    quick_start,
    share,
    site,
    two_teams,
    with_backend,
)


def test_a_quick_start_has_the_names_of_openpais_generator() -> None:
    config = hived_config(quick_start())
    assert config["physicalCluster"]["cellTypes"] == {
        "DT-NODE": {"childCellType": "DT", "childCellNumber": 4, "isNodeLevel": True},
        "DT-NODE-POOL": {"childCellType": "DT-NODE", "childCellNumber": 2},
    }
    assert config["physicalCluster"]["skuTypes"] == {"DT": {"gpu": 1, "cpu": 11, "memory": "117760Mi"}}
    cells = [{"cellType": "DT-NODE-POOL.DT-NODE", "cellNumber": 2}]
    assert config["virtualClusters"] == {"default": {"virtualCells": cells}}


def test_whole_machines_come_before_single_devices(snapshot: SnapshotAssertion) -> None:
    assert hived_config(two_teams())["virtualClusters"]["product"]["virtualCells"] == [
        {"cellType": "a100-NODE-POOL.a100-NODE", "cellNumber": 1},
        {"cellType": "a100-NODE-POOL.a100-NODE.a100", "cellNumber": 4},
    ]
    told = remarks(with_backend(two_teams(), "hived"))
    assert told == snapshot


def test_machines_of_ones_own_are_pinned_cells_with_their_names(snapshot: SnapshotAssertion) -> None:
    config = hived_config(pinned())
    cells = {it["cellType"]: it["cellChildren"] for it in physical(config)}
    assert cells["a100-NODE-POOL"] == [
        {"cellAddress": "a100-1"},
        {"cellAddress": "a100-2"},
        {"cellAddress": "a100-3", "pinnedCellId": "a100-3"},
        {"cellAddress": "a100-4", "pinnedCellId": "a100-4"},
    ]
    assert config["virtualClusters"]["lab"] == {"virtualCells": [], "pinnedCells": [{"pinnedCellId": "a100-3"}]}
    told = remarks(with_backend(pinned(), "hived"))
    assert told == snapshot


def physical(config: dict[str, Any]) -> list[dict[str, Any]]:
    return list(config["physicalCluster"]["physicalCells"])


def test_one_machine_more_renames_nothing() -> None:
    scheduling = two_teams()
    more = replace(scheduling, supply={"a100": gpus("a100", 5)})
    old, new = hived_config(scheduling), hived_config(more)
    assert set(old["physicalCluster"]["cellTypes"]) == set(new["physicalCluster"]["cellTypes"])
    assert old["virtualClusters"] == new["virtualClusters"]


def test_a_chain_that_no_one_has_is_attached_to_someone(snapshot: SnapshotAssertion) -> None:
    """HiveD does not start with one that is in no virtual cluster."""
    cells = hived_config(mixed())["virtualClusters"]["default"]["virtualCells"]
    assert cells[-1] == {"cellType": "cpu-NODE-POOL.cpu-NODE", "cellNumber": 0}
    assert "\n".join(remarks(with_backend(mixed(), "hived"))) == snapshot


def test_a_chain_of_pinned_machines_only_is_attached_too() -> None:
    supply = gpus("a100", 1)
    config = hived_config(site(supply, clusters=(cluster("team"), cluster("lab", pinned=("a100-1",)))))
    (cell,) = config["virtualClusters"]["team"]["virtualCells"]
    assert cell["cellNumber"] == 0


def test_guaranteed_machines_that_are_absent_are_cells_without_a_node() -> None:
    """HiveD does not start when more is guaranteed than there is; cells of nodes that it does not know are broken."""
    supply = gpus("a100", 1)
    config = hived_config(site(supply, clusters=(cluster("a", share(supply, 20)), cluster("b", share(supply, 4)))))
    (pool,) = physical(config)
    assert [it["cellAddress"] for it in pool["cellChildren"]] == ["a100-1", "absent-1", "absent-2"]
    assert config["physicalCluster"]["cellTypes"]["a100-NODE-POOL"]["childCellNumber"] == 3


def test_hived_gets_the_block_as_it_is_written(tmp_path: Path) -> None:
    scheduling = scheduling_of(demo_site(tmp_path))
    assert scheduling is not None
    (written,) = (it["data"] for it in objects_of(scheduling) if it["metadata"]["name"] == "hivedscheduler")
    found = yaml.safe_load(written["hivedscheduler.yaml"])
    ours = {"kubeApiServerAddress", "forcePodBindThreshold"}
    expected = {key: value for key, value in content().items() if key not in ours}
    assert {key: found[key] for key in expected} == expected
    assert list(found["physicalCluster"]["cellTypes"]) == list(expected["physicalCluster"]["cellTypes"])
    own = {"webServerAddress", "waitingPodSchedulingBlockMilliSec", "forcePodBindThreshold"}
    assert found.keys() - expected.keys() == own
    # HiveD binds no pod by itself: it would bind to nodes that refuse the pod
    assert found["forcePodBindThreshold"] == 2**31 - 1


def test_names_of_cells_that_look_like_numbers_stay_text(tmp_path: Path) -> None:
    block = BLOCK.replace("VC1-K80", "1.10")
    scheduling = scheduling_of(demo_site(tmp_path, block))
    assert scheduling is not None
    first, _ = physical(yaml.safe_load(as_yaml(hived_config(scheduling))))
    assert first["cellChildren"][1] == {"cellAddress": "w2", "pinnedCellId": "1.10"}


def test_what_was_applied_last_keeps_the_block(tmp_path: Path) -> None:
    scheduling = scheduling_of(demo_site(tmp_path))
    assert scheduling is not None
    assert kept_of(kept_object(scheduling)) == scheduling


def test_a_dot_in_a_name_does_not_divide_types() -> None:
    supply, other = gpus("a.100", 1), gpus("a-100", 1)
    config = hived_config(site(supply, other, clusters=(cluster("a", share(supply, 8), share(other, 8)),)))
    paths = [it["cellType"] for it in config["virtualClusters"]["a"]["virtualCells"]]
    assert paths == ["a-100-NODE-POOL.a-100-NODE", "a-100--NODE-POOL.a-100--NODE"]


@pytest.mark.parametrize("case", CASES)
def test_the_written_text_reads_back(case: str) -> None:
    config = hived_config(CASES[case]())
    assert yaml.safe_load(as_yaml(config)) == config


@given(divided_sites(backend="hived"))
@settings(max_examples=80, deadline=None)
def test_what_crashes_hived_is_never_made(scheduling: Scheduling) -> None:
    config = hived_config(scheduling)
    types = config["physicalCluster"]["cellTypes"]
    pools = [it["cellType"] for it in physical(config)]
    used = {cell["cellType"].split(".")[0] for it in config["virtualClusters"].values() for cell in it["virtualCells"]}
    assert set(pools) == used
    assert len(set(pools)) == len(pools)
    machines = [child["cellAddress"] for it in physical(config) for child in it["cellChildren"]]
    assert len(set(machines)) == len(machines)
    pins = [pin["pinnedCellId"] for it in config["virtualClusters"].values() for pin in it.get("pinnedCells", [])]
    assert sorted(pins) == sorted(scheduling.pinned)
    assert all(fits(config, it) for it in physical(config))
    for it in physical(config):
        assert types[it["cellType"]]["childCellNumber"] == len(it["cellChildren"])
    for it in config["virtualClusters"].values():
        for cell in it["virtualCells"]:
            steps = cell["cellType"].split(".")
            assert all(types[parent]["childCellType"] == child for parent, child in pairwise(steps))
            assert cell["cellNumber"] >= 0


def fits(config: dict[str, Any], pool: dict[str, Any]) -> bool:
    """Whether the whole machines and single devices that are given away are there beside what is pinned."""
    units = config["physicalCluster"]["cellTypes"][f"{pool['cellType'].removesuffix('-POOL')}"]["childCellNumber"]
    given_away = {2: 0, 3: 0}
    for it in config["virtualClusters"].values():
        for cell in it["virtualCells"]:
            steps = cell["cellType"].split(".")
            if steps[0] == pool["cellType"]:
                given_away[len(steps)] += cell["cellNumber"]
    free = sum("pinnedCellId" not in machine for machine in pool["cellChildren"])
    return bool(given_away[3] <= (free - given_away[2]) * units and given_away[2] <= free)


@given(divided_sites(backend="hived"))
@settings(max_examples=40, deadline=None)
def test_the_cells_of_a_virtual_cluster_are_the_devices_it_is_guaranteed(scheduling: Scheduling) -> None:
    config = hived_config(scheduling)
    for it in scheduling.clusters:
        wanted = sum(part.units for part in it.shares)
        cells = config["virtualClusters"][it.name]["virtualCells"]
        assert sum(leaves(config, cell["cellType"].split(".")[-1]) * cell["cellNumber"] for cell in cells) == wanted


def leaves(config: dict[str, Any], kind: str) -> int:
    types = config["physicalCluster"]["cellTypes"]
    if kind not in types:
        return 1
    return int(types[kind]["childCellNumber"]) * leaves(config, types[kind]["childCellType"])


def test_each_virtual_cluster_has_a_profile_and_pods_ask_hived_over_the_bridge() -> None:
    config = kube_scheduler_config(two_teams())
    names = [it["schedulerName"] for it in config["profiles"]]
    assert names == ["hivedscheduler-ds-research", "hivedscheduler-ds-product"]
    assert config["percentageOfNodesToScore"] == 100
    (extender,) = config["extenders"]
    assert extender["urlPrefix"].startswith("http://127.0.0.1:")
    assert extender["managedResources"][0]["ignoredByScheduler"] is True


def test_no_right_is_more_than_was_seen_to_be_used() -> None:
    objects = objects_of(with_backend(quick_start(), "hived"))
    (role,) = [it for it in objects if it["kind"] == "ClusterRole"]
    rights = {(resource, verb) for it in role["rules"] for resource in it["resources"] for verb in it["verbs"]}
    assert rights == {
        *((resource, verb) for resource in ("nodes", "pods") for verb in ("get", "list", "watch")),
        ("pods/binding", "create"),
        ("pods", "delete"),
        ("pods/status", "patch"),
    }
    bound = {it["roleRef"]["name"] for it in objects if it["kind"] == "ClusterRoleBinding"}
    assert bound == {"pai-hived", "system:kube-scheduler", "system:volume-scheduler"}


def test_both_configurations_are_what_the_pod_mounts() -> None:
    objects = objects_of(with_backend(two_teams(), "hived"))
    maps = {it["metadata"]["name"]: it["data"] for it in objects if it["kind"] == "ConfigMap"}
    assert yaml.safe_load(maps["hivedscheduler"]["hivedscheduler.yaml"]) == hived_config(two_teams())
    assert yaml.safe_load(maps["kube-scheduler"]["config.yaml"]) == kube_scheduler_config(two_teams())


def test_priorities_are_in_hiveds_order_and_fit_between_openpais_own() -> None:
    objects = objects_of(with_backend(quick_start(), "hived"))
    values = [it["value"] for it in objects if it["kind"] == "PriorityClass"]
    assert values == sorted(values, reverse=True)
    assert all(-(2**31) <= value < 0 for value in values)


def test_jobs_of_lower_priority_use_all_that_is_idle_whatever_is_lent(snapshot: SnapshotAssertion) -> None:
    told = "\n".join(remarks(with_backend(two_teams(), "hived")))
    assert told == snapshot
    assert "research" not in told


def test_a_machine_of_one_device_has_whole_ones_only() -> None:
    supply = Supply("t4", ("t4-1", "t4-2"), "nvidia.com/gpu", 1, 1000, 2**30)
    config = hived_config(site(supply, clusters=(cluster("default", share(supply, 2)),)))
    assert config["virtualClusters"]["default"]["virtualCells"] == [
        {"cellType": "t4-NODE-POOL.t4-NODE", "cellNumber": 2}
    ]
