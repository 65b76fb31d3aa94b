"""A file that is for root alone comes to the controller host part by part, whole or not at all."""

from __future__ import annotations

import hashlib
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from tests.ansible_path import PLAYBOOKS

from .conftest import load


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the action; the machine is this box. Parts are small."""
    plugin = load(PLAYBOOKS / "action_plugins" / "pai_take.py", "pai_take")
    monkeypatch.setattr(plugin, "PART", 1000)
    monkeypatch.setattr(ActionBase, "run", lambda *_, **__: {})

    def execute(_self: Any, command: str) -> dict[str, Any]:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        return {"rc": done.returncode, "stdout": done.stdout, "stderr": done.stderr}

    monkeypatch.setattr(plugin.ActionModule, "_low_level_execute_command", execute)

    def run(**words: str) -> dict[str, Any]:
        action = object.__new__(plugin.ActionModule)
        action._task = SimpleNamespace(args=words)
        found: dict[str, Any] = action.run()
        return found

    return run


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 3500])
def test_it_comes_as_it_is(take: Any, tmp_path: Path, size: int) -> None:
    source, dest = tmp_path / "a file's", tmp_path / "new" / "dest"
    source.write_bytes(bytes(number % 251 for number in range(size)))
    found = take(src=str(source), dest=str(dest), sha256=hashlib.sha256(source.read_bytes()).hexdigest())
    assert found == {"changed": False, "bytes": size}
    assert dest.read_bytes() == source.read_bytes()
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600
    assert stat.S_IMODE(dest.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(("name", "words"), [("source", "another content"), ("missing", "cannot be read")])
def test_anything_else_leaves_nothing(take: Any, tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "source").write_bytes(b"abc")
    with pytest.raises(AnsibleActionFail, match=words):
        take(src=str(tmp_path / name), dest=str(tmp_path / "to" / "dest"), sha256="0" * 64)
    assert list((tmp_path / "to").iterdir()) == []
