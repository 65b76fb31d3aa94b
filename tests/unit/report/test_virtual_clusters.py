"""Virtual clusters in words and as data."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]
import pytest

from pai_install.report import virtual_cluster, virtual_clusters
from pai_install.scheduling.model import Level, Scheduling, Share, Supply, VirtualCluster

SUPPLY = {
    "a100": Supply("a100", ("g1", "g2"), "nvidia.com/gpu", 8, 1000, 2**30),
    "epyc": Supply("epyc", ("c1",), "", 30, 1000, 2**30),
}
SCHEDULING = Scheduling(
    "volcano",
    SUPPLY,
    (
        VirtualCluster("a", (Share("a100", 8, 2**33, lend=0, borrow=None, machines=1),), namespaces=("default",)),
        VirtualCluster("b", (Share("epyc", 1, 2**30, lend=1, borrow=0),), pinned=("g2",), groups=("x",)),
        VirtualCluster("c", ()),
    ),
    (Level("rack", "example.com/rack"),),
)


def test_the_data_fits_its_schema() -> None:
    data = virtual_clusters.virtual_clusters_data(SCHEDULING, ("a remark",))
    jsonschema.validate(data, virtual_clusters.schema())
    assert data["topology"] == [{"name": "rack", "label": "example.com/rack"}]
    assert data["supply"][0] == {
        "sku": "a100", "resource": "nvidia.com/gpu", "machines": 2, "units": 16, "pinned": 8, "guaranteed": 8,
        "unassigned": 0, "missing": 0,
    }  # fmt: skip
    for name in "abc":
        jsonschema.validate(virtual_cluster.virtual_cluster_data(SCHEDULING, name), virtual_cluster.schema())


def test_the_list() -> None:
    assert virtual_clusters.virtual_clusters_text(SCHEDULING, ("a remark",)) == (
        "kept by volcano\n\n"
        "NAME  SKU   GUARANTEED             LENDS  BORROWS  PINNED  GROUPS    PRIORITIES\n"
        "a     a100  1 machine (8 devices)  none   all      none    everyone  test to crit\n"
        "b     epyc  1 core                 all    none     g2      x         test to crit\n"
        "c     none                                         none    everyone  test to crit\n"
        "\n"
        "SKU   MACHINES  TOTAL       PINNED  GUARANTEED  UNASSIGNED\n"
        "a100  2         16 devices  8       8           0\n"
        "epyc  1         30 cores    0       1           29\n"
        "\n"
        "of HiveD's block, otherwise here:\n"
        "  a remark\n"
    )


def test_one_of_them() -> None:
    assert "guaranteed nothing beside" in virtual_cluster.virtual_cluster_text(SCHEDULING, "c")
    shown = virtual_cluster.virtual_cluster_text(SCHEDULING, "b")
    assert "  pinned machines: g2 (a100)\n" in shown
    assert "epyc  1 core      all    none\n" in shown
    with pytest.raises(KeyError):
        virtual_cluster.virtual_cluster_text(SCHEDULING, "d")
