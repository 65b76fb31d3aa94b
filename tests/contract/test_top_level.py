"""The top level of the repository is its map: nothing lies there that is not meant to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEANT = {
    *{".ansible-lint", ".ci", ".config", ".gitignore", ".yamllint", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"},
    *{"Makefile", "README.md", "addons", "ansible.cfg", "docs", "examples", "installer", "inventories", "layouts"},
    *{
        "mkdocs.yml",
        "pai-install",
        "playbooks",
        "pyproject.toml",
        "requirements-dev.lock",
        "requirements.lock",
        "roles",
        "tests",
    },
}


def test_nothing_lies_about() -> None:
    """A note or a link that came with a commit of other things would land with it."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("no checkout of git")
    assert {path.split("/")[0] for path in listed.stdout.splitlines()} == MEANT
