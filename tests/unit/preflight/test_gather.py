"""Events in, evidence out: who answered, who refused sudo, who is silent; and the whole run over them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.engine.base import Event
from pai_install.errors import ExitCode, PaiError
from pai_install.preflight.document import preflight_document
from pai_install.preflight.gather import gather, preflight_inventory
from pai_install.preflight.run import run
from pai_install.site import Site
from tests.errors import raises
from tests.unit.preflight.machines import CONFIG, NAMES, good, read_site
from tests.unit.runs import ScriptedEngine, done, event


def engine(*events: Event) -> ScriptedEngine:
    """An engine that plays these events, good answers of the other machines among them."""
    told = {one.host for one in events}
    others = [event("ok", name, evidence=right_now(good(name))) for name in NAMES if name not in told]
    return ScriptedEngine({"preflight.yml": done(*events, *others)})


def right_now(evidence: dict[str, Any]) -> dict[str, Any]:
    """Evidence of a machine whose clock is that of the controller host."""
    return {**evidence, "clock": {"began": time.time() - 1, "ended": time.time()}}


def test_all_answer(site: Site) -> None:
    played = engine()
    found = gather(played, site, NAMES, now=lambda: 2000.0)
    assert set(found.evidence) == set(NAMES)
    assert found.unreachable == {}
    clock = found.evidence["master"].clock
    assert clock is not None
    assert (clock.requested, clock.answered) == (1998.5, 2000.0)
    assert played.requests[0].limit == NAMES


def test_refused_sudo_leaves_what_the_user_may_see(site: Site, snapshot: SnapshotAssertion) -> None:
    refused = event("failed", "worker1", msg="Task failed: Missing sudo password")
    seen = good("worker1")
    seen["identity"] |= {"root": False, "user": "pai"}
    found = gather(engine(refused, event("ok", "worker1", evidence=seen)), site, NAMES)
    assert found.unreachable == {}
    assert found.evidence["worker1"].sudo_problem == snapshot
    assert found.evidence["master"].sudo_problem == ""


def test_words_of_a_broken_module_are_kept(site: Site, snapshot: SnapshotAssertion) -> None:
    words = {
        "msg": "No start of json char found",
        "module_stderr": "pai is not in the sudoers file.\n",
        "module_stdout": "",
    }
    found = gather(engine(event("failed", "worker1", **words)), site, NAMES)
    assert found.unreachable["worker1"] == snapshot


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([event("unreachable", "worker2", msg="No route to host")], "No route to host"),
        ([event("unreachable", "worker2")], "unreachable"),
        ([event("ok", "worker2")], "no answer from the machine"),
        ([event("skipped", "worker2")], "no answer from the machine"),
        ([event("ok", "worker2", evidence="nonsense")], "no answer from the machine"),
        ([event("failed", "worker2", msg="x" * 9000)], "x" * 2000),
    ],
)
def test_no_evidence(site: Site, events: Sequence[Event], words: str) -> None:
    found = gather(engine(*events), site, NAMES)
    assert found.unreachable == {"worker2": words}
    assert set(found.evidence) == {"master", "worker1"}


@pytest.mark.parametrize("raw", [{}, {"swap": "nonsense"}, {"identity": {"hostname": ["x"]}}, {"problems": None}])
def test_evidence_of_any_shape_stops_nobody(site: Site, raw: dict[str, Any]) -> None:
    report = run(engine(event("ok", "worker2", evidence=raw)), site)
    assert {finding.subject for finding in report.findings} == set(NAMES)
    mine = [finding for finding in report.findings if finding.subject == "worker2"]
    assert any(finding.verdict is Verdict.UNKNOWN for finding in mine)


def test_inventory_leaves_becoming_root_to_the_playbook(site: Site) -> None:
    given = preflight_inventory(site).host_vars["worker1"]
    assert "ansible_become" not in given
    assert given["ansible_host"] == "10.0.0.2"
    assert given["preflight_become"] is True


def test_run_judges_forces_and_adds(site: Site) -> None:
    seen = good("worker1")
    seen["identity"] |= {"hostname": "other"}
    ticks = iter((10.0, 14.5))
    source = Finding("component-source", Verdict.PASS, "controller host", "in the cache")
    played = engine(event("ok", "worker1", evidence=right_now(seen)))
    report = run(played, site, forced=["hostname", "hostname"], more=(source,), clock=lambda: next(ticks))
    assert report.ok
    assert report.forced == ("hostname",)
    assert report.duration_s == 4.5
    assert report.findings[0] == source
    assert [finding.message for finding in report.findings if finding.id == "hostname"][1].endswith("(forced)")


def test_run_with_a_limit_looks_at_the_control_plane_too(site: Site) -> None:
    played = engine()
    report = run(played, site, hosts=["worker2"])
    assert played.requests[0].limit == ("master", "worker2")
    assert {finding.subject for finding in report.findings} == {"worker2"}


def test_unknown_words_are_refused_before_any_machine_is_asked(site: Site) -> None:
    played = engine()
    with raises("limit-unknown-machine", "worker9") as caught:
        run(played, site, hosts=["worker9"])
    assert caught.value.exit_code is ExitCode.USAGE
    with raises("force-check-unknown"):
        run(played, site, forced=["nonsense"])
    assert played.requests == []


def test_ansible_that_cannot_run_is_an_error(site: Site) -> None:
    with pytest.raises(PaiError, match="no script"):
        run(ScriptedEngine({}), site)


def test_a_password_in_what_failed_is_masked(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    site = read_site(tmp_path / "s", config=CONFIG + "password: planted-Secret-7f3a\n")
    loud = event("unreachable", "worker1", msg="login as pai with planted-Secret-7f3a failed")
    report = run(engine(loud), site)
    data = preflight_document(report).as_json()
    assert "planted-Secret-7f3a" not in json.dumps(data)
    assert [finding for finding in data["findings"] if finding["subject"] == "worker1"] == snapshot
