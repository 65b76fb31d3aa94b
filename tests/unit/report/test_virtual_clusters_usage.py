"""The usage of virtual clusters in words and as data."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]
from syrupy.assertion import SnapshotAssertion

from pai_install.json_schema import schema_of
from pai_install.report.virtual_clusters_usage import QuotaUsageReport, quota_usage_report, quota_usage_text
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.usage.health import Lack, Unmet
from pai_install.scheduling.usage.model import UnfinishedJob, Use
from tests.virtual_clusters import cluster, gpus, share, site

SUPPLY = gpus("a100", 4)
SITE = site(SUPPLY, clusters=(cluster("a", share(SUPPLY, 16)), cluster("b", share(SUPPLY, 8)), cluster("c")))
USAGE = Usage(
    uses={("a", "a100"): Use("a", "a100", 4), ("b", "a100"): Use("b", "a100", 18, borrowed=10)},
    lent={("a", "a100"): 2},
    jobs=(
        UnfinishedJob("a", "x/runs", waits=False, units={"nvidia.com/gpu": 4}),
        UnfinishedJob("a", "x/waits", waits=True, units={"nvidia.com/gpu": 8}),
        UnfinishedJob("a", "x/too", waits=True, units={"": 2}),
    ),
    unknown=frozenset(),
    unmet=(Unmet("a100", ("a", "b"), 1, (Lack("a100-1", 8, "is cordoned"),)),),
)


def test_the_tables(snapshot: SnapshotAssertion) -> None:
    assert quota_usage_text(quota_usage_report(SITE, USAGE)) == snapshot


def test_one_of_them(snapshot: SnapshotAssertion) -> None:
    assert quota_usage_text(quota_usage_report(SITE, USAGE, "c")) == snapshot
    assert [row.name for row in quota_usage_report(SITE, USAGE, "b").virtual_clusters] == ["b"]


def test_the_data_fits_its_schema() -> None:
    data = quota_usage_report(SITE, USAGE).as_json()
    jsonschema.validate(data, schema_of(QuotaUsageReport))
    assert data["virtual_clusters"][0]["running"] == 1
    assert data["unmet"][0]["machines"] == [{"machine": "a100-1", "units": 8, "why": "is cordoned"}]


def test_what_cannot_be_told_is_not_made_up() -> None:
    usage = Usage({}, {}, (), frozenset({"a", "b"}), ())
    data = quota_usage_report(SITE, usage).as_json()
    jsonschema.validate(data, schema_of(QuotaUsageReport))
    [quota] = data["virtual_clusters"][0]["quota"]
    assert (quota["used"], quota["lent"], quota["borrowed"]) == (None, None, None)
    assert data["supply"][0]["used"] is None
    shown = quota_usage_text(quota_usage_report(SITE, usage))
    assert "a     a100  16          ?     ?     ?         ?\n" in shown
    assert shown.endswith("not known for a, b: they share namespaces, and their pods name no virtual cluster\n")
