"""The script that makes its own environment, in a checkout with no packages to install."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "pai-install"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The script with a package that says one word."""
    shutil.copy(SCRIPT, tmp_path / "pai-install")
    (tmp_path / "requirements.lock").write_text("")
    package = tmp_path / "installer" / "pai_install"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("print('works')\n")
    return tmp_path


def begin(checkout: Path, **variables: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PAI_VENV"}}
    return subprocess.Popen(
        [str(checkout / "pai-install")],
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_first_runs_at_once_make_one_environment(checkout: Path) -> None:
    runs = [begin(checkout) for _ in range(2)]
    said = [run.communicate(timeout=300) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert [out for out, _ in said] == ["works\n", "works\n"]
    assert sum("making" in errors for _, errors in said) == 1
    later = begin(checkout)
    assert later.communicate(timeout=60) == ("works\n", "")


def test_packages_that_cannot_be_had_are_an_error_with_a_remedy(checkout: Path) -> None:
    (checkout / "requirements.lock").write_text("nothing-of-this-name==1 --hash=sha256:" + "0" * 64 + "\n")
    run = begin(checkout)
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 4
    assert "is a package index reachable?" in errors
    assert not (checkout / ".venv").exists()


def test_checkout_that_cannot_be_written_names_the_way_out(checkout: Path) -> None:
    (checkout / ".venv.lock").mkdir()  # a stand-in for a read-only checkout, for root as well
    run = begin(checkout)
    out, errors = run.communicate(timeout=60)
    assert (run.returncode, out) == (4, "")
    assert errors.startswith(f"pai-install: cannot write {checkout}/.venv.lock")
    assert "PAI_VENV" in errors
    assert len(errors.splitlines()) == 1


def test_environment_may_be_elsewhere(checkout: Path) -> None:
    (checkout / ".venv.lock").mkdir()
    elsewhere = checkout / "some" / "where"
    run = begin(checkout, PAI_VENV=str(elsewhere))
    out, _ = run.communicate(timeout=300)
    assert (run.returncode, out) == (0, "works\n")
    assert (elsewhere / "bin" / "python").exists()
