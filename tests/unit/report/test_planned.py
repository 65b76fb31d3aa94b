"""Plans as text and JSON; what moved between two."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from syrupy.assertion import SnapshotAssertion

from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, Inventory, LocalWork, Playbook, Step
from pai_install.report.changed_files import LineCount
from pai_install.report.diffs import FileChange
from pai_install.report.plan import plan_document
from pai_install.report.planned import plan_changes, plan_summary, plan_text


def test_text_groups_machines_by_reason(kit: Any, snapshot: SnapshotAssertion) -> None:
    steps = (HostStep("a", ("x was deleted", "y changed")), HostStep("b", ("new",)), HostStep("c", ("new",)))
    plan = kit.plan(Step("base", "Prepare", steps, Playbook("base.yml")), unreachable={"d": "no route"})
    assert plan_text(plan) == snapshot


def test_text_names_restarts_below_the_reasons(kit: Any, snapshot: SnapshotAssertion) -> None:
    effects, impact = ("restarts docker.service",), ("1 running container of Docker runs on",)
    steps = (HostStep("a", ("new",), effects, impact), HostStep("b", ("new",)))
    plan = kit.plan(Step("runtime", "Install", steps, Playbook("runtime.yml")))
    assert plan_text(plan) == snapshot


def test_what_is_said_of_a_machine_is_shown_where_nothing_restarts(kit: Any) -> None:
    step = HostStep("a", ("new",), (), ("recreate pods with GPUs",))
    plan = kit.plan(Step("runtime", "Install", (step,), Playbook("runtime.yml")))
    assert plan_text(plan).endswith("   a: new\n      recreate pods with GPUs\n")


def test_a_restart_that_the_saved_plan_did_not_name_is_a_move(kit: Any, snapshot: SnapshotAssertion) -> None:
    saved = plan_document(kit.plan(kit.phase("base", "one"))).as_json()
    step = HostStep("one", ("never installed",), ("restarts docker.service",), ("3 running containers",))
    now = kit.plan(Step("base", "Base", (step,), Playbook("base.yml")))
    assert plan_changes(saved, now) == snapshot
    assert plan_changes(plan_document(now).as_json(), kit.plan(kit.phase("base", "one"))) == ()


def test_text_of_many_machines_is_short_and_of_none_says_so(kit: Any, snapshot: SnapshotAssertion) -> None:
    plan = kit.plan(kit.phase("base", *(f"n{number}" for number in range(1000))))
    assert plan_text(plan) == snapshot
    assert plan_text(kit.plan()) == snapshot


def test_machines_that_did_not_answer_are_not_said_to_match(kit: Any, snapshot: SnapshotAssertion) -> None:
    plan = replace(kit.plan(unreachable={"one": "gone"}), silent=True)
    assert plan_text(plan) == snapshot


def test_json_holds_everything_but_secrets(kit: Any) -> None:
    plan = kit.plan(kit.phase("base", "one", needs=("time",)), unreachable={"two": "gone"})
    data = plan_document(plan, (FileChange("base", "one", "Write", "+x"),)).as_json()
    assert data["phases"] == [
        {
            "name": "base",
            "title": "Base",
            "action": {"kind": "playbook", "playbook": "base.yml", "variables": {}},
            "undo": None,
            "needs": ["time"],
            "hosts": [{"host": "one", "reasons": ["never installed"], "effects": [], "remarks": []}],
        }
    ]
    assert data["unreachable"] == {"two": "gone"}
    assert data["changes"] == [{"phase": "base", "host": "one", "task": "Write", "diff": "+x", "digest": ""}]
    assert kit.secret not in json.dumps(data)


DRAIN = {"host": "one", "title": "Drain it", "verb": "drain", "arguments": {"node": "one", "token": "********"}}


def test_every_kind_of_action_is_plain_data_without_secrets(kit: Any) -> None:
    calls = ClusterCalls((ClusterCall("one", "Drain it", "drain", {"node": "one", "token": "fresh-secret"}),))
    back = ClusterCalls((ClusterCall("one", "Uncordon it", "patch", {"name": "one"}),))
    steps = (HostStep("one", ("asked for",)),)
    plan = kit.plan(
        Step("turn", "Turn", steps, Playbook("turn.yml", {"new_password": "fresh-secret", "port": 5})),
        Step("drain", "Drain", steps, calls, undo=back),
        Step("tell", "Tell", steps, LocalWork("tell", {"title": kit.secret})),
    )
    data = plan_document(plan).as_json()
    assert [step["action"] for step in data["phases"]] == [
        {"kind": "playbook", "playbook": "turn.yml", "variables": {"new_password": "********", "port": 5}},
        {"kind": "cluster-calls", "calls": [DRAIN]},
        {"kind": "local-work", "name": "tell", "arguments": {"title": "********"}},
    ]
    assert data["phases"][1]["undo"]["calls"][0]["title"] == "Uncordon it"
    json.dumps(data)


def test_a_step_that_can_be_taken_back_says_how(kit: Any, snapshot: SnapshotAssertion) -> None:
    hosts = (HostStep("one", ("asked for",)), HostStep("two", ("asked for",)))
    step = Step("cordon", "Cordon", hosts, Playbook("x.yml"), undo=Playbook("y.yml"), undo_verb="node uncordon")
    plan = kit.plan(step, Step("drain", "Drain", hosts, Playbook("z.yml")))
    assert plan_text(plan).count("undo: ") == 1
    assert plan_text(plan) == snapshot
    phases = plan_document(plan).as_json()["phases"]
    assert phases[0]["undo"] == {
        "kind": "playbook",
        "playbook": "y.yml",
        "variables": {},
        "command": "pai-install node uncordon one two",
    }
    assert phases[1]["undo"] is None


def test_other_work_for_the_same_reason_is_a_move(kit: Any, snapshot: SnapshotAssertion) -> None:
    steps = (HostStep("one", ("asked for",)),)
    saved = plan_document(kit.plan(Step("drain", "Drain", steps, Playbook("drain.yml", {"grace": 5})))).as_json()
    now = kit.plan(Step("drain", "Drain", steps, Playbook("drain.yml", {"grace": 0})))
    assert plan_changes(saved, now) == snapshot


def test_plan_did_not_move_when_nothing_did(kit: Any) -> None:
    plan = kit.plan(kit.phase("base", "one", "two"))
    assert plan_changes(json.loads(json.dumps(plan_document(plan).as_json())), plan) == ()


def test_every_kind_of_move_is_said(kit: Any, snapshot: SnapshotAssertion) -> None:
    saved = plan_document(kit.plan(kit.phase("base", "one", "two"))).as_json()
    changed = Step("base", "Base", (HostStep("one", ("a file was deleted",)),), Playbook("base.yml"))
    assert plan_changes(saved, kit.plan(changed, kit.phase("time", "two"))) == snapshot


def test_changed_setting_is_a_move_and_a_changed_secret_alone_is_not(kit: Any, snapshot: SnapshotAssertion) -> None:
    plan = kit.plan(kit.phase("base", "one"))
    saved = plan_document(plan).as_json()
    other = Inventory(plan.inventory.groups, {**plan.inventory.shared_vars, "x": 1}, plan.inventory.host_vars)
    assert plan_changes(saved, replace(plan, inventory=other)) == snapshot
    rotated = Inventory(plan.inventory.groups, {"ansible_become_password": "another"}, plan.inventory.host_vars)
    assert plan_changes(saved, replace(plan, inventory=rotated)) == ()


def test_the_summary_counts_machines_files_and_restarts(kit: Any) -> None:
    steps = (HostStep("a", ("new",), ("restarts docker.service",)), HostStep("b", ("new",)))
    plan = kit.plan(Step("runtime", "Install", steps, Playbook("runtime.yml")), unreachable={"d": "no route"})
    change = FileChange("runtime", "a", "Write", "", counts=(LineCount("/x", 1, 0), LineCount("/y", 1, 0)))
    numbers = "Plan: 2 machines in 1 phase, 2 files to change, 1 restart, 1 machine not observed."
    assert plan_summary(plan, (change,)).splitlines() == [numbers]
    assert plan_summary(replace(plan, jobs="Jobs stop."), ()).splitlines()[0] == "Jobs stop."
    assert "files" not in plan_summary(plan, None)
    assert plan_summary(kit.plan(), ()) == ""
