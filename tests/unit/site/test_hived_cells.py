"""HiveD's cells: chains of types, ways down, numbers of devices, and what is left beside pinned cells."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.site.hived_cells import Chain, chain_of, chains_of, tops, virtual_path
from pai_install.site.rules.scheduling.hived_capacity import Room
from pai_install.site.services.hived import HivedConfig

TYPES = {
    "SOCKET": {"childCellType": "GPU", "childCellNumber": 2},
    "NODE": {"childCellType": "SOCKET", "childCellNumber": 2, "isNodeLevel": True},
    "RACK": {"childCellType": "NODE", "childCellNumber": 3},
}
RACK = Chain(("RACK", "NODE", "SOCKET", "GPU"), (3, 2, 2), 1)


def config(*cells: dict[str, Any], types: dict[str, Any] | None = None) -> HivedConfig:
    """A block with these cells at the top."""
    cluster = {"cellTypes": types or TYPES, "physicalCells": list(cells)}
    return HivedConfig.model_validate({"physicalCluster": cluster, "virtualClusters": {}})


def rack(*children: dict[str, Any]) -> HivedConfig:
    """One rack with these cells in it."""
    return config({"cellType": "RACK", "cellChildren": list(children)})


def test_a_chain_goes_down_to_the_device() -> None:
    types = rack().physical_cluster.cell_types
    assert chain_of(types, "RACK") == RACK
    assert (RACK.leaves(0), RACK.leaves(2), RACK.machines(0), RACK.machines(1)) == (12, 2, 3, 1)
    assert (RACK.top, RACK.leaf) == ("RACK", "GPU")


@pytest.mark.parametrize("change", [{"childCellNumber": 0}, {"childCellType": "RACK"}, {"childCellType": None}])
def test_a_type_that_is_not_whole_has_no_chain(change: dict[str, Any]) -> None:
    types = config(types={**TYPES, "SOCKET": {**TYPES["SOCKET"], **change}}).physical_cluster.cell_types
    assert chain_of(types, "RACK") is None


def test_a_way_down() -> None:
    chains = {"RACK": RACK}
    found = {
        way: virtual_path(chains, way)
        for way in ("RACK", "RACK.NODE.SOCKET", "RACK.GPU", "RACK.SOCKET.NODE", "NODE", "RACK.X")
    }
    assert {way: (one.depth, one.whole) if one else None for way, one in found.items()} == {
        "RACK": (0, True), "RACK.NODE.SOCKET": (2, True), "RACK.GPU": (3, False), "RACK.SOCKET.NODE": None,
        "NODE": None, "RACK.X": None,
    }  # fmt: skip


def test_devices_are_numbered_within_their_machine() -> None:
    block = rack(
        {"cellAddress": "a"},
        {"cellAddress": "b", "cellChildren": [{}, {}]},
        {
            "cellAddress": "c",
            "cellChildren": [{"cellChildren": [{}, {"cellAddress": "7"}]}, {"cellChildren": [{}, {}]}],
        },
    )
    [top] = tops(block)
    numbers = {node.node: [number for number, _ in node.leaf_numbers()] for node in top.nodes()}
    assert numbers == {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3], "c": [0, 7, 2, 3]}


def left(block: HivedConfig, needed: dict[int, int], without: frozenset[str] = frozenset()) -> list[int]:
    """What is free at every level."""
    chain = chains_of(block)["RACK"]
    return [count for _, count in Room(chain, tops(block), without).left(needed)]


NAMES = [{"cellAddress": name} for name in "abc"]


def test_what_is_left_goes_down_by_what_cells_are_made_of() -> None:
    assert left(rack(*NAMES), {}) == [1, 3, 6, 12]
    assert left(rack(*NAMES), {1: 1, 2: 1}) == [1, 3, 4, 6]
    assert left(rack(*NAMES), {0: 1}) == [1, 0, 0, 0]


def test_a_pinned_device_takes_its_machine_apart() -> None:
    pinned = {"cellAddress": "a", "cellChildren": [{"pinnedCellId": "p"}, {}]}
    assert left(rack(pinned, *NAMES[1:]), {}) == [0, 2, 5, 10]


def test_a_machine_that_is_not_there_is_taken_out() -> None:
    assert left(rack(*NAMES), {}, frozenset("b")) == [0, 2, 4, 8]


def test_cells_that_are_not_written_are_not_there() -> None:
    assert left(rack(*NAMES[:2]), {}) == [1, 2, 4, 8]
    assert left(rack(*NAMES[:2]), {0: 1}) == [1, 0, 0, 0]
