"""The verbs apply and plan from argv to exit code, on a scripted engine."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode, PaiError
from pai_install.run.lock import site_lock
from pai_install.run.state import open_state
from tests.unit.cli.stub_environment import CONSOLE, World, add_console, facts, run, write_site
from tests.unit.runs import SECRET, done, event, phase

WORK = (phase("base", "master", "one", "two"), phase("workers", "one", "two", needs=("base",)))
FINE = {
    "base.yml": done(*(event("changed", host, "Write a file") for host in ("master", "one", "two"))),
    "workers.yml": done(event("ok", "one"), event("ok", "two")),
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def last_run(site: Path) -> Path:
    return open_state(site).all_runs()[-1].path


def test_apply_does_the_plan_and_reports(site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion) -> None:
    world = in_world(World(WORK, dict(FINE)))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.OK
    assert [request.playbook for request in world.ansible.requests] == ["observe.yml", "base.yml", "workers.yml"]
    out, err = capsys.readouterr()
    assert "[1/2] Base (3 machines)" in err
    assert err == snapshot
    assert "done in" in out
    assert "3 changes" in out
    assert str(last_run(site) / "report.html") in out.replace("\n", "")


def test_the_last_lines_are_the_console_and_its_fingerprint(site: Path, in_world: Any, capsys: Any) -> None:
    wanted = add_console(site)
    in_world(World(WORK, dict(FINE)))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.OK
    assert capsys.readouterr().err.splitlines()[-2:] == wanted
    (site / "services-configuration.yaml").write_text(f"{CONSOLE}console: false\n")
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.OK
    assert "console" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["--check"], FINE),
        (["--yes"], {**FINE, "base.yml": done(event("failed", "one", msg="x"), failures=["one"], rc=2)}),
    ],
    ids=["check", "failure"],
)
def test_a_run_that_brings_no_console_says_nothing_of_it(
    site: Path, in_world: Any, capsys: Any, words: list[str], script: dict[str, Any]
) -> None:
    add_console(site)
    in_world(World(WORK, dict(script)))
    run(["apply", "--site", str(site), *words])
    assert "console" not in capsys.readouterr().err


def test_every_file_of_a_run_is_private_and_without_secrets(site: Path, in_world: Any, capsys: Any) -> None:
    leak = done(event("failed", "one", "Log in", msg=f"wrong password {SECRET}", stderr=SECRET), failures=["one"], rc=2)
    in_world(World(WORK, {**FINE, "base.yml": leak}))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.STEP_FAILED
    names = {path.name for path in last_run(site).iterdir()}
    assert names == {"plan.json", "events.jsonl", "report.json", "report.md", "report.html"}
    for path in (site / ".pai").rglob("*"):
        if path.is_file():
            assert SECRET not in path.read_text(), path
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 or path.name == ".gitignore", path
    assert SECRET not in "".join(capsys.readouterr())


def test_json_report_has_the_published_shape(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(World(WORK, dict(FINE)))
    assert run(["apply", "--site", str(site), "--yes", "--format", "json"]) == ExitCode.OK
    out, _ = capsys.readouterr()
    report = json.loads(out)
    assert list(report) == ["schema_version", "ok", "exit_code", "duration_s", "hosts", "phases", "findings"]
    assert (report["ok"], report["exit_code"]) == (True, 0)
    assert report["hosts"]["one"] == {
        "ok": 3, "changed": 1, "failed": 0, "unreachable": 0, "skipped": 0, "tasks": 3,
    }  # fmt: skip
    assert [p["name"] for p in report["phases"]] == ["observe", "base", "workers"]
    assert json.loads((last_run(site) / "report.json").read_text()) == report


def test_nothing_to_do_judges_the_standing(site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion) -> None:
    sick = Finding("node-ready", Verdict.FAIL, "one", "node is not Ready", remedy="look")
    world = in_world(World(findings=(sick,)))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.VERIFICATION_FAILED
    assert len(world.ansible.requests) == 1
    out, err = capsys.readouterr()
    assert "nothing to do" in err
    assert out == snapshot
    in_world(World())
    assert run(["apply", "--site", str(site), "--yes", "--format", "json"]) == ExitCode.OK
    counts = json.loads(capsys.readouterr().out)["hosts"]
    assert all(host["changed"] == 0 and host["tasks"] == 1 for host in counts.values())


def test_dead_machine_is_named_and_the_others_are_done(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    seen = [event("ok", name, ansible_facts=facts(name)) for name in ("master", "one")]
    observe = done(*seen, event("unreachable", "two", msg="No route to host"), dark=["two"], rc=4)
    world = in_world(World(WORK, {**FINE, "observe.yml": observe}))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.UNREACHABLE
    assert world.asked[-1]["unreachable"] == {"two": "No route to host"}
    assert world.ansible.requests[-1].limit == ("one",)
    out, err = capsys.readouterr()
    assert err == snapshot
    assert out == snapshot


SWAP = Finding("swap", Verdict.FAIL, "two", "swap is on", remedy="swapoff")
LOST = Finding("reachable", Verdict.FAIL, "one", "it did not answer")


def test_refused_machine_is_left_as_it_is_and_the_others_are_done(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    world = in_world(World(WORK, dict(FINE), new_machines=("one", "two"), in_the_way=(SWAP, LOST)))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.PREFLIGHT_FAILED
    touched = {host for request in world.ansible.requests[1:] for host in request.limit}
    assert "two" not in touched
    assert "one" in touched, "preflight's trouble to reach a machine must not keep it out"
    out, err = capsys.readouterr()
    assert err == snapshot
    assert out == snapshot
    assert "preflight refused two" in out
    assert json.loads((last_run(site) / "preflight.json").read_text())["ok"] is False


def test_forced_check_lets_the_machine_in(site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion) -> None:
    world = in_world(World(WORK, dict(FINE), new_machines=("two",), in_the_way=(SWAP,)))
    assert run(["apply", "--site", str(site), "--yes", "--force-check", "swap"]) == ExitCode.OK
    assert {"preflight": ("two",), "forced": ("swap",)} in world.asked
    assert capsys.readouterr().err == snapshot
    assert run(["apply", "--site", str(site), "--yes", "--force-check", "swop"]) == ExitCode.USAGE


def test_refused_leader_refuses_everybody(site: Path, in_world: Any, capsys: Any) -> None:
    swap = SWAP._replace(subject="master")
    world = in_world(World(WORK, dict(FINE), new_machines=("master", "one"), in_the_way=(swap,)))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.PREFLIGHT_FAILED
    assert [request.playbook for request in world.ansible.requests] == ["observe.yml"]
    assert "preflight refused master" in (last_run(site) / "report.json").read_text()
    del capsys


def test_plan_says_who_is_refused(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(World(WORK, dict(FINE), new_machines=("two",), in_the_way=(SWAP,)))
    assert run(["plan", "--site", str(site), "--no-diff", "--format", "json"]) == ExitCode.PREFLIGHT_FAILED
    assert json.loads(capsys.readouterr().out)["refused"] == {"two": "swap is on [swap]"}
    assert run(["plan", "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED


def test_without_a_terminal_yes_is_needed_before_any_machine_is_looked_at(
    site: Path, in_world: Any, capsys: Any
) -> None:
    world = in_world(World(WORK, dict(FINE)))
    assert run(["apply", "--site", str(site)]) == ExitCode.USAGE
    assert "--yes" in capsys.readouterr().err
    assert world.ansible.requests == []
    assert run(["apply", "--site", str(site), "--check"]) == ExitCode.OK


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: str | BaseException) -> None:
    def reply(_prompt: str) -> str:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", reply)


@pytest.mark.parametrize("answer", ["n", "", EOFError()])
def test_no_and_the_end_of_input_do_nothing_and_say_so(
    site: Path, in_world: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    world = in_world(World(WORK, dict(FINE)))
    at_a_terminal(monkeypatch, answer)
    assert run(["apply", "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    assert "no changes made" in capsys.readouterr().err
    assert [request.playbook for request in world.ansible.requests] == ["observe.yml"]


@pytest.mark.parametrize(("answer", "code"), [("y", ExitCode.OK), (KeyboardInterrupt(), ExitCode.INTERRUPTED)])
def test_yes_goes_on_and_ctrl_c_is_told(
    site: Path, in_world: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch, answer: Any, code: ExitCode
) -> None:
    in_world(World(WORK, dict(FINE)))
    at_a_terminal(monkeypatch, answer)
    assert run(["apply", "--site", str(site)]) == code
    assert ("interrupted" in capsys.readouterr().err) is (code is ExitCode.INTERRUPTED)


def test_nothing_to_do_asks_nothing(site: Path, in_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    in_world(World())
    at_a_terminal(monkeypatch, AssertionError("it asked"))
    assert run(["apply", "--site", str(site)]) == ExitCode.OK


@pytest.mark.parametrize("work", [WORK, ()])
@pytest.mark.parametrize(("kind", "where", "code"), [("failed", "failures", 6), ("unreachable", "dark", 5)], ids=str)
def test_every_verb_has_one_code_for_one_state(
    site: Path, in_world: Any, work: Any, kind: str, where: str, code: int
) -> None:
    seen = [event("ok", name, ansible_facts=facts(name)) for name in ("master", "one")]
    observe = done(*seen, event(kind, "two", msg="no python"), **{where: ["two"]}, rc=2)
    in_world(World(work, {**FINE, "observe.yml": observe}))
    for words in (["plan"], ["plan", "--no-diff"], ["status"], ["apply", "--check"], ["apply", "--yes"]):
        assert run([*words, "--site", str(site)]) == code, words


def test_limit_and_phase_narrow_the_plan_and_the_look(site: Path, in_world: Any) -> None:
    world = in_world(World())
    arguments = ["--limit", "two,two", "--limit", "one", "--phase", "base", "--accept-new"]
    assert run(["apply", "--site", str(site), "--yes", *arguments]) == ExitCode.OK
    assert world.asked[0] == {"accept_new": True}
    assert world.asked[1]["limit"] == ("two", "one")
    assert world.asked[1]["phases"] == ("base",)
    assert world.ansible.requests[0].limit == ("master", "one", "two")
    run(["apply", "--site", str(site), "--yes", "--limit", "two"])
    assert world.ansible.requests[1].limit == ("master", "two")


def test_unknown_machine_is_refused_before_anything(site: Path, in_world: Any, capsys: Any) -> None:
    world = in_world(World())
    assert run(["apply", "--site", str(site), "--yes", "--limit", "three"]) == ExitCode.USAGE
    assert "three" in capsys.readouterr().err
    assert world.ansible.requests == []
    assert not (site / ".pai").exists()


def test_invalid_site_is_refused(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(World())
    (site / "layout.yaml").write_text("machine-list: 3\n")
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.SITE_INVALID
    assert "layout.yaml:1:" in capsys.readouterr().err


def test_second_run_at_the_same_time_is_refused(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    world = in_world(World(WORK, dict(FINE)))
    with site_lock(open_state(site).path, "apply"):
        for words in (["apply", "--yes"], ["plan"]):
            assert run([*words, "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    assert capsys.readouterr().err == snapshot
    assert world.ansible.requests == []


def test_interrupted_run_is_told_and_done_again(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    in_world(World(WORK, {**FINE, "workers.yml": [event("ok", "one"), ZeroDivisionError("crash")]}))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.INTERNAL
    capsys.readouterr()
    in_world(World(WORK, dict(FINE)))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.OK
    assert capsys.readouterr().err == snapshot
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.OK
    assert "was interrupted" not in capsys.readouterr().err


@pytest.mark.parametrize("playbook", ["observe.yml", "base.yml", "workers.yml"])
def test_ctrl_c_anywhere_is_130(site: Path, in_world: Any, playbook: str) -> None:
    world = in_world(World(WORK, {**FINE, playbook: [KeyboardInterrupt()]}))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.INTERRUPTED
    assert len(world.ansible.closed) == len(world.ansible.requests)
    with site_lock(open_state(site).path, "apply"):
        pass


def test_plan_shows_reasons_and_differences_and_does_nothing(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    diff = {"before": "a\n", "after": f"{SECRET}\n", "before_header": "/etc/x", "after_header": "/etc/x"}
    check = done(*(event("changed", host, "Write x", diff=diff) for host in ("master", "one")))
    world = in_world(World(WORK, {**FINE, "base.yml": check}))
    assert run(["plan", "--site", str(site)]) == ExitCode.OK
    assert [request.check for request in world.ansible.requests] == [False, True, True]
    summary = capsys.readouterr().out
    assert summary == snapshot
    assert "****" not in summary
    assert summary.splitlines()[-1].startswith("Plan: ")
    assert run(["plan", "--site", str(site), "--diff"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert out == snapshot
    assert "    +********\n" in out
    assert SECRET not in out
    assert not (last_run(site) / "report.json").exists()
    assert not (site / ".pai" / "journal.jsonl").exists()


def test_plan_does_not_verify(site: Path, in_world: Any) -> None:
    world = in_world(World((*WORK, replace(phase("verify", "master"), proves=True)), dict(FINE)))
    assert run(["plan", "--site", str(site)]) == ExitCode.OK
    assert [request.playbook for request in world.ansible.requests] == ["observe.yml", "base.yml", "workers.yml"]


def test_plan_without_differences_runs_the_observation_only(site: Path, in_world: Any) -> None:
    world = in_world(World(WORK, {}))
    assert run(["plan", "--site", str(site), "--no-diff"]) == ExitCode.OK
    assert len(world.ansible.requests) == 1


def test_plan_names_an_unreachable_machine(site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion) -> None:
    in_world(World((), {"observe.yml": done(event("unreachable", "one", msg="gone"), dark=["one"], rc=4)}))
    assert run(["plan", "--site", str(site)]) == ExitCode.UNREACHABLE
    assert capsys.readouterr().out == snapshot


def test_check_run_of_a_fresh_machine_is_no_failure(site: Path, in_world: Any, capsys: Any) -> None:
    missing = done(event("failed", "one", msg="kubeadm: not found"), failures=["one"], rc=2)
    world = in_world(World(WORK, {**FINE, "workers.yml": missing}))
    assert run(["apply", "--site", str(site), "--check"]) == ExitCode.OK
    assert all(request.check for request in world.ansible.requests[1:])
    assert "nothing was changed" in capsys.readouterr().out
    assert not (last_run(site) / "report.json").exists()


def save_plan(site: Path, path: Path, capsys: Any) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["plan", "--site", str(site), "--no-diff", "--format", "json"]) == ExitCode.OK
    path.write_text(capsys.readouterr().out)
    data = json.loads(path.read_text())
    assert isinstance(data, dict)
    return data


def test_saved_plan_is_applied_while_it_holds(site: Path, in_world: Any, capsys: Any, tmp_path: Path) -> None:
    in_world(World(WORK, dict(FINE)))
    data = save_plan(site, tmp_path / "plan.json", capsys)
    assert (data["schema_version"], data["operation"], data["empty"]) == (2, "apply", False)
    steps = [(step["host"], step["reasons"]) for step in data["phases"][1]["hosts"]]
    assert steps == [(name, ["never installed"]) for name in ("one", "two")]
    assert SECRET not in json.dumps(data)
    assert run(["apply", "--site", str(site), "--yes", "--plan", str(tmp_path / "plan.json")]) == ExitCode.OK


def test_saved_plan_that_does_not_hold_any_more_says_what_moved(
    site: Path, in_world: Any, capsys: Any, tmp_path: Path
) -> None:
    in_world(World(WORK, dict(FINE)))
    save_plan(site, tmp_path / "plan.json", capsys)
    world = in_world(World((phase("base", "master"), phase("network", "one")), dict(FINE)))
    code = run(["apply", "--site", str(site), "--yes", "--plan", str(tmp_path / "plan.json")])
    assert code == ExitCode.PREFLIGHT_FAILED
    err = capsys.readouterr().err
    assert "code: plan-file-outdated" in err
    assert "base on master" not in err.partition("error:")[2]
    assert len(world.ansible.requests) == 1


def test_saved_plan_does_not_hold_when_a_file_was_edited_since(
    site: Path, in_world: Any, capsys: Any, tmp_path: Path
) -> None:
    """The reasons are the same sentences: only the differences tell that something else would be overwritten."""

    def edited(text: str) -> World:
        diff = {"before": text, "after": "ours\n", "before_header": "/etc/x"}
        written = done(*(event("changed", host, "Write x", diff=diff) for host in ("master", "one", "two")))
        world = World(WORK, {**FINE, "base.yml": written})
        in_world(world)
        return world

    edited("by hand\n")
    saved = tmp_path / "plan.json"
    assert run(["plan", "--site", str(site), "--format", "json"]) == ExitCode.OK
    saved.write_text(capsys.readouterr().out)
    command = ["apply", "--site", str(site), "--yes", "--plan", str(saved)]
    world = edited("by hand, once more\n")
    assert run(command) == ExitCode.PREFLIGHT_FAILED
    assert "code: plan-file-outdated" in capsys.readouterr().err
    assert all(request.check for request in world.ansible.requests[1:])
    world = edited("by hand\n")
    assert run(command) == ExitCode.OK
    assert [request.check for request in world.ansible.requests] == [False, True, True, False, False]
    events = (last_run(site) / "events.jsonl").read_text().splitlines()
    assert len(events) == 3 + 3 + 2, "what would be done is not what was done"


@pytest.mark.parametrize("content", ["", "[]", "{", '{"phases": 3}', '{"phases": [{}]}'])
def test_file_that_is_no_plan_is_refused(site: Path, in_world: Any, tmp_path: Path, capsys: Any, content: str) -> None:
    in_world(World(WORK, dict(FINE)))
    (tmp_path / "plan.json").write_text(content)
    assert run(["apply", "--site", str(site), "--yes", "--plan", str(tmp_path / "plan.json")]) == ExitCode.USAGE
    assert "code: plan-file-invalid" in capsys.readouterr().err


def test_broken_ansible_is_reported_with_its_words(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    in_world(World(WORK, {**FINE, "base.yml": [PaiError("Ansible could not run base.yml", details="line 3")]}))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.STEP_FAILED
    out = capsys.readouterr().out
    assert out == snapshot
    report = json.loads((last_run(site) / "report.json").read_text())
    assert report["phases"][1]["failure"]["evidence"] == "line 3"


def test_cluster_that_was_not_proven_is_not_done(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    """After a failed verification the next apply said that there was nothing to change, and status 0."""
    verify = replace(phase("verify", "master", "one", "two"), proves=True)
    dns = [{"id": "cluster-dns", "verdict": "FAIL", "message": "no answer"}]
    failed = done(event("ok", "master"), event("ok", "one", findings=dns), event("ok", "two"))
    in_world(World((*WORK, verify), {**FINE, "verify.yml": failed}))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.VERIFICATION_FAILED
    world = in_world(World())
    capsys.readouterr()
    assert run(["status", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    name = last_report(site)
    assert capsys.readouterr().out == snapshot
    assert run(["status", "--site", str(site), "--offline"]) == ExitCode.VERIFICATION_FAILED
    world.phases, world.script["verify.yml"] = (
        (verify,),
        done(*(event("ok", name) for name in ("master", "one", "two"))),
    )
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.OK
    assert world.asked[-1]["unproven"] == {"one": f"run {name} found cluster-dns failed"}
    world.phases = ()
    assert run(["status", "--site", str(site)]) == ExitCode.OK
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.OK
    assert world.asked[-1]["unproven"] == {}


def last_report(site: Path) -> str:
    return open_state(site).reports()[0].parent.name


def test_run_that_was_cut_off_before_its_proof_is_not_done(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(World(WORK, {**FINE, "workers.yml": [event("ok", "one"), ZeroDivisionError("crash")]}))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.INTERNAL
    world = in_world(World())
    assert run(["status", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    assert "two is not proven" in capsys.readouterr().out
    assert run(["plan", "--site", str(site)]) == ExitCode.OK
    assert set(world.asked[-1]["unproven"]) == {"master", "one", "two"}
    (site / ".pai" / "proof.json").unlink()
    assert run(["status", "--site", str(site)]) == ExitCode.OK, "a lost state folder forces no work"
