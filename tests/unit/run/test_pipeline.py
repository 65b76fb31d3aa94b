"""Pieces of the way of apply that the verbs' tests do not reach."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import ExitCode, PaiError
from pai_install.run.executor import Gate
from pai_install.run.lock import holder, site_lock
from pai_install.run.pipeline import Request, open_session, perform, prepare, preview, write_reports
from pai_install.run.state import open_state
from tests.unit.cli.stub_wiring import World, write_site
from tests.unit.report.outcomes import FINE, TROUBLED
from tests.unit.runs import done, event, phase

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def session_of(site: Path, world: World, kit: Any, **words: Any) -> Any:
    return open_session(
        Request(site, **words), world.wiring(), verb="apply", progress=kit.listener(), say=print, now=lambda: NOON
    )


def test_session_holds_the_site_and_lets_go(site: Path, kit: Any) -> None:
    with session_of(site, World(), kit) as session:
        seen = holder(session.state.path)
        assert seen is not None
        assert (seen.pid, seen.verb) == (os.getpid(), "apply")
        assert session.run.name == "20260301T120000Z"
    assert holder(open_state(site).path) is None


def test_session_turns_sigterm_into_an_interruption_and_lets_go(site: Path, kit: Any) -> None:
    with pytest.raises(KeyboardInterrupt), session_of(site, World(), kit):  # noqa: PT012 - it comes a moment later
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    with site_lock(open_state(site).path, "apply"):
        pass


def test_plan_is_saved_before_and_after_the_preview(site: Path, kit: Any) -> None:
    diff = {"before": "", "after": "x\n"}
    world = World((phase("base", "one"),), {"base.yml": done(event("changed", "one", "Write", diff=diff))})
    with session_of(site, world, kit) as session:
        prepared = prepare(session)
        assert json.loads(session.run.plan.read_text())["changes"] == []
        outcome, changes = preview(session, prepared)
        saved = json.loads(session.run.plan.read_text())
    assert outcome.check
    assert [change.host for change in changes] == ["one"]
    assert saved["changes"][0]["diff"].endswith("+x")
    assert stat.S_IMODE(session.run.plan.stat().st_mode) == 0o600


def test_gates_of_the_wiring_are_asked(site: Path, kit: Any) -> None:
    from dataclasses import replace  # noqa: PLC0415

    from pai_install.checks.finding import Finding  # noqa: PLC0415
    from pai_install.checks.verdict import Verdict  # noqa: PLC0415

    world = World((phase("base", "one"),), {"base.yml": done(event("ok", "one"))})
    sick = Finding("api", Verdict.FAIL, "cluster", "silent")
    wiring = replace(world.wiring(), gates=lambda *_: {"base": Gate("look", "Look", lambda _: [sick])})
    with open_session(Request(site), wiring, verb="apply", progress=kit.listener(), say=print) as session:
        outcome = perform(session, prepare(session))
    assert outcome.findings == (sick,)
    assert outcome.exit_code is ExitCode.VERIFICATION_FAILED


def test_standing_is_reported_only_where_nothing_else_proves_the_cluster(site: Path, kit: Any) -> None:
    from pai_install.checks.finding import Finding  # noqa: PLC0415
    from pai_install.checks.verdict import Verdict  # noqa: PLC0415

    stale = (Finding("node-ready", Verdict.FAIL, "one", "is not in the cluster"),)
    busy = World((phase("base", "one"),), {"base.yml": done(event("ok", "one"))}, standing=stale)
    with session_of(site, busy, kit) as session:
        assert perform(session, prepare(session)).findings == ()
    with session_of(site, World(standing=stale), kit) as session:
        assert perform(session, prepare(session)).findings == stale


def test_absent_machines_are_not_looked_at(site: Path, kit: Any) -> None:
    layout = site / "layout.yaml"
    layout.write_text(layout.read_text().replace("hostname: two,", "hostname: two, absent: true,"))
    world = World()
    with session_of(site, world, kit) as session:
        prepare(session)
    assert world.engine.requests[0].limit == ("master", "one")
    with pytest.raises(PaiError, match="two"):
        session_of(site, world, kit, limit=("two",)).__enter__()


@pytest.mark.parametrize("outcome", [FINE, TROUBLED])
def test_reports_are_written_in_every_form_for_the_owner_only(site: Path, outcome: Any) -> None:
    run = open_state(site).new_run(NOON)
    write_reports(run, outcome, title="lab")
    for suffix, begin in (("json", "{"), ("md", "# lab\n"), ("html", "<!doctype html>")):
        path = run.report(suffix)
        assert path.read_text().startswith(begin)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(run.report("json").read_text())["ok"] is outcome.ok
