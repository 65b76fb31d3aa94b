"""What the cluster keeps of runs: bounded, and without output of machines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.cluster.client import ApiError
from pai_install.errors import ExitCode
from pai_install.report.model import OBSERVE, Counts, Failure, HostResult, HostStatus, Outcome, PhaseResult
from pai_install.report.run_history import RUNS, is_worth_keeping, run_history, summary_of, with_run
from pai_install.run.run_history import publish_run
from pai_install.site.load import load_site
from tests.unit.cli.test_vc import site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import GROUPS

SECRET = "hunter22-planted"
FAILED = Failure("one", "Install the kubelet", "x.yml:1", f"output {SECRET}", SECRET, "no space left", "free space")


def outcome(status: HostStatus = HostStatus.CHANGED, name: str = "join", **hosts: HostResult) -> Outcome:
    found = {"master": HostResult(status, Counts(changed=2)), **hosts}
    look = PhaseResult(OBSERVE, "Observe", 1.0, {name: HostResult(HostStatus.OK) for name in found})
    return Outcome(12.345, (look, PhaseResult(name, "Join", 2.0, found)))


BROKEN = outcome(one=HostResult(HostStatus.FAILED, failure=FAILED), two=HostResult(HostStatus.LEFT))


def test_a_run_with_nothing_to_do_leaves_no_entry() -> None:
    assert not is_worth_keeping(Outcome(1.0))
    assert not is_worth_keeping(outcome(HostStatus.OK))
    assert is_worth_keeping(outcome())
    assert is_worth_keeping(BROKEN)
    assert is_worth_keeping(Outcome(1.0, findings=(Finding("dns", Verdict.FAIL, "one", "no answer"),)))


def test_a_summary_has_results_and_remedies() -> None:
    found = summary_of(replace(BROKEN, findings=(Finding("dns", Verdict.FAIL, "one", SECRET),)), "2026", "apply")
    assert (found.exit_code, found.changed, found.duration_s) == (ExitCode.STEP_FAILED, 2, 12.3)
    assert found.machines == {"changed": 1, "failed": 1, "left": 1}
    assert found.others == {"one": "failed", "two": "left"}
    (task,) = found.failures
    assert (task.machine, task.task, task.cause, task.remedy) == (
        "one", "Install the kubelet", "no space left", "free space",
    )  # fmt: skip
    assert found.checks == ("one: dns",)
    assert SECRET not in found.model_dump_json()


def test_the_worst_result_of_a_machine_counts() -> None:
    again = PhaseResult("verify", "Verify", 1.0, {"one": HostResult(HostStatus.OK)})
    assert summary_of(replace(BROKEN, phases=(*BROKEN.phases, again)), "2026", "apply").others["one"] == "failed"


def test_it_is_bounded() -> None:
    many = {f"gpu-{number:04}": HostResult(HostStatus.FAILED, failure=replace(FAILED, task="x" * 5000))
            for number in range(1000)}  # fmt: skip
    found: Any = None
    for number in range(40):
        found = with_run(found, summary_of(outcome(HostStatus.CHANGED, "join", **many), f"run-{number:02}", "apply"))
    runs = run_history(found).runs
    assert runs[0].run == "run-39"
    assert 5 < len(runs) <= 20
    assert runs[0].more > 1000
    assert len(json.dumps(found)) < 400 * 1024


@pytest.mark.parametrize("content", ["", "{", "[]", '{"runs": 3}', '{"runs": [{"run": 3}]}', "x" * 5_000_000])
def test_a_damaged_map_has_no_runs(content: str) -> None:
    assert run_history({"data": {"runs.json": content}}).runs == ()
    assert run_history(None).runs == ()


def test_a_later_version_may_say_more() -> None:
    row = {"run": "a", "verb": "apply", "exit_code": 0, "later": {}}
    found = run_history({"data": {"runs.json": json.dumps({"runs": [row], "more": 1})}})
    assert [one.run for one in found.runs] == ["a"]


def test_only_a_run_that_changed_something_asks_the_cluster(tmp_path: Path) -> None:
    own, cluster, said = load_site(site(tmp_path, VALID + GROUPS)).site, FakeCluster(), list[str]()
    publish_run(own, cluster, outcome(HostStatus.OK), "a", "apply", said.append)
    assert cluster.calls == []
    publish_run(own, cluster, outcome(), "a", "apply", said.append)
    publish_run(own, cluster, BROKEN, "b", "node drain", said.append)
    assert [(one.run, one.verb) for one in run_history(cluster.objects[RUNS]).runs] == [
        ("b", "node drain"),
        ("a", "apply"),
    ]
    assert said == []


def test_a_cluster_that_refuses_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, cluster, said = load_site(site(tmp_path, VALID + GROUPS)).site, FakeCluster(), list[str]()

    def refuses(*_words: Any, **_more: Any) -> None:
        raise ApiError("cannot apply: Forbidden", reason="Forbidden")

    monkeypatch.setattr(cluster, "apply", refuses)
    publish_run(own, cluster, outcome(), "a", "apply", said.append)
    assert len(said) == 1


def test_a_site_without_a_console_publishes_nothing(tmp_path: Path) -> None:
    cluster = FakeCluster()
    own = load_site(site(tmp_path, f"{VALID}{GROUPS}console: false\n")).site
    publish_run(own, cluster, outcome(), "a", "apply", lambda _line: None)
    assert cluster.calls == []
