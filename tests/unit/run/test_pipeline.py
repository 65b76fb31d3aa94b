"""Pieces of the way of apply that the verbs' tests do not reach."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.cluster.client import Select
from pai_install.errors import ExitCode
from pai_install.plan.changes import RefusedChange
from pai_install.plan.model import Inventory, LocalWork, Plan
from pai_install.plan.observation import Observation
from pai_install.run.lock import holder, site_lock
from pai_install.run.pipeline import open_session, perform, prepare, preview, write_reports
from pai_install.run.request import Request
from pai_install.run.state import open_state
from pai_install.run.workspace import Workspace
from pai_install.site.model import Machine, Site
from pai_install.site.selection import require_present, watched
from tests.errors import raises
from tests.unit.cli.stub_environment import World, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.report.outcomes import FINE, TROUBLED
from tests.unit.runs import done, event, phase

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def session_of(site: Path, world: World, kit: Any, **words: Any) -> Any:
    workspace = Workspace(site, world)
    return open_session(
        Request(Scripted(world, **words)), workspace, progress=kit.listener(), notify=print, now=lambda: NOON
    )


@dataclass(frozen=True)
class Scripted:
    """An operation that plans what the world says; its phases prove nothing."""

    world: World
    limit: tuple[str, ...] = ()
    sure: tuple[Finding, ...] = ()
    queries: tuple[Select, ...] = ()
    machines: bool = True
    name: str = "scripted"
    configures: bool = True
    checks_deprecated: bool = False
    ends_cluster: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        return {"limit": list(self.limit)}

    def require(self, site: Site) -> None:
        require_present(site, self.limit)

    def watched(self, site: Site) -> tuple[str, ...]:
        return watched(site, self.limit) if self.machines else ()

    def refused_changes(self, site: Site, observation: Observation) -> tuple[RefusedChange, ...]:
        del site, observation
        return ()

    def replaced_scheduler(self, site: Site, observation: Observation) -> None:
        del site, observation

    def versions(self, site: Site, observation: Observation) -> dict[str, dict[str, str]]:
        del site, observation
        return {}

    def plan(self, site: Site, observation: Observation) -> Plan:
        del site
        return Plan(self.world.phases, observation.inventory, observation.unreachable, "master")

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]:
        del site, observation, plan
        return self.sure

    @property
    def guests(self) -> tuple[Machine, ...]:
        return ()

    def typed(self, plan: Plan) -> str:
        del plan
        return ""

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        raise AssertionError((plan, hosts))


def test_session_holds_the_site_and_lets_go(site: Path, kit: Any) -> None:
    with session_of(site, World(), kit) as session:
        seen = holder(session.state.path)
        assert seen is not None
        assert (seen.pid, seen.verb) == (os.getpid(), "scripted")
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
        assert not prepared.plan.silent
        outcome, changes = preview(session, prepared)
        saved = json.loads(session.run.plan.read_text())
    assert outcome.check
    assert [change.host for change in changes] == ["one"]
    assert saved["changes"][0]["diff"].endswith("+x")
    assert stat.S_IMODE(session.run.plan.stat().st_mode) == 0o600


class Making(World):
    """Notes when settings, and with them the site's authority, are asked for."""

    made = 0

    def inventory(self, *args: Any, **words: Any) -> Inventory:
        self.made += 1
        return super().inventory(*args, **words)


def test_a_new_dev_box_makes_no_authority_while_all_machines_are_silent(site: Path, kit: Any) -> None:
    """There may be a cluster that has one: the next run, with the right key, takes that over."""
    names = ("master", "one", "two")
    silent = done(*(event("unreachable", name, msg="Permission denied") for name in names), dark=names, rc=4)
    world = Making(script={"observe.yml": silent})
    with session_of(site, world, kit) as session:
        plan = prepare(session).plan
        assert (set(plan.unreachable), plan.silent, world.made) == (set(names), True, 0)
        session.state.registry.write_text("{}")
        prepare(session)
    assert world.made == 1


def test_work_on_this_box_is_the_environments(site: Path, kit: Any) -> None:
    sick = Finding("api", Verdict.FAIL, "cluster", "silent")
    world = World((replace(phase("look", "one"), action=LocalWork("health")),), sick=(sick,))
    with session_of(site, world, kit) as session:
        outcome = perform(session, prepare(session))
    assert outcome.findings == (sick,)
    assert outcome.exit_code is ExitCode.VERIFICATION_FAILED


def test_report_begins_with_what_the_operation_knows(site: Path, kit: Any) -> None:
    stale = (Finding("node-ready", Verdict.FAIL, "one", "not a node of the cluster"),)
    with session_of(site, World(), kit, sure=stale) as session:
        assert perform(session, prepare(session)).findings == stale


def test_queries_are_answered_before_the_plan(site: Path, kit: Any) -> None:
    world = World(api=FakeCluster.of({"kind": "Node", "metadata": {"name": "one"}}))
    with session_of(site, world, kit, queries=(Select(("nodes",)), Select(("pods",)))) as session:
        nodes, pods = prepare(session).observation.answers
    assert ([node["metadata"]["name"] for node in nodes], pods) == (["one"], ())


def test_operation_that_watches_no_machine_starts_no_ansible(site: Path, kit: Any) -> None:
    world = World()
    with session_of(site, world, kit, machines=False) as session:
        prepared = prepare(session)
    assert (world.ansible.requests, prepared.looked, prepared.exit_code) == ([], (), ExitCode.OK)


def test_plan_names_its_operation_and_arguments(site: Path, kit: Any) -> None:
    with session_of(site, World(), kit, limit=("one",)) as session:
        prepare(session)
        saved = json.loads(session.run.plan.read_text())
    assert (saved["operation"], saved["arguments"]) == ("scripted", {"limit": ["one"]})


def test_absent_machines_are_not_looked_at(site: Path, kit: Any) -> None:
    layout = site / "layout.yaml"
    layout.write_text(layout.read_text().replace("hostname: two,", "hostname: two, absent: true,"))
    world = World()
    with session_of(site, world, kit) as session:
        prepare(session)
    assert world.ansible.requests[0].limit == ("master", "one")
    with raises("limit-unknown-machine"):
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
