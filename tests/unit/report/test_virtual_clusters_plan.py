"""What a change of virtual clusters does, in words and as data."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]

from pai_install.report.virtual_clusters_plan import clusters_change, plan_data, plan_text, schema
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


def test_what_changes_and_whose_jobs_are_touched() -> None:
    change = clusters_change(BEFORE, AFTER, USAGE)
    jsonschema.validate(plan_data(change), schema())
    assert plan_text(change) == (
        "a: a100 shrinks from 16 to 8\n"
        "b: a100 goes with 8\n"
        "c: a100 grows from 0 to 8\n"
        "\n"
        "jobs:\n"
        "  a: its jobs use 4 a100 beyond what it is guaranteed then; "
        "they keep them until the one who is guaranteed them takes them back\n"
        "  b is to go, and its jobs use 4 a100: wait for them, or end them first\n"
        "  b is to go: x/train runs\n"
        "  b is to go: x/later waits\n"
        "  c: not known what its jobs use, as it shares namespaces\n"
    )


def test_nothing_changes() -> None:
    assert plan_text(clusters_change(BEFORE, BEFORE, USAGE)) == "the cluster has these virtual clusters already\n"
    assert plan_text(clusters_change(None, None, None)) == "the cluster has these virtual clusters already\n"


def test_the_first_ones_and_the_last_ones() -> None:
    first = clusters_change(None, AFTER, None)
    jsonschema.validate(plan_data(first), schema())
    assert plan_text(first).startswith("scheduler: none -> kueue\na: a100 appears with 8\n")
    assert plan_text(first).endswith("jobs:\n  none is touched\n")
    last = clusters_change(BEFORE, None, USAGE)
    assert plan_data(last)["scheduler"] == {"before": "kueue", "after": None}
    assert {it["kind"] for it in plan_data(last)["changes"]} == {"goes"}


def test_another_scheduler_is_a_change() -> None:
    assert plan_text(clusters_change(BEFORE, with_backend(BEFORE, "volcano"), USAGE)).startswith(
        "scheduler: kueue -> volcano\n"
    )
