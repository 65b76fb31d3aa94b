"""A host that drops out stops nobody; a control plane that fails stops what needs it; Ctrl-C is an outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.cluster.client import Patch
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.objects import JsonObject
from pai_install.plan.model import ClusterCall, ClusterCalls, LocalWork, Playbook, Step
from pai_install.report.model import Counts, HostResult, HostStatus, PhaseResult
from pai_install.report.notices import PhaseStarted, RunFinished, RunStarted, TaskFinished
from pai_install.run.executor import Means, execute
from tests.unit.cluster.fake import FakeCluster
from tests.unit.runs import SECRET

ALL = ("master", "one", "two")


def statuses(outcome: Any) -> dict[str, dict[str, str]]:
    return {phase.name: {host: result.status.value for host, result in phase.hosts.items()} for phase in outcome.phases}


def test_everything_fine(kit: Any) -> None:
    engine = kit.engine({"base.yml": kit.fine(*ALL), "workers.yml": kit.fine("one", "two")})
    plan = kit.plan(kit.phase("base", *ALL), kit.phase("workers", "one", "two", needs=("base",)))
    outcome = kit.run(plan, engine, [])
    assert outcome.exit_code is ExitCode.OK
    assert outcome.ok
    assert outcome.counts["one"] == Counts(ok=4, changed=2, tasks=4)
    assert outcome.counts["master"] == Counts(ok=2, changed=1, tasks=2)
    assert [request.limit for request in engine.requests] == [ALL, ("one", "two")]
    assert not any(request.check for request in engine.requests)
    assert outcome.left == {}


def test_empty_plan_starts_no_engine(kit: Any) -> None:
    engine, listener = kit.engine({}), kit.listener()
    outcome = kit.run(kit.plan(), engine, [listener])
    assert (outcome.exit_code, engine.requests, outcome.counts) == (ExitCode.OK, [], {})
    assert [type(notice) for notice in listener.notices] == [RunStarted, RunFinished]


def test_dead_host_is_dropped_named_and_stops_nobody(kit: Any, snapshot: SnapshotAssertion) -> None:
    base = kit.done(*(kit.event("ok", host) for host in ("master", "one")),
                    kit.event("unreachable", "two", msg="No route to host"), dark=["two"], rc=4)  # fmt: skip
    engine = kit.engine({"base.yml": base, "workers.yml": kit.fine("one", "two"), "verify.yml": kit.fine(*ALL)})
    plan = kit.plan(kit.phase("base", *ALL), kit.phase("workers", "one", "two"), kit.phase("verify", *ALL))
    outcome = kit.run(plan, engine, [])
    assert statuses(outcome) == {
        "base": {"master": "ok", "one": "ok", "two": "unreachable"},
        "workers": {"one": "changed", "two": "left"},
        "verify": {"master": "changed", "one": "changed", "two": "left"},
    }
    assert [request.limit for request in engine.requests] == [ALL, ("one",), ("master", "one")]
    assert outcome.exit_code is ExitCode.UNREACHABLE
    assert outcome.left == {"two": ("Base", "Workers", "Verify")}
    assert outcome.phases[1].hosts["two"].why == snapshot
    assert outcome.counts["two"] == Counts(unreachable=1, tasks=1)
    (failure,) = outcome.failures
    assert (failure.host, failure.message) == snapshot
    assert failure.remedy


def test_failed_host_beats_an_unreachable_one(kit: Any) -> None:
    base = kit.done(kit.event("ok", "master"), kit.event("failed", "one", msg="no"),
                    kit.event("unreachable", "two", msg="gone"),
                    failures=["one"], dark=["two"], rc=2)  # fmt: skip
    outcome = kit.run(kit.plan(kit.phase("base", *ALL)), kit.engine({"base.yml": base}), [])
    assert statuses(outcome)["base"] == {"master": "ok", "one": "failed", "two": "unreachable"}
    assert outcome.exit_code is ExitCode.STEP_FAILED


def test_failing_control_plane_stops_what_needs_it_and_nothing_else(kit: Any, snapshot: SnapshotAssertion) -> None:
    broken = kit.done(kit.event("failed", "master", msg="no"), failures=["master"], rc=2)
    engine = kit.engine({"control.yml": broken, "workers.yml": kit.fine("one"), "time.yml": kit.fine("one", "two")})
    plan = kit.plan(
        kit.phase("control", "master"),
        kit.phase("workers", "one", "two", needs=("control",)),
        kit.phase("time", *ALL),
    )
    outcome = kit.run(plan, engine, [])
    assert [request.playbook for request in engine.requests] == ["control.yml", "time.yml"]
    assert statuses(outcome)["workers"] == {"one": "left", "two": "left"}
    assert outcome.phases[1].hosts["one"].why == snapshot
    assert statuses(outcome)["time"] == {"master": "left", "one": "changed", "two": "changed"}
    assert outcome.left == {
        "master": ("Control", "Time"),
        "one": ("Workers",),
        "two": ("Workers",),
    }


def test_what_was_left_out_holds_back_what_needs_it_in_turn(kit: Any) -> None:
    broken = kit.done(kit.event("failed", "master", msg="no"), failures=["master"], rc=2)
    plan = kit.plan(
        kit.phase("runtime", "master"),
        kit.phase("control", "master", needs=("runtime",)),
        kit.phase("workers", "one", needs=("control",)),
    )
    engine = kit.engine({"runtime.yml": broken})
    assert statuses(kit.run(plan, engine, []))["workers"] == {"one": "left"}
    assert len(engine.requests) == 1


def test_need_that_is_not_in_the_plan_is_already_done(kit: Any) -> None:
    engine = kit.engine({"workers.yml": kit.fine("one")})
    assert kit.run(kit.plan(kit.phase("workers", "one", needs=("control",))), engine, []).ok


def test_need_that_had_no_work_on_a_control_plane_holds_nothing_back(kit: Any) -> None:
    base = kit.done(kit.event("ok", "two"), kit.event("failed", "one", msg="no"), failures=["one"], rc=2)
    engine = kit.engine({"base.yml": base, "workers.yml": kit.fine("two")})
    plan = kit.plan(kit.phase("base", "one", "two"), kit.phase("workers", "one", "two", needs=("base",)))
    assert statuses(kit.run(plan, engine, []))["workers"] == {"one": "left", "two": "changed"}


def test_need_that_failed_wherever_it_had_work_holds_back_what_needs_it(kit: Any, snapshot: SnapshotAssertion) -> None:
    """A storage server is no control plane; what mounts its shares must wait for it all the same."""
    broken = kit.done(kit.event("failed", "one", msg="no"), failures=["one"], rc=2)
    engine = kit.engine({"storage.yml": broken, "mounts.yml": kit.fine("two")})
    plan = kit.plan(kit.phase("storage", "one"), kit.phase("mounts", "two", needs=("storage",)))
    outcome = kit.run(plan, engine, [])
    assert [request.playbook for request in engine.requests] == ["storage.yml"]
    assert outcome.phases[1].hosts["two"].why == snapshot


def test_one_of_two_control_planes_is_enough(kit: Any) -> None:
    base = kit.done(
        kit.event("ok", "one"),
        kit.event("ok", "two"),
        kit.event("failed", "master", msg="no"),
        failures=["master"],
        rc=2,
    )
    engine = kit.engine({"base.yml": base, "workers.yml": kit.fine("two")})
    plan = kit.plan(kit.phase("base", *ALL), kit.phase("workers", "two", needs=("base",)))
    plan.inventory.groups["control_plane"] = ("master", "one")
    assert statuses(kit.run(plan, engine, []))["workers"] == {"two": "changed"}


def test_ctrl_c_closes_the_engine_and_leaves_the_rest(kit: Any, snapshot: SnapshotAssertion) -> None:
    engine = kit.engine({"base.yml": [kit.event("changed", "one"), KeyboardInterrupt()]})
    listener = kit.listener()
    plan = kit.plan(kit.phase("base", *ALL), kit.phase("workers", "one", "two"))
    outcome = kit.run(plan, engine, [listener])
    assert outcome.exit_code is ExitCode.INTERRUPTED
    assert statuses(outcome) == {
        "base": dict.fromkeys(ALL, "interrupted"),
        "workers": {"one": "left", "two": "left"},
    }
    assert engine.closed == ["base.yml"]
    assert outcome.phases[1].hosts["one"].why == snapshot
    assert isinstance(listener.notices[-1], RunFinished)
    assert outcome.counts["one"].changed == 1


def test_failure_before_a_ctrl_c_is_still_told(kit: Any) -> None:
    engine = kit.engine({"base.yml": [kit.event("failed", "one", msg="no"), KeyboardInterrupt()]})
    outcome = kit.run(kit.plan(kit.phase("base", *ALL)), engine, [])
    assert statuses(outcome)["base"] == {"master": "interrupted", "one": "failed", "two": "interrupted"}
    assert outcome.exit_code is ExitCode.INTERRUPTED


def test_ansible_itself_failing_ends_the_run_with_its_words(kit: Any) -> None:
    error = PaiError(f"could not parse, {kit.secret}", details=f"line 3: {kit.secret}", remedy="mend it")
    engine = kit.engine({"base.yml": [error]})
    outcome = kit.run(kit.plan(kit.phase("base", *ALL), kit.phase("time", "one")), engine, [])
    assert outcome.exit_code is ExitCode.STEP_FAILED
    assert outcome.error is not None
    assert (outcome.error.message, outcome.error.remedy) == ("could not parse, ********", "mend it")
    assert outcome.error.evidence == "line 3: ********"
    assert statuses(outcome)["time"] == {"one": "left"}
    assert len(engine.requests) == 1
    assert outcome.failures == (outcome.error,)


def test_bug_in_the_engine_is_not_swallowed(kit: Any) -> None:
    engine = kit.engine({"base.yml": [kit.event("ok", "one"), ZeroDivisionError()]})
    with pytest.raises(ZeroDivisionError):
        kit.run(kit.plan(kit.phase("base", *ALL)), engine, [])
    assert engine.closed == ["base.yml"]


def test_rescued_failure_is_none(kit: Any) -> None:
    events = kit.done(kit.event("failed", "one", msg="tried"), kit.event("ok", "one", "mend"))
    outcome = kit.run(kit.plan(kit.phase("base", "one")), kit.engine({"base.yml": events}), [])
    assert outcome.ok
    assert outcome.counts["one"] == Counts(ok=2, tasks=2)
    assert outcome.failures == ()


def test_skipped_and_ignored_are_counted_as_what_they_are(kit: Any) -> None:
    events = kit.done(*(kit.event(kind, "one") for kind in ("skipped", "ignored", "ok", "skipped")))
    outcome = kit.run(kit.plan(kit.phase("base", "one")), kit.engine({"base.yml": events}), [])
    assert outcome.counts["one"] == Counts(ok=2, skipped=2, tasks=2)
    assert outcome.phases[0].hosts["one"].status is HostStatus.OK


def test_changes_are_listed_with_their_place(kit: Any) -> None:
    events = kit.done(kit.event("changed", "one", "Write a file"), kit.event("ok", "one"))
    outcome = kit.run(kit.plan(kit.phase("base", "one")), kit.engine({"base.yml": events}), [])
    (change,) = outcome.phases[0].hosts["one"].changes
    assert (change.task, change.task_path, change.duration_s) == ("Write a file", "/roles/x.yml:12", 1.5)


def test_unobserved_hosts_are_unreachable_and_left_out(kit: Any, snapshot: SnapshotAssertion) -> None:
    engine = kit.engine({"base.yml": kit.fine("master", "one")})
    plan = kit.plan(kit.phase("base", *ALL), unreachable={"two": "no route"})
    seen = PhaseResult("observe", "Look", 1.0, {"two": HostResult(HostStatus.UNREACHABLE, Counts(unreachable=1))})
    outcome = kit.run(plan, engine, [], before=[seen])
    assert engine.requests[0].limit == ("master", "one")
    assert outcome.exit_code is ExitCode.UNREACHABLE
    assert statuses(outcome) == {
        "observe": {"two": "unreachable"},
        "base": {"master": "changed", "one": "changed", "two": "left"},
    }
    assert outcome.phases[1].hosts["two"].why == snapshot


def test_observation_counts_once(kit: Any) -> None:
    seen = PhaseResult("observe", "Look", 2.0, {"one": HostResult(HostStatus.OK, Counts(ok=1, tasks=1))})
    engine = kit.engine({"base.yml": kit.fine("one")})
    ticks = iter([10.0, 11.0, 14.0, 15.0])
    outcome = kit.run(kit.plan(kit.phase("base", "one")), engine, [], before=[seen], clock=lambda: next(ticks))
    assert outcome.counts["one"].tasks == 3
    assert outcome.duration_s == 7.0
    assert outcome.phases[1].duration_s == 3.0


def test_check_run_says_so_and_drops_no_failing_host(kit: Any) -> None:
    base = kit.done(kit.event("failed", "master", msg="no kubeadm yet"), failures=["master"], rc=2)
    engine = kit.engine({"base.yml": base, "workers.yml": kit.fine("master", "one")})
    plan = kit.plan(kit.phase("base", "master"), kit.phase("workers", "master", "one", needs=("base",)))
    outcome = kit.run(plan, engine, [], check=True)
    assert all(request.check for request in engine.requests)
    assert engine.requests[1].limit == ("master", "one")
    assert outcome.exit_code is ExitCode.OK


def test_check_run_drops_an_unreachable_host(kit: Any) -> None:
    base = kit.done(kit.event("unreachable", "one", msg="gone"), dark=["one"], rc=4)
    engine = kit.engine({"base.yml": base, "time.yml": kit.fine("two")})
    plan = kit.plan(kit.phase("base", "one"), kit.phase("time", "one", "two"))
    outcome = kit.run(plan, engine, [], check=True)
    assert engine.requests[1].limit == ("two",)
    assert outcome.exit_code is ExitCode.UNREACHABLE


def test_findings_of_a_phase_decide_the_exit_code(kit: Any) -> None:
    raw = [
        {"id": "dns", "verdict": "FAIL", "message": f"no answer, {kit.secret}", "remedy": "look"},
        {"id": "time", "verdict": "PASS", "subject": "two", "message": "in sync"},
    ]
    events = kit.done(kit.event("ok", "one", findings=raw))
    outcome = kit.run(kit.plan(kit.phase("verify", "one")), kit.engine({"verify.yml": events}), [])
    assert outcome.exit_code is ExitCode.VERIFICATION_FAILED
    assert outcome.findings[0] == Finding("dns", Verdict.FAIL, "one", "no answer, ********", remedy="one says: look")
    assert outcome.findings[1] == Finding(
        "time", Verdict.UNKNOWN, "one", "it speaks of two, which is not its to judge"
    ), "a forged verdict about another machine is none"


@pytest.mark.parametrize("verdict", [Verdict.WARN, Verdict.UNKNOWN, Verdict.SKIP, Verdict.PASS])
def test_only_fail_fails(kit: Any, verdict: Verdict) -> None:
    events = kit.done(kit.event("ok", "one", findings=[{"id": "x", "verdict": verdict.value}, "not a finding"]))
    outcome = kit.run(kit.plan(kit.phase("verify", "one")), kit.engine({"verify.yml": events}), [])
    assert outcome.exit_code is ExitCode.OK
    assert [finding.verdict for finding in outcome.findings] == [verdict]


def local(step: Step) -> Step:
    """The same step, done on the controller host."""
    return replace(step, action=LocalWork(step.name, {"deep": True}))


def test_work_on_this_box_is_given_the_hosts_that_came_through(kit: Any) -> None:
    seen: list[Any] = []

    def look(hosts: Sequence[str], arguments: Mapping[str, Any]) -> list[Finding]:
        seen.append((hosts, arguments))
        return [Finding("gpu-lost", Verdict.FAIL, "one", "it is gone")]

    script = {"verify.yml": kit.done(*kit.fine("one")[:-1], kit.event("failed", "two"), failures=["two"], rc=2)}
    listener = kit.listener()
    plan = kit.plan(kit.phase("verify", "one", "two"), local(kit.phase("health", "one", "two", needs=("verify",))))
    outcome = execute(plan, Means(kit.engine(script), local={"health": look}), [listener])
    assert seen == [(("one",), {"deep": True})]
    assert [(notice.name, notice.number, notice.total) for notice in listener.of(PhaseStarted)] == [
        ("verify", 1, 2),
        ("health", 2, 2),
    ]
    assert statuses(outcome)["health"] == {"one": "ok", "two": "left"}
    assert [finding.id for finding in outcome.findings] == ["gpu-lost"]


def test_ctrl_c_in_work_on_this_box_counts(kit: Any) -> None:
    def interrupted(_hosts: Sequence[str], _arguments: Mapping[str, Any]) -> list[Finding]:
        raise KeyboardInterrupt

    plan = kit.plan(local(kit.phase("look", "master")), kit.phase("time", "master"))
    outcome = execute(plan, Means(kit.engine({}), local={"look": interrupted}), [])
    assert outcome.exit_code is ExitCode.INTERRUPTED
    assert statuses(outcome) == {"look": {"master": "interrupted"}, "time": {"master": "left"}}


def test_work_on_this_box_that_cannot_be_done_is_a_failure_in_the_report_of_what_was(
    kit: Any, snapshot: SnapshotAssertion
) -> None:
    def broken(_hosts: Sequence[str], _arguments: Mapping[str, Any]) -> list[Finding]:
        raise PaiError(f"Ansible could not run health.yml with {kit.secret}")

    plan = kit.plan(kit.phase("verify", "one"), local(kit.phase("health", "one")), kit.phase("time", "two"))
    outcome = execute(plan, Means(kit.engine({"verify.yml": kit.fine("one")}), local={"health": broken}), [])
    assert outcome.exit_code is ExitCode.STEP_FAILED
    assert outcome.phases[0].hosts["one"].status.good
    assert outcome.error is not None
    assert outcome.error.message == snapshot
    assert outcome.left == {"one": ("Health",), "two": ("Time",)}
    assert outcome.phases[2].hosts["two"].why == "Health failed"


def node(name: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}, "spec": {}}


def cordons(step: Step, *bodies: Mapping[str, Any]) -> Step:
    """The same step as calls to the cluster: each body patched into each host's node."""
    made = (
        ClusterCall(host, f"Patch {number}", "patch", {"kind": "node", "name": host, "body": body})
        for host in step.names
        for number, body in enumerate(bodies, start=1)
    )
    return replace(step, action=ClusterCalls(tuple(made)))


