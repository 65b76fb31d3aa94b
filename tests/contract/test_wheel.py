"""What a wheel carries: all that runs, no tests of roles, nothing that a run left in the checkout."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pai_install.cli.schema import HEALTH

ROOT = Path(__file__).parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


def test_roles_are_carried_without_their_scenarios() -> None:
    assert "roles/*/molecule" in WHEEL["exclude"]


def test_folders_are_not_taken_whole() -> None:
    """What is forced in is not filtered by .gitignore: a lab's keys in layouts/lab/.pai would be carried, too."""
    assert not [path for path in WHEEL["force-include"] if (ROOT / path).is_dir()]


def test_schema_that_is_read_at_run_time_is_carried() -> None:
    """It is looked for where the wheel's other content is."""
    assert (ROOT / HEALTH).is_file()
    assert WHEEL["force-include"][HEALTH] == f"pai_install/content/{HEALTH}"
