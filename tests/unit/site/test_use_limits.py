"""When jobs have their GPUs for nothing, as services-configuration.yaml says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.site.load import load_site, read_site
from pai_install.site.use_limits import UseLimit, acts_of, all_limits, limits_of

from .sites import write_site

KUEUE = "scheduler: {type: kueue}\n"


def test_nothing_is_done_unless_the_site_says_so(tmp_path: Path) -> None:
    site = load_site(write_site(tmp_path, services=KUEUE)).site
    assert acts_of(site) == frozenset()
    assert limits_of(site, "any").all == (
        UseLimit("idle", 10, 3600, "list", 1800),
        UseLimit("notebook", 10, 28800, "list", 1800),
        UseLimit("long", 0, 5 * 86400, "list", 86400),
    )


def test_a_virtual_clusters_keys_count_before_the_sites(tmp_path: Path) -> None:
    services = (
        f"{KUEUE}jobs: {{idle: {{busy-below: 20, after: 2h, then: warn}}, long: {{after: 9d}}}}\n"
        "virtual-clusters:\n"
        "  - {name: a, idle: {then: stop, grace: 10m}, notebooks: {then: preemptible}}\n"
        "  - name: b\n"
    )
    site = load_site(write_site(tmp_path, services=services)).site
    found = all_limits(site)
    assert set(found) == {"", "a", "b"}
    assert found["a"].idle == UseLimit("idle", 20, 7200, "stop", 600)
    assert found["b"] == found[""] == limits_of(site, "unlisted")
    assert found["b"].idle == UseLimit("idle", 20, 7200, "warn", 1800)
    assert found["a"].long.after_s == 9 * 86400
    assert acts_of(site) == {"warn", "stop", "preemptible"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("idle: {busy-below: 0}", "2:15 0 is not from 1 to 50; write percent of the time, from 1 to 50"),
        ("idle: {busy-below: 51}", "2:15 51 is not from 1 to 50; write percent of the time, from 1 to 50"),
        ("idle: {after: 90}", "2:15 90 is no time; write minutes, hours or days: 30m, 2h, 5d"),
        ("idle: {after: 1m}", "2:15 1m is not from 2m to 365d; write a time from 2m to 365d"),
        ("long: {after: 999999d}", "2:15 999999d is not from 2m to 365d; write a time from 2m to 365d"),
        ("long: {after: [2h]}", "2:15 text is expected, found a list"),
        ("long: {busy-below: 5}", "2:15 is not a known key and has no effect"),
        ("notebooks: {then: kill}", "2:20 kill is not one of list, warn, stop, preemptible; choose one of them"),
        ("idle: stop", "2:8 a mapping is expected, found text; write lines of `key: value`"),
        ("idle: {grace: soon}", "2:15 soon is no time; write minutes, hours or days: 30m, 2h, 5d"),
        (
            "keep-days: 0, idle: {then: stop}",
            "2:29 stop is what the recorder of jobs does, and jobs.keep-days is 0: there is none",
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, text: str, says: str) -> None:
    found = read_site(write_site(tmp_path, services=f"{KUEUE}jobs: {{{text}}}\n"))
    (told,) = [f"{item.line}:{item.column} {item.message}; {item.remedy}" for item in found.problems]
    assert told.startswith(says)


@pytest.mark.parametrize("scheduler", ["volcano", "default"])
def test_only_kueue_changes_priorities_of_what_runs(
    tmp_path: Path, scheduler: str, snapshot: SnapshotAssertion
) -> None:
    services = (
        f"scheduler: {{type: {scheduler}}}\nvirtual-clusters:\n"
        "  - {name: a, quota: [{sku: gpu, machines: 1}], long: {then: preemptible}}\n"
    )
    found = read_site(write_site(tmp_path, services=services))
    (told,) = [it for it in found.problems if it.code == "site.preemptible"]
    assert (told.line, told.path) == (3, "virtual-clusters[0].long.then")
    assert told.message == snapshot
    assert told.is_error
