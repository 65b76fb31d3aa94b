"""A whole run on the real engine: one host that fails, one that is away, a crash in the middle, planted secrets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pai_install.engine.processes import orphans
from pai_install.errors import ExitCode
from pai_install.report.diffs import ChangeCollector
from pai_install.report.model import HostStatus
from pai_install.run.actions import Stage
from pai_install.run.eventlog import EventLog
from pai_install.run.executor import Means, execute
from pai_install.run.journal import Journal, interrupted_run
from pai_install.run.lock import site_lock
from pai_install.run.observe import observe
from pai_install.run.pipeline import write_reports
from pai_install.run.state import RunFolder, open_state

AWAY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


def test_one_fails_one_is_away_the_third_gets_everything(bench: Any, make_plan: Any) -> None:
    inventory = bench.inventory("a", "b", "c", a=AWAY)
    plan = make_plan(inventory, "failed", "ok", "findings", hosts=("a", "b", "c"))
    with bench.engine() as engine:
        outcome = execute(plan, Means(engine), [])
    result = {phase.name: {host: r.status.value for host, r in phase.hosts.items()} for phase in outcome.phases}
    assert result == {
        "failed": {"a": "unreachable", "b": "failed", "c": "ok"},
        "ok": {"a": "left", "b": "left", "c": "changed"},
        "findings": {"a": "left", "b": "left", "c": "ok"},
    }
    assert outcome.exit_code is ExitCode.STEP_FAILED
    assert [finding.subject for finding in outcome.findings] == ["c", "c"]
    causes = {failure.host: failure.cause for failure in outcome.failures}
    assert "accepts SSH" in causes["a"]
    assert "package database" in causes["b"]


def test_no_artefact_of_a_run_holds_a_secret(bench: Any, make_plan: Any) -> None:
    plan = make_plan(bench.inventory("a"), "ok", "no_log", "loud", hosts=("a",))
    folder = RunFolder(bench.folder / "run")
    folder.path.mkdir()
    collector = ChangeCollector()
    (bench.folder / "a.conf").write_text("password = old\n")
    with bench.engine() as engine, EventLog(folder.events) as events, Journal(bench.folder / "j", "r") as journal:
        execute(plan, Means(engine), [collector], check=True)
        outcomes = [execute(make_plan(plan.inventory, name, hosts=("a",)), Means(engine), [events, journal])
                    for name in ("ok", "no_log", "loud")]  # fmt: skip
    assert [outcome.exit_code for outcome in outcomes] == [0, 6, 6]
    for number, outcome in enumerate(outcomes):
        write_reports(folder, outcome, title=f"run {number}")
        texts = [path.read_text() for path in folder.path.iterdir()]
        texts += [(bench.folder / "j").read_text(), (bench.folder / "ansible.log").read_text()]
        texts += [change.diff for change in collector.changes]
        for text in texts:
            for secret in (bench.token, bench.password, json.dumps(bench.password)[1:-1]):
                assert secret not in text
    assert any("+password = ********" in change.diff for change in collector.changes)


def test_observation_gives_facts_and_reasons(bench: Any) -> None:
    inventory = bench.inventory("a", "b", b=AWAY)
    with bench.engine() as engine:
        seen = observe(inventory, ("a", "b"), Stage(engine))
    assert "ansible_python" in seen.results["a"]["ansible_facts"]
    assert "Connection refused" in seen.missed["b"]
    assert seen.phase.hosts["b"].status is HostStatus.UNREACHABLE


KILLED = """
import sys
from pathlib import Path
from pai_install.run.executor import Means, execute
from pai_install.run.journal import Journal
from pai_install.run.lock import site_lock
from pai_install.run.state import open_state
from pai_install.engine.runner import RunnerEngine
from pai_install.plan.model import HostStep, Inventory, Plan, Playbook, Step
content, site = map(Path, sys.argv[1:])
shared = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
inventory = Inventory({}, shared, {"a": {}, "b": {}})
steps = tuple(HostStep(host, ()) for host in "ab")
phases = tuple(Step(name, name, steps, Playbook(f"{name}.yml")) for name in ("facts", "slow"))
state = open_state(site)
with site_lock(state.path, "apply"), Journal(state.journal, "r1") as journal:
    with RunnerEngine(content, state.work, state.known_hosts) as engine:
        execute(Plan(phases, inventory), Means(engine), [journal])
"""


def test_run_that_was_killed_is_told_cleared_and_followed_by_another(bench: Any, make_plan: Any) -> None:
    state = open_state(bench.folder)
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(bench.content), str(bench.folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    deadline = time.monotonic() + 120
    while not ("slow" in _begun(state.journal) and list(state.work.glob("run-*"))):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1)
    child.send_signal(signal.SIGKILL)
    child.wait()
    left = interrupted_run(state.journal, print)
    assert left is not None
    assert (left.phase, left.hosts, left.phases_done) == ("slow", ("a", "b"), ("facts",))
    assert list(state.work.glob("run-*"))

    plan = make_plan(bench.inventory("a", "b"), "facts", "use_facts", hosts=("a", "b"))
    with site_lock(state.path, "apply"), Journal(state.journal, "r2") as journal, bench.engine() as engine:
        assert orphans() == frozenset()
        assert execute(plan, Means(engine), [journal]).ok
    assert interrupted_run(state.journal, print) is None


def _begun(journal: Path) -> set[str]:
    lines = journal.read_text().splitlines() if journal.exists() else []
    return {json.loads(line).get("phase") for line in lines if '"phase_started"' in line}
