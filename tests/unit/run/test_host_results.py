"""A failure keeps the words that help, without secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.engine.base import EventKind
from pai_install.redact import Redactor
from pai_install.report.model import Counts, HostStatus
from pai_install.run.host_results import HostResults, failure_of
from tests.replay import load_stream
from tests.unit.runs import done, event

STREAMS = Path(__file__).parents[1] / "engine" / "streams"
NOTHING = Redactor(())


def collected_from(stream: str) -> HostResults:
    collected = HostResults(("a", "b", "c"), NOTHING)
    for step in load_stream(STREAMS / f"{stream}.jsonl"):
        collected.add(step)
    return collected


def test_recorded_failure_has_cause_and_place(snapshot: SnapshotAssertion) -> None:
    results = collected_from("failed").results(complete=True)
    assert [results[host].status.value for host in "abc"] == ["ok", "failed", "ok"]
    failure = results["b"].failure
    assert failure is not None
    assert failure.task == "Fail on b"
    assert failure.task_path == "/content/playbooks/failed.yml:9"
    assert failure.message == "non-zero return code"
    assert failure.evidence == snapshot
    assert "package database" in failure.cause
    assert results["c"].counts == Counts(ok=4, skipped=1, tasks=4)


def test_recorded_unreachable_host_is_explained() -> None:
    results = collected_from("unreachable").results(complete=True)
    assert results["c"].status is HostStatus.UNREACHABLE
    assert results["c"].failure is not None
    assert "Connection refused" in results["c"].failure.message
    assert results["c"].failure.cause.startswith("Nothing accepts SSH")


def test_recorded_findings_are_collected() -> None:
    found = {(finding.subject, finding.id): finding.verdict.value for finding in collected_from("findings").findings}
    assert found["b", "swap-off"] == "FAIL"
    assert found["a", "swap-off"] == "PASS"
    assert len(found) == 6


def test_second_run_is_unchanged_apart_from_the_loop() -> None:
    assert collected_from("again").results(complete=True)["a"].counts.changed == 1


def test_phase_that_ended_early_for_no_machines_fault_is_no_success(snapshot: SnapshotAssertion) -> None:
    """An ignored error in a run_once task: Ansible stops, says 2, and counts no machine as failed."""
    collected = HostResults(("a", "b"), NOTHING)
    for step in done(event("ok", "a"), event("ignored", "a", msg="no route to the leader"), rc=2):
        collected.add(step)
    results = collected.results(complete=True)
    assert {result.status for result in results.values()} == {HostStatus.FAILED}
    failure = results["b"].failure
    assert failure is not None
    assert failure.message == snapshot


def test_hosts_that_the_phase_never_came_to_are_left() -> None:
    """A play ends when all of its hosts fail, and takes the plays after it with it."""
    assert HostResults(("x",), NOTHING).results(complete=True)["x"].status is HostStatus.LEFT
    assert HostResults(("x",), NOTHING).results(complete=False)["x"].status is HostStatus.INTERRUPTED


def test_censored_failure_says_that_it_is_censored() -> None:
    failure = collected_from("no_log").results(complete=True)["a"].failure
    assert failure is not None
    assert "handles secrets" in failure.message


def test_loop_names_the_items_that_failed(kit: Any) -> None:
    items = [
        {"failed": True, "msg": "no space", "stderr": "ENOSPC"},
        {"failed": False, "msg": "fine", "stderr": "nothing"},
        {"failed": True, "msg": "no space"},
    ]
    failure = failure_of(kit.event("failed", "a", msg="One or more items failed", results=items), NOTHING)
    assert failure.message == "no space"
    assert failure.evidence == "ENOSPC"


def test_evidence_of_our_own_modules_names_whose_words_they_are(kit: Any, snapshot: SnapshotAssertion) -> None:
    """The kubelet's last lines say more than kubeadm's message, and the specific cause comes before the general one."""
    words = {"kubeadm": ["[kubelet-check] waits"], "kubelet": ["running with swap on is not supported"], "pods": []}
    event = kit.event("failed", "a", msg="kubeadm init failed: wait-control-plane", evidence=words)
    failure = failure_of(event, NOTHING)
    assert failure.evidence == snapshot
    assert failure.cause.startswith("Swap is on")


def test_remedy_of_a_module_is_better_than_that_of_the_table_and_told_as_its_own(
    kit: Any, snapshot: SnapshotAssertion
) -> None:
    event = kit.event("failed", "a", msg="No space left on device", remedy="empty the cache")
    assert failure_of(event, NOTHING).remedy == snapshot


def test_evidence_keeps_its_end_and_loses_its_secrets(kit: Any) -> None:
    event = kit.event("failed", "a", msg="bad hunter22", stderr="x" * 9000 + " the hunter22 end", stdout="",
                      exception="(traceback unavailable)")  # fmt: skip
    failure = failure_of(event, Redactor(["hunter22"]))
    assert failure.message == "bad ********"
    assert failure.evidence.endswith("the ******** end")
    assert len(failure.evidence) == 4000


@pytest.mark.parametrize("result", [{}, {"msg": None}, {"msg": ["a"]}, {"results": "odd"}, {"results": [1]}])
def test_odd_results_are_still_failures(kit: Any, result: dict[str, Any]) -> None:
    failure = failure_of(kit.event("failed", "a", **result), NOTHING)
    assert failure.host == "a"
    assert failure.message


def test_without_ansibles_count_the_events_decide(kit: Any) -> None:
    collected = HostResults(("a", "b"), NOTHING)
    collected.add(kit.event("failed", "a", msg="x"))
    results = collected.results(complete=False)
    assert results["a"].status is HostStatus.FAILED
    assert results["b"].status is HostStatus.INTERRUPTED


def test_every_kind_of_event_about_a_host_has_a_weight(kit: Any) -> None:
    collected = HostResults((), NOTHING)
    for kind in set(EventKind) - {EventKind.DONE, EventKind.TASK_START}:
        collected.add(kit.event(kind.value, "a"))
    counts = collected.results(complete=True)["a"].counts
    assert counts == Counts(ok=3, changed=1, failed=1, unreachable=1, skipped=1, tasks=5)
