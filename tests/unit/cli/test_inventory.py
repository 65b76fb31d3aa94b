"""The printed inventory: Ansible must read from it what the site says, and no template."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.runs import SECRET


def test_passwords_are_left_out_unless_told(
    tmp_path: Path, in_world: Callable[[World], World], capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    folder = write_site(tmp_path)
    in_world(World((), {}))
    assert run(["inventory", "--site", str(folder)]) == ExitCode.OK
    printed = capsys.readouterr()
    assert SECRET not in printed.out
    assert "ansible_become_password" not in json.loads(printed.out)["all"]["vars"]
    assert printed.err == snapshot
    assert run(["inventory", "--site", str(folder), "--show-secrets"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["all"]["vars"]["ansible_become_password"] == SECRET


def test_site_template_in_the_printed_inventory_is_marked_as_text(
    tmp_path: Path, in_world: Callable[[World], World], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_site(tmp_path / "{{ site }}")
    in_world(World((), {}))
    assert run(["inventory", "--site", str(folder)]) == ExitCode.OK
    shared = json.loads(capsys.readouterr().out)["all"]["vars"]
    assert "{{ site }}" in shared["ansible_ssh_common_args"]["__ansible_unsafe"]
