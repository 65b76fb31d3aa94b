"""Virtual clusters as HiveD's configuration, and what stands around it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from pai_install.scheduling.compile import objects_of, remarks
from pai_install.scheduling.hived import as_yaml, kube_scheduler_config
from pai_install.scheduling.hived_cells import hived_config, shortages
from pai_install.scheduling.model import Scheduling, Supply
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


def test_whole_machines_come_before_single_devices() -> None:
    assert hived_config(two_teams())["virtualClusters"]["product"]["virtualCells"] == [
        {"cellType": "a100-NODE-POOL.a100-NODE", "cellNumber": 1},
        {"cellType": "a100-NODE-POOL.a100-NODE.a100", "cellNumber": 4},
    ]
    told = remarks(with_backend(two_teams(), "hived"))
    assert "product: 4 a100 are no whole machine: a pod there has one" in told


def test_machines_of_ones_own_are_a_pool_of_their_own() -> None:
    config = hived_config(pinned())
    pools = {it["cellType"]: [c["cellAddress"] for c in it["cellChildren"]] for it in physical(config)}
    assert pools == {
        "a100-NODE-POOL": ["a100-1", "a100-2"],
        "a100-NODE-POOL-research": ["a100-4"],
        "a100-NODE-POOL-lab": ["a100-3"],
        "v100-NODE-POOL": ["v100-2"],
        "v100-NODE-POOL-research": ["v100-1"],
    }


def physical(config: dict[str, Any]) -> list[dict[str, Any]]:
    return list(config["physicalCluster"]["physicalCells"])


def test_one_machine_more_renames_nothing() -> None:
    scheduling = two_teams()
    more = replace(scheduling, supply={"a100": gpus("a100", 5)})
    old, new = hived_config(scheduling), hived_config(more)
    assert set(old["physicalCluster"]["cellTypes"]) == set(new["physicalCluster"]["cellTypes"])
    assert old["virtualClusters"] == new["virtualClusters"]


def test_a_pool_that_no_one_has_is_left_out() -> None:
    """HiveD does not start with one."""
    config = hived_config(mixed())
    assert not any("cpu" in it["cellType"] for it in physical(config))
    assert "cpu: no virtual cluster is guaranteed any of it" in "\n".join(remarks(with_backend(mixed(), "hived")))


@pytest.mark.parametrize("case", CASES)
def test_the_written_text_reads_back(case: str) -> None:
    config = hived_config(CASES[case]())
    assert yaml.safe_load(as_yaml(config)) == config


@given(divided_sites(backend="hived"))
@settings(max_examples=80, deadline=None)
def test_what_crashes_hived_is_never_made(scheduling: Scheduling) -> None:
    config = hived_config(scheduling)
    assert shortages(config) == ()
    types = config["physicalCluster"]["cellTypes"]
    pools = [it["cellType"] for it in physical(config)]
    used = {cell["cellType"].split(".")[0] for it in config["virtualClusters"].values() for cell in it["virtualCells"]}
    assert set(pools) == used
    assert len(set(pools)) == len(pools)
    machines = [child["cellAddress"] for it in physical(config) for child in it["cellChildren"]]
    assert len(set(machines)) == len(machines)
    for it in physical(config):
        assert types[it["cellType"]]["childCellNumber"] == len(it["cellChildren"])
    for it in config["virtualClusters"].values():
        for cell in it["virtualCells"]:
            steps = cell["cellType"].split(".")
            assert all(types[parent]["childCellType"] == child for parent, child in pairwise(steps))
            assert cell["cellNumber"] > 0


@given(divided_sites(backend="hived"))
@settings(max_examples=40, deadline=None)
def test_the_cells_of_a_virtual_cluster_are_the_devices_it_is_guaranteed(scheduling: Scheduling) -> None:
    config = hived_config(scheduling)
    for it in scheduling.clusters:
        wanted = sum(part.units for part in it.shares)
        wanted += sum(scheduling.supply[scheduling.sku_of(machine)].units for machine in it.pinned)
        cells = config["virtualClusters"][it.name]["virtualCells"]
        assert sum(leaves(config, cell["cellType"].split(".")[-1]) * cell["cellNumber"] for cell in cells) == wanted


def leaves(config: dict[str, Any], kind: str) -> int:
    types = config["physicalCluster"]["cellTypes"]
    if kind not in types:
        return 1
    return int(types[kind]["childCellNumber"]) * leaves(config, types[kind]["childCellType"])


CELL_TYPES = {
    "N": {"childCellType": "g", "childCellNumber": 4, "isNodeLevel": True},
    "P": {"childCellType": "N", "childCellNumber": 2},
}


def config_of(cells: list[dict[str, Any]], **clusters: dict[str, int]) -> dict[str, Any]:
    virtual = {
        name: {"virtualCells": [{"cellType": path, "cellNumber": number} for path, number in quota.items()]}
        for name, quota in clusters.items()
    }
    return {"physicalCluster": {"cellTypes": CELL_TYPES, "physicalCells": cells}, "virtualClusters": virtual}


POOL = {"cellType": "P", "cellChildren": [{"cellAddress": "a"}, {"cellAddress": "b"}]}


def test_what_fits_is_no_shortage() -> None:
    assert shortages(config_of([POOL], one={"P.N": 1, "P.N.g": 1}, two={"P.N.g": 3})) == ()


def test_more_cells_than_there_are_is_one() -> None:
    (found,) = shortages(config_of([POOL], one={"P.N": 1}, two={"P.N.g": 5}))
    assert found == "P: 5 cells of the type g are given away, and 4 are there"


def test_whole_machines_that_pinned_devices_fragment_are_one() -> None:
    """HiveD compares sums only: it starts, and crashes later."""
    pins = [
        {"cellAddress": name, "cellChildren": [{"cellAddress": "0", "pinnedCellId": f"pin-{name}"}]} for name in "ab"
    ]
    pool = {"cellType": "P", "cellChildren": pins}
    assert shortages(config_of([pool], one={"P.N.g": 6})) == ()
    (found,) = shortages(config_of([pool], one={"P.N": 1}))
    assert found == "P: 1 cells of the type N are given away, and 0 are there"


def test_a_pinned_machine_is_not_given_again() -> None:
    pool = {"cellType": "P", "cellChildren": [{"cellAddress": "a", "pinnedCellId": "mine"}, {"cellAddress": "b"}]}
    assert shortages(config_of([pool], one={"P.N": 1})) == ()
    assert len(shortages(config_of([pool], one={"P.N": 2}))) == 1


def test_a_pool_that_is_given_whole_leaves_nothing_below() -> None:
    assert shortages(config_of([POOL], one={"P": 1})) == ()
    assert len(shortages(config_of([POOL], one={"P": 1}, two={"P.N.g": 1}))) == 1


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
    }
    bound = {it["roleRef"]["name"] for it in objects if it["kind"] == "ClusterRoleBinding"}
    assert bound == {"pai-hived", "system:kube-scheduler", "system:volume-scheduler"}


def test_priorities_are_in_hiveds_order_and_fit_between_openpais_own() -> None:
    objects = objects_of(with_backend(quick_start(), "hived"))
    values = [it["value"] for it in objects if it["kind"] == "PriorityClass"]
    assert values == sorted(values, reverse=True)
    assert all(-(2**31) <= value < 0 for value in values)


def test_jobs_of_lower_priority_use_all_that_is_idle_whatever_is_lent() -> None:
    told = "\n".join(remarks(with_backend(two_teams(), "hived")))
    assert "product: jobs of priority oppo may use all idle a100, also what is not lent" in told
    assert "product: its jobs of priority oppo are not limited to 12 a100 more" in told
    assert "research" not in told


def test_a_machine_of_one_device_has_whole_ones_only() -> None:
    supply = Supply("t4", ("t4-1", "t4-2"), "nvidia.com/gpu", 1, 1000, 2**30)
    config = hived_config(site(supply, clusters=(cluster("default", share(supply, 2)),)))
    assert config["virtualClusters"]["default"]["virtualCells"] == [
        {"cellType": "t4-NODE-POOL.t4-NODE", "cellNumber": 2}
    ]
