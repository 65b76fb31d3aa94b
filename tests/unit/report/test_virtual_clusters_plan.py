"""What a change of virtual clusters does, in words and as data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
from syrupy.assertion import SnapshotAssertion

from pai_install.json_schema import schema_of
from pai_install.report.virtual_clusters_plan import (
    ClustersChangeReport,
    clusters_change,
    clusters_change_report,
    plan_text,
)
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.read import scheduling_of
from pai_install.scheduling.usage.model import UnfinishedJob, Use
from tests.hived_demo import BLOCK, demo_site
from tests.virtual_clusters import cluster, gpus, share, site, with_backend

SUPPLY = gpus("a100", 4)
BEFORE = site(SUPPLY, clusters=(cluster("a", share(SUPPLY, 16)), cluster("b", share(SUPPLY, 8)), cluster("c")))
AFTER = site(SUPPLY, clusters=(cluster("a", share(SUPPLY, 8)), cluster("c", share(SUPPLY, 8))))
USAGE = Usage(
    uses={("a", "a100"): Use("a", "a100", 12), ("b", "a100"): Use("b", "a100", 4)},
    lent={},
    jobs=(
        UnfinishedJob("b", "x/train", waits=False),
        UnfinishedJob("b", "x/later", waits=True),
        UnfinishedJob("a", "x/y", waits=False),
    ),
    unknown=frozenset({"c"}),
    unmet=(),
)


def test_what_changes_and_whose_jobs_are_touched(snapshot: SnapshotAssertion) -> None:
    change = clusters_change(BEFORE, AFTER, USAGE)
    jsonschema.validate(clusters_change_report(change).as_json(), schema_of(ClustersChangeReport))
    assert plan_text(change) == snapshot


def test_running_jobs_that_lose_their_guarantee_are_named() -> None:
    jobs = (
        UnfinishedJob("a", "x/runs", waits=False, units={"nvidia.com/gpu": 12}),
        UnfinishedJob("a", "x/waits", waits=True, units={"nvidia.com/gpu": 1}),
        UnfinishedJob("a", "x/cores", waits=False, units={"": 1}),
        UnfinishedJob("c", "x/grows", waits=False, units={"nvidia.com/gpu": 1}),
    )
    change = clusters_change(BEFORE, AFTER, replace(USAGE, jobs=jobs))
    assert [it.job for it in clusters_change_report(change).evictable] == ["x/runs"]
    assert "x/runs may be evicted" in plan_text(change)


def test_jobs_on_cells_of_other_names_are_named(tmp_path: Path) -> None:
    """HiveD finds the cells of a running job by the names of their types."""
    block = scheduling_of(demo_site(tmp_path))
    assert block is not None
    usage = Usage(
        {},
        {},
        (UnfinishedJob("vc1", "x/one", waits=False), UnfinishedJob("vc1", "x/later", waits=True)),
        frozenset(),
        (),
    )
    for before, named in ((block, []), (replace(block, block=None), ["x/one"])):
        change = clusters_change(before, block, usage)
        assert [it.job for it in clusters_change_report(change).evictable] == named
        assert ("x/one may be evicted" in plan_text(change)) == bool(named)
    other = scheduling_of(demo_site(tmp_path, BLOCK.replace("VC1-K80", "OTHER")))
    assert [it.name for it in clusters_change(block, other, usage).evictable] == ["x/one"]


def test_nothing_changes(snapshot: SnapshotAssertion) -> None:
    assert plan_text(clusters_change(BEFORE, BEFORE, USAGE)) == snapshot
    assert plan_text(clusters_change(None, None, None)) == snapshot


def test_the_first_ones_and_the_last_ones() -> None:
    first = clusters_change(None, AFTER, None)
    jsonschema.validate(clusters_change_report(first).as_json(), schema_of(ClustersChangeReport))
    assert plan_text(first).startswith("scheduler: none -> kueue\na: a100 appears with 8\n")
    assert plan_text(first).endswith("jobs:\n  none is touched\n")
    last = clusters_change(BEFORE, None, USAGE)
    assert clusters_change_report(last).scheduler.model_dump() == {"before": "kueue", "after": None}
    assert {it.kind for it in clusters_change_report(last).changes} == {"goes"}


def test_another_scheduler_is_a_change() -> None:
    assert plan_text(clusters_change(BEFORE, with_backend(BEFORE, "volcano"), USAGE)).startswith(
        "scheduler: kueue -> volcano\n"
    )
