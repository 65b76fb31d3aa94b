"""The report in all its forms, over one healthy, one sick and one silent machine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape as html_escape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML
from syrupy.assertion import SnapshotAssertion

from pai_install.app.explain import explain as explain_checks
from pai_install.app.explain import explanation_text
from pai_install.checks.explain import list_checks
from pai_install.checks.report.junit import junit
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.health.document import health_document
from pai_install.health.evidence.document import CommandResult
from pai_install.health.html import html, raw_links
from pai_install.health.judge.rules import CHECKS
from pai_install.health.report import HealthReport, metrics, text, unreached
from pai_install.health.watch import changes, open_findings
from tests.errors import raises

from .machines import LIMITS, Box, change, gpu_change, h100, healthy

GOOD = healthy(2, "good").report()
SICK = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy(2, "sick")).report()
WARNED = gpu_change("persistence_mode", "Disabled")(healthy(2, "warned")).report()
REPORT = HealthReport((GOOD, SICK, WARNED), {"silent": "ssh: <connection> refused"}, "mysite")


def odd(value: str) -> HealthReport:
    """A machine whose GPU says something hostile."""
    return HealthReport((healthy(1, "m").gpus(change(h100(), "gpu_recovery_action", value)).report(),))


def test_exit_codes() -> None:
    assert REPORT.exit_code() is ExitCode.VERIFICATION_FAILED
    assert HealthReport((GOOD,)).exit_code(strict=True) is ExitCode.OK
    assert HealthReport((WARNED,)).exit_code() is ExitCode.OK
    assert HealthReport((WARNED,)).exit_code(strict=True) is ExitCode.VERIFICATION_FAILED
    assert HealthReport((), {"a": "gone"}).exit_code() is ExitCode.VERIFICATION_FAILED
    assert odd("Dance").exit_code() is ExitCode.OK
    assert odd("Dance").exit_code(strict=True) is ExitCode.VERIFICATION_FAILED


def test_text_says_what_is_sick_why_and_what_to_do(snapshot: SnapshotAssertion) -> None:
    shown = text(REPORT)
    told = "FAIL a memory row could not be remapped: the card has no spare rows left there [gpu-remap-failed]"
    assert told in shown
    assert shown == snapshot
    assert re.search(r"^WARN .*\[gpu-persistence\]$", shown, re.MULTILINE)
    assert shown.index(told) < shown.index("[gpu-persistence]")
    assert shown.splitlines()[-1].startswith("4 machines: 2 FAIL, 1 WARN")
    assert re.search(r"^sick +h100 +FAIL +1 .* rma$", shown, re.MULTILINE)


def test_text_shows_alike_findings_once() -> None:
    machines = tuple(
        gpu_change("persistence_mode", "Disabled")(healthy(2, f"n{number}")).report() for number in range(8)
    )
    shown = text(HealthReport(machines))
    assert shown.count("[gpu-persistence]") == 1
    assert "  and 3 more" in shown


def test_text_of_a_hung_machine_is_short() -> None:
    box: Box = healthy(1, "h")
    shown = text(HealthReport((box.command("nvidia_smi_xml", None).report(),)))
    assert max(len(line) for line in shown.splitlines()) < 200
    (line,) = [line for line in shown.splitlines() if "no GPU could be read" in line]
    assert line.startswith("UNKNOWN no GPU could be read [gpu-recovery-action, gpu-lost, gpu-readable and ")
    assert len(shown.splitlines()) < 25


def test_json_has_what_is_wrong_and_counts_what_is_right() -> None:
    document = health_document(REPORT).as_json()
    assert document["schema_version"] == 1
    assert document["exit_code"] == 7
    assert document["unreachable"] == {"silent": "ssh: <connection> refused"}
    good, sick, _ = document["machines"]
    assert good["findings"] == []
    assert good["verdicts"]["PASS"] > 60
    assert sick["action"] == "rma"
    (finding,) = sick["findings"]
    assert finding["check"] == "gpu-remap-failed"
    assert finding["device"] == "0000:18:00.0"
    assert finding["action"] == "rma"
    assert {"value", "expected", "threshold_source", "evidence", "remedy"} <= set(finding)


def test_json_of_everything_holds_every_field_of_every_finding() -> None:
    document = health_document(REPORT, everything=True).as_json()
    published = {"check": "id", "machine": "subject", "threshold_source": "source"}
    rows = document["machines"][1]["findings"]
    restored = [{published.get(name, name): text for name, text in row.items()} for row in rows]
    assert restored == [{name: str(value) for name, value in item._asdict().items() if value} for item in SICK.findings]


def test_findings_for_a_run_report() -> None:
    found = REPORT.as_findings()
    assert [(item.id, item.verdict) for item in found if item.subject.startswith("good")] == [("health", Verdict.PASS)]
    sick = next(item for item in found if item.id == "gpu-remap-failed")
    assert sick.subject == "sick 0000:18:00.0"
    assert sick.remedy.endswith("(action: rma)")


def test_run_report_says_once_what_a_missing_driver_leaves_unanswered() -> None:
    missing = CommandResult(missing=True)
    machine = healthy(2, "bare").command("nvidia_smi_xml", missing).report()
    found = [item for item in HealthReport((machine,)).as_findings() if item.verdict is Verdict.UNKNOWN]
    asked = [item for item in machine.findings if item.verdict is Verdict.UNKNOWN]
    assert len(asked) > 30
    assert len(found) < 10
    assert any(
        re.search(r"no GPU could be read: .* and \d+ more could not be answered", item.message) for item in found
    )


class Page(HTMLParser):
    """Collects tags and what they load."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]


