"""A PATH that holds only programs that answer what a test says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[[str, str], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """`program(name, shell_script)` puts a program on PATH, beside a few that scripts need."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "sleep", "yes", "head", "cat"):
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    monkeypatch.setenv("PATH", str(folder))

    def add(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return add