OUT: Mapping[str, Any] = {"spec": {"unschedulable": True}}
MARK: Mapping[str, Any] = {"metadata": {"labels": {"why": SECRET}}}


def test_calls_are_made_host_by_host_and_counted_as_tasks(kit: Any) -> None:
    api, listener = FakeCluster.of(node("one"), node("two")), kit.listener()
    plan = kit.plan(cordons(kit.phase("cordon", "one", "two"), MARK, OUT))
    outcome = execute(plan, Means(kit.engine({}), api), [listener])
    assert [patch.ref.name for _, (patch,) in api.calls] == ["one", "one", "two", "two"]
    assert all(item["spec"]["unschedulable"] for item in api.objects.values())
    assert outcome.counts["two"] == Counts(ok=2, changed=2, tasks=2)
    assert [change.task for change in outcome.phases[0].hosts["one"].changes] == ["Patch 1", "Patch 2"]
    assert SECRET not in repr(listener.notices)


def test_refused_call_ends_the_turn_of_its_host_only(kit: Any, snapshot: SnapshotAssertion) -> None:
    api = FakeCluster.of(node("two"))
    plan = kit.plan(cordons(kit.phase("cordon", "one", "two"), MARK, OUT))
    outcome = execute(plan, Means(kit.engine({}), api), [])
    assert [patch.ref.name for _, (patch,) in api.calls] == ["one", "two", "two"]
    assert statuses(outcome)["cordon"] == {"one": "failed", "two": "changed"}
    (failure,) = outcome.failures
    assert (failure.task, failure.message) == snapshot
    assert outcome.exit_code is ExitCode.STEP_FAILED


