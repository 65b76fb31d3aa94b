"""Scripts made of commands run as OpenPAI ran them: tried with a shell."""

from __future__ import annotations

import subprocess

import pytest

from pai_install.jobs.openpai_extras import Wrapped
from pai_install.jobs.script import script


@pytest.mark.parametrize(
    ("commands", "around", "said", "code"),
    [
        (["echo a", "false", "echo b"], [], "a b", 0),
        (["echo a", "exit 3"], [], "a", 3),
        (["echo a"], [Wrapped(("echo x",), ("echo y",), strict=True)], "x a y", 0),
        (["echo a"], [Wrapped(("false", "echo x"), (), strict=True)], "", 1),
        (["echo a"], [Wrapped(("false", "echo x"), (), strict=False)], "x a", 0),
        (["exit 4"], [Wrapped((), ("echo y",), strict=True)], "", 4),
        (["echo a"], [Wrapped((), ("false", "echo y"), strict=True)], "a", 1),
        (
            ["echo a"],
            [Wrapped(("echo 1",), ("echo 4",), strict=True), Wrapped(("echo 2",), ("echo 3",), strict=True)],
            "1 2 a 3 4",
            0,
        ),
    ],
)
def test_script(commands: list[str], around: list[Wrapped], said: str, code: int) -> None:
    ran = subprocess.run(["sh", "-c", script(commands, around)], capture_output=True, text=True, check=False)
    assert (ran.stdout.split(), ran.returncode) == (said.split(), code)
