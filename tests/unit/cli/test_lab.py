"""`pai-install lab`: what reaches the lab and what comes out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli import lab as verb
from pai_install.cli.main import run
from pai_install.errors import ExitCode, PaiError
from pai_install.lab import Choice, Fault, GpuState, LabSpec, LabStatus, MachineStatus, UpReport, mixins
from pai_install.lab.record import LabRecord

LAYOUT = """
machine-sku:
  small: {mem: 1Gi, cpu: {vcore: 1}}
machine-list:
  - {hostname: a, hostip: 172.30.79.11, machine-type: small, pai-master: "true"}
  - {hostname: b, hostip: 172.30.79.12, machine-type: small, pai-worker: "true"}
"""
RUNNING = LabStatus(
    "172-30-79-0",
    (
        MachineStatus("a", "172.30.79.11", "running", 50 << 20, 125, (), "trixie"),
        MachineStatus("b", "172.30.79.12", "running", 60 << 20, 5, (), "bookworm", ("own-chrony",)),
    ),
)
BROKEN = LabStatus(
    "172-30-79-0",
    (
        MachineStatus("a", "172.30.79.11", "running", 50 << 20, 125, ("pause", "net-cut")),
        MachineStatus("b", "172.30.79.12", "stopped"),
    ),
)


@pytest.fixture
def site(tmp_path: Path) -> str:
    (tmp_path / "layout.yaml").write_text(LAYOUT)
    (tmp_path / "config.yaml").write_text("user: pai\nssh_key_file_path: .pai/lab_ssh_key\n")
    return str(tmp_path)


@pytest.fixture
def choices() -> list[Choice]:
    """What `up` was asked for beyond the site."""
    return []


@pytest.fixture
def ups(monkeypatch: pytest.MonkeyPatch, choices: list[Choice]) -> list[bool]:
    """Answers to the lab's question, one per `up`."""
    answers: list[bool] = []

    def up(_spec: LabSpec, choice: Choice, *, confirm: Any, progress: Any) -> UpReport:
        choices.append(choice)
        answers.append(confirm("packages: x. Install them?"))
        progress("started a")
        return UpReport(("started a",), 12.3)

    monkeypatch.setattr(verb, "up", up)
    monkeypatch.setattr(verb, "status", lambda _spec: RUNNING)
    return answers


