"""A lab of two machines, and a stand-in for the door to other programs that writes down what was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import PaiError
from pai_install.lab.names import MachineNames
from pai_install.lab.spec import LabMachine, LabSpec
from pai_install.system.proc import Completed


@dataclass
class Ran:
    """Commands in order, with their standard input; `answers` decides what a command returns."""

    commands: list[str] = field(default_factory=list)
    inputs: list[str | None] = field(default_factory=list)
    answers: list[tuple[str, int, str]] = field(default_factory=list)

    def answer(self, prefix: str, returncode: int = 0, stdout: str = "") -> None:
        """The next and all later commands that start with `prefix` return this; the last word counts."""
        self.answers.insert(0, (prefix, returncode, stdout))

    def __call__(self, argv: Sequence[str | Path], **options: Any) -> Completed:
        line = " ".join(str(word) for word in argv)
        self.commands.append(line)
        self.inputs.append(options.get("stdin"))
        code, stdout = next(((code, out) for prefix, code, out in self.answers if line.startswith(prefix)), (0, ""))
        if code and options.get("check", True):
            raise PaiError(f"{argv[0]} failed with exit status {code}")
        return Completed(tuple(str(word) for word in argv), code, stdout, "")

    def matching(self, prefix: str) -> list[str]:
        """Commands that start with `prefix`."""
        return [command for command in self.commands if command.startswith(prefix)]


@pytest.fixture
def ran() -> Ran:
    return Ran()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, ran: Ran) -> Callable[..., Ran]:
    """Call it with modules: their `run` is the stand-in from then on."""

    def install(*modules: Any) -> Ran:
        for module in modules:
            monkeypatch.setattr(module, "run", ran)
        return ran

    return install


@pytest.fixture
def spec(tmp_path: Path) -> LabSpec:
    state = tmp_path / "site/.pai"
    machines = (
        LabMachine("one", IPv4Address("172.30.79.11")),
        LabMachine("two", IPv4Address("172.30.79.12"), port=2222),
    )
    return LabSpec(machines, "pai", state / "lab_ssh_key", state)


@pytest.fixture
def names(tmp_path: Path) -> MachineNames:
    return MachineNames("pai-172.30.79.11", "pv-ac1e4f0b", "pai-ac1e4f0b", tmp_path / "lab/one")