def test_ctrl_c_between_calls_leaves_the_other_hosts_alone(kit: Any) -> None:
    class Stopped(FakeCluster):
        def patch(self, patches: Sequence[Patch]) -> tuple[JsonObject, ...]:
            super().patch(patches)
            raise KeyboardInterrupt

    api = Stopped.of(node("one"), node("two"))
    outcome = execute(kit.plan(cordons(kit.phase("cordon", "one", "two"), OUT)), Means(kit.engine({}), api), [])
    assert len(api.calls) == 1
    assert statuses(outcome)["cordon"] == {"one": "interrupted", "two": "interrupted"}
    assert outcome.exit_code is ExitCode.INTERRUPTED


def test_playbook_is_given_the_variables_of_its_step_and_their_secrets_are_masked(kit: Any) -> None:
    engine = kit.engine(
        {"base.yml": kit.done(kit.event("failed", "one", msg="not new-secret"), failures=["one"], rc=2)}
    )
    step = replace(kit.phase("base", "one"), action=Playbook("base.yml", {"registry_password": "new-secret"}))
    outcome = kit.run(kit.plan(step), engine, [])
    assert engine.requests[0].extra_vars == {"registry_password": "new-secret"}
    assert outcome.failures[0].message == "not ********"


def test_refused_host_is_never_touched(kit: Any, snapshot: SnapshotAssertion) -> None:
    hosts = {"one": HostResult(HostStatus.REFUSED, why="swap is on [swap]"), "two": HostResult(HostStatus.OK)}
    looked = PhaseResult("preflight", "Look", 1.0, hosts)
    engine = kit.engine({"base.yml": kit.fine("two")})
    outcome = kit.run(kit.plan(kit.phase("base", "one", "two")), engine, [], before=[looked])
    assert engine.requests[0].limit == ("two",)
    assert outcome.phases[1].hosts["one"].why == snapshot
    assert outcome.exit_code is ExitCode.PREFLIGHT_FAILED


def test_observers_are_told_in_order_and_without_secrets(kit: Any) -> None:
    events = kit.done(
        kit.event("ok", "one", f"Log in with {kit.secret}", stdout=[{"deep": f"x{kit.secret}y"}]),
    )
    listener = kit.listener()
    kit.run(kit.plan(kit.phase("base", "one")), kit.engine({"base.yml": events}), [listener])
    assert [type(notice).__name__ for notice in listener.notices] == [
        "RunStarted", "PhaseStarted", "TaskFinished", "HostFinished", "PhaseFinished", "RunFinished",
    ]  # fmt: skip
    (task,) = listener.of(TaskFinished)
    assert task.result == {"stdout": [{"deep": "x********y"}]}
    assert task.task == "Log in with ********"
    assert kit.secret not in repr(listener.notices)
    (begun,) = listener.of(PhaseStarted)
    assert (begun.number, begun.total, begun.hosts) == (1, 1, ("one",))
