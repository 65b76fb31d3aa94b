"""One text, one page, one JUnit and one Prometheus form for the findings of every verb."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.report.groups import groups
from pai_install.checks.report.html import Link, Page, ReportMachine, findings_page
from pai_install.checks.report.junit import junit
from pai_install.checks.report.prometheus import Target, metrics
from pai_install.checks.report.text import finding_lines, subject_lines
from pai_install.checks.verdict import GRAVITY, OPEN, Action, Verdict

FULL = Finding("disk-space", Verdict.FAIL, "one", "too little", "1 GiB", "9 GiB", "free some", action=Action.CONFIG)
CARD = Finding("gpu-lost", Verdict.FAIL, "two", "lost", remedy="replace it", device="0000:01:00.0", action=Action.RMA)
BLIND = tuple(Finding(check, Verdict.UNKNOWN, "one", "no driver\ndetails") for check in ("gpu-ecc", "gpu-heat"))
SLOW = Finding("clock", Verdict.WARN, "two", "it is off", "2 s", "< 1 s", "set it")
FINE = tuple(Finding("swap", Verdict.PASS, name, "swap is off", "none") for name in ("one", "two", "three"))
ALL = (*FINE, SLOW, *BLIND, FULL, CARD)
MACHINES = (ReportMachine("one", ("worker",), "a100-8", "10.0.0.1"), ReportMachine("four", (), "cpu", "10.0.0.4"))


def page(findings: tuple[Finding, ...] = ALL, title: str = "x", machines: tuple[ReportMachine, ...] = MACHINES) -> str:
    links = (Link("all runs", "../"), Link("pai-install health"))
    return findings_page(Page(title, Verdict.FAIL, "not ready", machines, links), findings)


def test_the_gravest_come_first_and_what_is_unknown_for_one_reason_is_told_once() -> None:
    found = [(group.verdict.value, group.checks) for group in groups(ALL, OPEN)]
    assert found == [
        ("FAIL", ("disk-space",)),
        ("FAIL", ("gpu-lost",)),
        ("UNKNOWN", ("gpu-ecc", "gpu-heat")),
        ("WARN", ("clock",)),
    ]


def test_text(snapshot: SnapshotAssertion) -> None:
    assert list(finding_lines(ALL)) == snapshot
    assert any(line.startswith("PASS swap is off") for line in finding_lines(ALL, GRAVITY))
    assert list(subject_lines({"one": [FULL, FINE[0]]})) == snapshot


def test_the_page_shows_what_is_wrong_with_its_remedy_before_the_machines() -> None:
    order = [page().index(words) for words in ("free some", "no driver", "set it", "<h2>Machines", "<h2>What passes")]
    assert order == sorted(order)
    folded = page().partition("<h2>What passes")[2]
    assert folded.index("<details>") < folded.index("swap is off")


def test_the_page_knows_machines_of_the_site_and_others() -> None:
    rows = re.findall(r'<tr><td class="name">(\w+)</td>', page())
    assert rows == ["one", "two", "three", "four"]
    assert "a100-8" in page()
    assert "10.0.0.1" in page()


def test_a_verdict_is_a_word_and_a_sign() -> None:
    assert all(word in page() for word in ("✖ FAIL", "? UNKNOWN", "! WARN", "✔ PASS", "- SKIP"))


def test_no_value_becomes_markup() -> None:
    evil = '<script>alert("1")</script>'
    shown = page((FULL._replace(value=evil, message=evil, remedy=evil, subject=evil, id=evil),), title=evil)
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    assert not re.search(r"src=|<link|@import|url\(|<script|https?://", page())
    assert re.findall(r'href="([^"]*)"', page()) == ["../"]


def test_many_alike_places_stay_a_short_list() -> None:
    many = tuple(FULL._replace(subject=f"m{number}") for number in range(200))
    shown = page(many, machines=())
    assert "and 188 more" in shown
    assert len(shown) < 120_000


def test_many_machines_that_are_well_are_folded_away(snapshot: SnapshotAssertion) -> None:
    well = tuple(FINE[0]._replace(subject=f"m{number}") for number in range(30))
    assert page(well, machines=()) == snapshot


def test_junit_has_a_suite_per_subject() -> None:
    root = ET.fromstring(junit(ALL, name="pai-install preflight"))  # noqa: S314 - our own output
    assert root.get("name") == "pai-install preflight"
    suites = {suite.get("name"): (suite.get("tests"), suite.get("failures"), suite.get("skipped")) for suite in root}
    assert suites == {"one": ("4", "1", "2"), "two": ("3", "1", "0"), "three": ("1", "0", "0")}


def test_prometheus_has_a_series_per_finding_and_machine() -> None:
    targets = [
        Target("one", (FULL, FULL), "a100-8", 5.0),
        Target("two", (SLOW, CARD), collected_at=5.0),
        Target("x", ()),
    ]
    lines = metrics("pai_preflight", targets).splitlines()
    assert 'pai_preflight_verdict{machine="one",sku="a100-8",action="config"} 3' in lines
    assert 'pai_preflight_checks{machine="two",verdict="WARN"} 1' in lines
    card = 'machine="two",device="0000:01:00.0",check="gpu-lost",verdict="FAIL",action="rma"'
    assert f"pai_preflight_finding{{{card}}} 1" in lines
    series = [line for line in lines if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert 'pai_preflight_collected_timestamp_seconds{machine="x"} 5' not in lines