def page_data(page: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match
    found: dict[str, object] = json.loads(match.group(1))
    return found


def test_page_is_self_contained_and_holds_every_machine() -> None:
    page = html(REPORT, title="Health of <b>mysite</b>")
    parser = Page()
    parser.feed(page)
    assert set(parser.loads) == {"#all"}, "a place on the page itself"
    assert parser.tags.count("script") == 2
    assert "&lt;b&gt;mysite" in page
    data = page_data(page)
    names = [machine["n"] for machine in data["machines"]]  # type: ignore[attr-defined]
    assert names == ["sick", "silent", "warned", "good"], "the gravest first"
    letters = {machine["n"]: machine["v"] for machine in data["machines"]}  # type: ignore[attr-defined]
    assert {len(word) for word in letters.values()} == {len(CHECKS) + 1}
    assert "F" in letters["sick"]
    assert "F" not in letters["good"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the page's script")
def test_page_draws_the_machines_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(html(REPORT, title="x"))
    command = ["node", str(Path(__file__).parent / "page.js"), str(tmp_path / "page.html")]
    drawn = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert drawn["all"] == ["sick", "silent", "warned", "good"]
    assert drawn["words"] == ["FAIL", "FAIL", "WARN", "PASS"]
    assert drawn["bad"] == ["sick", "silent"]
    assert drawn["persistence"] == drawn["found"] == ["warned"]
    assert drawn["rma"] == ["sick"]
    assert drawn["heads"] == ["machine-reachable", "gpu-persistence", "gpu-remap-failed"]
    assert drawn["every"] == ["machine-reachable", *CHECKS]
    assert "2 FAIL" in drawn["bar"]
    for shown in (drawn["first"], drawn["clicked"]):
        assert "run the field diagnostic and replace the card" in shown
        assert shown.index("FAIL") < shown.index("do not apply"), "findings come before what does not apply"
        assert "pai-install health history sick" in shown
    assert "ssh: &lt;connection&gt; refused" in drawn["below"], "the arrow key goes one machine down"
    assert "WARN when Disabled" in drawn["explained"]
    assert "1 of 4 machines" in drawn["explained"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the page's script")
def test_page_links_the_raw_evidence_that_is_beside_it(tmp_path: Path) -> None:
    page = tmp_path / "out" / "page.html"
    page.parent.mkdir()
    page.write_text(html(REPORT, title="x", raw=raw_links(tmp_path / "raw of all", page)))
    command = ["node", str(Path(__file__).parent / "page.js"), str(page)]
    drawn = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert '<a href="../raw%20of%20all/sick.txt">sick.txt</a>' in drawn["clicked"]
    assert "raw%20of%20all/good.txt" in drawn["cells"]["good"]["gpu-lost"]
    assert "silent.txt" not in drawn["below"], "a machine that returned no evidence has none"
    assert "--raw FOLDER" in drawn["below"]


def test_raw_evidence_as_a_page_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert raw_links(None, None) == ""
    assert raw_links(Path("raw"), None) == "raw"
    assert raw_links(tmp_path / "raw", Path("page.html")) == "raw"
    assert raw_links(Path("a/raw"), Path("a/page.html")) == "raw"


def test_page_cannot_be_broken_by_a_value() -> None:
    page = html(odd("</script><script>alert(1)</script>"), title="x")
    assert "</script><script>alert" not in page
    assert "alert(1)" in json.dumps(page_data(page))


@pytest.mark.parametrize("word", ["X <!--<script>", "</script><script>", "]]> & <b>"])
def test_page_stays_whole_whatever_a_value_is(word: str) -> None:
    page = html(odd(word), title="x")
    assert word not in page
    element = page.partition('id="data">')[2].partition("</script>")[0]
    assert "<" not in element
    assert page_data(page)["machines"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the page's script")
def test_page_shows_the_values_of_checks_that_pass(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(html(REPORT, title="x"))
    command = ["node", str(Path(__file__).parent / "page.js"), str(tmp_path / "page.html")]
    drawn = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    shown = drawn["cells"]["good"]
    good = next(machine for machine in REPORT.machines if machine.name == "good")
    for finding in good.findings:
        if finding.verdict is Verdict.PASS and finding.value:
            assert html_escape(finding.value, quote=False) in shown[finding.id], finding.id


def test_page_of_many_machines_is_small() -> None:
    machines = tuple(healthy(1, f"n{number}").report() for number in range(100))
    assert len(html(HealthReport(machines), title="x")) < 300_000


def test_junit() -> None:
    root = ET.fromstring(junit(REPORT.findings, name="health"))  # noqa: S314 - our own output
    suites = {suite.get("name"): suite for suite in root}
    assert suites["good"].get("failures") == "0"
    assert suites["sick"].get("failures") == "1"
    failure = suites["sick"].find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "rma"
    assert "replace the card" in (failure.text or "")
    assert suites["silent"].get("tests") == "1"


def test_junit_takes_values_that_xml_cannot_hold() -> None:
    ET.fromstring(junit([unreached("m", "\x00\x1b[31m bad \ufffe")], name="health"))  # noqa: S314 - our own output


def test_metrics() -> None:
    lines = metrics(REPORT).splitlines()
    assert 'pai_health_verdict{machine="good",sku="h100",action="none"} 0' in lines
    assert 'pai_health_verdict{machine="sick",sku="h100",action="rma"} 3' in lines
    assert 'pai_health_verdict{machine="silent",sku="",action="reboot"} 3' in lines
    wanted = 'machine="sick",device="0000:18:00.0",check="gpu-remap-failed",verdict="FAIL",action="rma"'
    assert f"pai_health_finding{{{wanted}}} 1" in lines
    series = [line.rsplit(" ", 1)[0] for line in lines if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert all(
        re.fullmatch(r'[a-z_]+\{(\w+="(\\.|[^"\\])*",?)+\} \d+', line) for line in lines if not line.startswith("#")
    )


def test_metrics_escape_labels() -> None:
    assert r'machine="a\"b\\c\nd"' in metrics(HealthReport((), {'a"b\\c\nd': "x"}))


def test_alert_rules_ask_for_series_and_checks_that_exist() -> None:
    from importlib import resources  # noqa: PLC0415

    raw = YAML(typ="safe").load(resources.files("pai_install.health").joinpath("alert-rules.yml").read_text())
    alerts = {rule["alert"]: rule for group in raw["groups"] for rule in group["rules"]}
    known = set(CHECKS) | {"machine-reachable"}
    for rule in alerts.values():
        for names in re.findall(r'check=~?"([^"]+)"', rule["expr"]):
            assert set(names.split("|")) <= known, rule["alert"]
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("warn", "error", "fatal")
    assert {"NvidiaSmiDoubleEccError", "NvidiaMemoryLeak", "NodeGpuCountChanged", "NodeNotReady"} <= set(alerts)


# Watching


def test_watch_shows_only_what_changes(snapshot: SnapshotAssertion) -> None:
    before = open_findings(HealthReport((SICK,)))
    same = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy(2, "sick")).report()
    assert list(changes(before, open_findings(HealthReport((same,))))) == []
    well = open_findings(HealthReport((healthy(2, "sick").report(),)))
    assert list(changes(before, well)) == snapshot
    (line,) = changes(well, before)
    assert line.startswith("FAIL sick 0000:18:00.0 gpu-remap-failed: ")
    worse = gpu_change("remapped_rows/remapped_row_failure", "N/A")(healthy(2, "sick")).report()
    assert any("gone" in line for line in changes(before, open_findings(HealthReport((worse,)))))


def test_watch_names_the_verdict_before() -> None:
    warm = gpu_change("temperature/gpu_temp_tlimit", "3 C")(healthy(2, "n")).report()
    hot = gpu_change("temperature/gpu_temp_tlimit", "-3 C")(healthy(2, "n")).report()
    (line,) = changes(open_findings(HealthReport((warm,))), open_findings(HealthReport((hot,))))
    assert line.startswith("FAIL (was WARN) n 0000:18:00.0 gpu-temperature")


def xid(number: int, minute: int = 0) -> str:
    return f"2026-09-21T14:{minute:02}:00+0000 n kernel: NVRM: Xid (PCI:0000:18:00): {number}, pid=1"


def test_watch_shows_a_new_cause_and_no_number_that_moves() -> None:
    first, then = healthy(1, "n").log(xid(48)), healthy(1, "n").log(xid(48), xid(79, 10))
    lines = list(changes(open_findings(HealthReport((first.report(),))), open_findings(HealthReport((then.report(),)))))
    (line,) = [line for line in lines if "gpu-xid:" in line]
    assert line.startswith("FAIL n 0000:18:00.0 gpu-xid: Xid 79")
    warm, warmer = (gpu_change("temperature/gpu_temp_tlimit", f"{left} C")(healthy(2, "n")) for left in (3, 2))
    assert (
        list(changes(open_findings(HealthReport((warm.report(),))), open_findings(HealthReport((warmer.report(),)))))
        == []
    )


# Explaining


def explain(name: str, site: Path = Path("/no-site")) -> str:
    """What `health explain` prints on a site."""
    return explanation_text(explain_checks(name, site, health_only=True), health_only=True)


def test_explain_names_rule_numbers_and_remedy(snapshot: SnapshotAssertion) -> None:
    shown = explain("gpu-ecc-lifetime")
    assert shown == snapshot
    assert "what to do:" in shown


def test_explain_of_an_unknown_check_suggests_one() -> None:
    with raises("unknown-check") as error:
        explain("gpu-remap-fail")
    assert "gpu-remap-failed" in error.value.remedy


def test_explain_shows_the_numbers_of_products_and_of_the_site(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "health.yml").write_text("thresholds: {nvlink-count: 4}\nskus: {dgx: {nvlink-count: 12}}\n")
    shown = explain("nvlink-links", tmp_path)
    assert re.search(r"nvlink-count = 6 for .*V100", shown)
    assert shown == snapshot


def test_every_threshold_is_explained_with_a_check() -> None:
    shown = "".join(map(explain, CHECKS))
    names = {*LIMITS.defaults, *(name for _, layer in LIMITS.products for name in layer)}
    assert {name for name in names if f"number:     {name} = " not in shown} == set()


@pytest.mark.parametrize("name", ["79", "xid-79", "Xid 79", "XID79"])
def test_explain_of_an_xid(name: str) -> None:
    shown = explain(name)
    assert shown.startswith("Xid 79: GPU has fallen off the bus\n")
    assert "verdict:    FAIL" in shown
    assert "action:     reboot" in shown
    with raises("health-check-not-in-catalogue", "9999"):
        explain("9999")


def test_list_holds_every_check() -> None:
    assert len(list_checks(CHECKS.values()).splitlines()) == len(CHECKS)


def test_unreached_machine_is_a_fail_with_a_remedy() -> None:
    finding = unreached("m", "timed out")
    assert finding.verdict is Verdict.FAIL
    assert finding.remedy
    assert finding.value == "timed out"
