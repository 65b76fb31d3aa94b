"""The printed inventory: Ansible must read from it what the site says, and no template."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pai_install.errors import ExitCode
from tests.unit.cli.stub_environment import World, run, write_site


def test_site_template_in_the_printed_inventory_is_marked_as_text(
    tmp_path: Path, in_world: Callable[[World], World], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_site(tmp_path / "{{ site }}")
    in_world(World((), {}))
    assert run(["inventory", "--site", str(folder)]) == ExitCode.OK
    shared = json.loads(capsys.readouterr().out)["all"]["vars"]
    assert "{{ site }}" in shared["ansible_ssh_common_args"]["__ansible_unsafe"]
