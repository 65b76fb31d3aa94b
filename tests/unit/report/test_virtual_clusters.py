"""Virtual clusters in words and as data."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.json_schema import schema_of
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


def _text(name: str) -> str:
    return virtual_cluster.virtual_cluster_text(virtual_cluster.virtual_cluster_report(SCHEDULING, name))


def test_the_data_fits_its_schema() -> None:
    data = virtual_clusters.virtual_clusters_report(SCHEDULING, ("a remark",)).as_json()
    jsonschema.validate(data, schema_of(virtual_clusters.VirtualClustersReport))
    assert data["topology"] == [{"name": "rack", "label": "example.com/rack"}]
    assert data["supply"][0] == {
        "sku": "a100", "resource": "nvidia.com/gpu", "machines": 2, "units": 16, "pinned": 8, "guaranteed": 8,
        "unassigned": 0, "missing": 0,
    }  # fmt: skip
    for name in "abc":
        report = virtual_cluster.virtual_cluster_report(SCHEDULING, name)
        jsonschema.validate(report.as_json(), schema_of(virtual_cluster.VirtualClusterReport))


def test_the_list(snapshot: SnapshotAssertion) -> None:
    assert (
        virtual_clusters.virtual_clusters_text(virtual_clusters.virtual_clusters_report(SCHEDULING, ("a remark",)))
        == snapshot
    )


def test_one_of_them(snapshot: SnapshotAssertion) -> None:
    assert "guaranteed nothing beside" in _text("c")
    shown = _text("b")
    assert shown == snapshot
    with pytest.raises(KeyError):
        _text("d")
