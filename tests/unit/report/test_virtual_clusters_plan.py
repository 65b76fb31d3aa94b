"""What a change of virtual clusters does, in words and as data."""

from __future__ import annotations

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
from pai_install.scheduling.usage.model import SeenJob, Use
from tests.virtual_clusters import cluster, gpus, share, site, with_backend

SUPPLY = gpus("a100", 4)
BEFORE = site(SUPPLY, clusters=(cluster("a", share(SUPPLY, 16)), cluster("b", share(SUPPLY, 8)), cluster("c")))
AFTER = site(SUPPLY, clusters=(cluster("a", share(SUPPLY, 8)), cluster("c", share(SUPPLY, 8))))
USAGE = Usage(
    uses={("a", "a100"): Use("a", "a100", 12), ("b", "a100"): Use("b", "a100", 4)},
    lent={},
    jobs=(SeenJob("b", "x/train", waits=False), SeenJob("b", "x/later", waits=True), SeenJob("a", "x/y", waits=False)),
    unknown=frozenset({"c"}),
    unmet=(),
)


def test_what_changes_and_whose_jobs_are_touched(snapshot: SnapshotAssertion) -> None:
    change = clusters_change(BEFORE, AFTER, USAGE)
    jsonschema.validate(clusters_change_report(change).as_json(), schema_of(ClustersChangeReport))
    assert plan_text(change) == snapshot


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