def test_up_says_what_it_does_apart_from_its_result(
    site: str, ups: list[bool], capsys: Any, snapshot: SnapshotAssertion
) -> None:
    assert run(["lab", "up", "--site", site, "--yes"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert out == snapshot
    assert "started a" in err
    assert ups == [True]


def test_up_asks_without_yes(site: str, ups: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "confirm", lambda _question, **_options: False)
    run(["lab", "up", "--site", site])
    assert ups == [False]


def test_up_json(site: str, ups: list[bool], capsys: Any) -> None:
    assert run(["lab", "up", "--site", site, "--yes", "--format", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["changed"] == ["started a"]
    assert document["ok"] is True
    assert [machine["name"] for machine in document["machines"]] == ["a", "b"]


def test_up_with_nothing_to_do(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(verb, "up", lambda _spec, _choice, **_options: UpReport((), 1.0))
    assert run(["lab", "up", "--site", site]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot


def test_status_table_and_exit_code(site: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(verb, "status", lambda _spec: RUNNING)
    assert run(["lab", "status", "--site", site]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["MACHINE", "STATE", "ADDRESS", "MEMORY", "UPTIME", "SYSTEM", "MIX-INS", "FAULTS"]
    assert lines[1].split() == ["a", "running", "172.30.79.11", "50", "MiB", "2", "min", "5", "s", "trixie", "-", "-"]
    assert lines[2].split()[-3:] == ["bookworm", "own-chrony", "-"]


def test_status_of_a_lab_that_is_not_whole(site: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(verb, "status", lambda _spec: BROKEN)
    assert run(["lab", "status", "--site", site]) == ExitCode.UNREACHABLE
    assert "pause net-cut" in capsys.readouterr().out
    assert run(["lab", "status", "--site", site, "--format", "json"]) == ExitCode.UNREACHABLE
    document = json.loads(capsys.readouterr().out)
    assert document["machines"][0]["faults"] == ["pause", "net-cut"]
    assert document["machines"][1]["memory_bytes"] is None


@pytest.fixture
def downs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    asked: list[Path] = []

    def down_site(state_dir: Path, *, progress: Any) -> tuple[str, ...]:
        asked.append(state_dir)
        progress("removed bridge b")
        return ("bridge b",)

    monkeypatch.setattr(verb, "down_site", down_site)
    monkeypatch.setattr(verb, "labs_of", lambda _state: ((Path("/x"), LabRecord("172-30-79-0", "/s")),))
    return asked


def test_down_works_on_a_site_whose_files_are_broken(tmp_path: Path, downs: list[Path], capsys: Any) -> None:
    (tmp_path / "layout.yaml").write_text("{")
    assert run(["lab", "down", "--yes", "--format", "json", "--site", str(tmp_path)]) == ExitCode.OK
    assert downs == [tmp_path.resolve() / ".pai"]
    assert json.loads(capsys.readouterr().out)["removed"] == ["bridge b"]


def test_down_does_nothing_after_a_no(site: str, downs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _text: "n")
    assert run(["lab", "down", "--site", site]) == ExitCode.INTERRUPTED
    assert downs == []


def test_down_of_nothing_asks_nothing(site: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(verb, "labs_of", lambda _state: ())
    monkeypatch.setattr(verb, "down_site", lambda _state, **_options: ())
    assert run(["lab", "down", "--site", site]) == ExitCode.OK
    assert capsys.readouterr().out == "nothing to remove\n"


def test_ssh_becomes_ssh_with_the_command_untouched(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda _file, words: called.append(words))
    run(["lab", "ssh", "--site", site, "b", "--", "ls", "-la", "--help"])
    assert called[0][0] == "ssh"
    assert called[0][-5:] == ["pai@172.30.79.12", "--", "ls", "-la", "--help"]


def test_ssh_to_an_unknown_machine(site: str, capsys: Any) -> None:
    assert run(["lab", "ssh", "--site", site, "c"]) == ExitCode.USAGE
    assert "code: lab-unknown-machine" in capsys.readouterr().err


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_reaches_its_machine(site: str, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, Fault]] = []

    def inject(_spec: LabSpec, machine: Any, what: Fault) -> str:
        made.append((machine.name, what))
        return "done"

    monkeypatch.setattr(verb, "inject", inject)
    assert run(["lab", "fault", "--site", site, "b", fault.value]) == ExitCode.OK
    assert made == [("b", fault)]


def test_heal_says_what_it_took_back(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(verb, "heal", lambda _spec, _machine: ("pause", "power-off"))
    assert run(["lab", "fault", "--site", site, "a", "heal"]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot


def test_a_fault_that_cannot_be_made_is_an_error_with_its_reason(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def inject(*_arguments: object) -> str:
        raise PaiError("this fault cannot be made here: no freezer", exit_code=ExitCode.PREFLIGHT_FAILED)

    monkeypatch.setattr(verb, "inject", inject)
    assert run(["lab", "fault", "--site", site, "a", "pause"]) == ExitCode.PREFLIGHT_FAILED
    assert "no freezer" in capsys.readouterr().err


def test_unknown_fault_is_a_usage_error(site: str) -> None:
    assert run(["lab", "fault", "--site", site, "a", "explode"]) == ExitCode.USAGE


def test_a_site_that_is_wrong_is_named_before_the_lab_is_touched(tmp_path: Path) -> None:
    assert run(["lab", "up", "--site", str(tmp_path), "--yes"]) == ExitCode.SITE_INVALID


@pytest.mark.parametrize("state", list(GpuState))
def test_every_state_of_gpus_reaches_its_machine(
    site: str, state: GpuState, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    made: list[tuple[str, GpuState]] = []

    def show(_spec: LabSpec, machine: Any, what: GpuState) -> str:
        made.append((machine.name, what))
        return "b shows it"

    monkeypatch.setattr(verb, "show", show)
    assert run(["lab", "gpu", "--site", site, "b", state.value]) == ExitCode.OK
    assert made == [("b", state)]
    assert capsys.readouterr().out == "b shows it\n"


def test_gpus_of_a_machine_without_any_is_a_usage_error(site: str, capsys: Any) -> None:
    assert run(["lab", "gpu", "--site", site, "a", "gpu-lost"]) == ExitCode.USAGE
    assert "code: lab-machine-without-gpus" in capsys.readouterr().err


def test_suites_and_mix_ins_reach_the_lab(site: str, ups: list[bool], choices: list[Choice]) -> None:
    words = ["--suite", "bookworm", "--suite", "a=trixie", "--with", "b=own-chrony"]
    assert run(["lab", "up", "--site", site, "--yes", *words]) == ExitCode.OK
    assert choices == [Choice({"a": "trixie", "b": "bookworm"}, {"b": ("own-chrony",)})]


def test_a_mix_in_that_does_not_exist_is_refused_with_those_that_do(site: str, ups: list[bool], capsys: Any) -> None:
    assert run(["lab", "up", "--site", site, "--yes", "--with", "podman"]) == ExitCode.USAGE
    assert "own-chrony" in capsys.readouterr().err
    assert ups == []


def test_mix_ins_are_listed_with_a_sentence_each(capsys: Any) -> None:
    assert run(["lab", "mixins"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert len(text.splitlines()) == len(mixins())
    assert run(["lab", "mixins", "--format", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert {row["name"]: row["leaves"] for row in document["mixins"]} == dict(mixins())
