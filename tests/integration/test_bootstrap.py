"""The script that makes its own environment, in a checkout with no packages to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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


def begin(checkout: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PAI_VENV"}}
    return subprocess.Popen(
        [str(checkout / "pai-install"), *words],
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
    assert sum("creating" in errors for _, errors in said) == 1
    later = begin(checkout)
    assert later.communicate(timeout=60) == ("works\n", "")


def test_packages_that_cannot_be_had_are_an_error_with_a_remedy(checkout: Path) -> None:
    (checkout / "requirements.lock").write_text("nothing-of-this-name==1 --hash=sha256:" + "0" * 64 + "\n")
    run = begin(checkout)
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 4
    assert "cannot install the packages of requirements.lock" in errors
    assert not (checkout / ".venv").exists()


def test_checkout_that_cannot_be_written_names_the_way_out(checkout: Path) -> None:
    (checkout / ".venv.lock").mkdir()  # a stand-in for a read-only checkout, for root as well
    run = begin(checkout)
    out, errors = run.communicate(timeout=60)
    assert (run.returncode, out) == (4, "")
    assert errors.startswith(f"pai-install: cannot create {checkout}/.venv:")
    assert "PAI_VENV" in errors
    assert len(errors.splitlines()) == 1


def test_environment_may_be_elsewhere(checkout: Path) -> None:
    (checkout / ".venv.lock").mkdir()
    elsewhere = checkout / "some" / "where"
    run = begin(checkout, PAI_VENV=str(elsewhere))
    out, _ = run.communicate(timeout=300)
    assert (run.returncode, out) == (0, "works\n")
    assert (elsewhere / "bin" / "python").exists()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH without Python. apt-get installs a working one there, and writes its progress to standard output."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "dirname", "readlink", "cmp", "mkdir", "flock", "rm", "mv", "cp", "grep", "sed", "xargs", "ln"):
        (folder / name).symlink_to(str(shutil.which(name)))
    script(folder / "id", "echo 0")
    script(
        folder / "apt-get",
        f'echo "apt-get $*"; case "$*" in *install*) ln -sf {sys.executable} {folder}/python3;; esac',
    )
    return folder


def script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_machine_without_python_gets_it_with_yes(checkout: Path, bare: Path) -> None:
    run = begin(checkout, "--yes", PATH=str(bare))
    out, errors = run.communicate(timeout=300)
    assert (run.returncode, out) == (0, "works\n"), errors
    assert "python3-venv is missing" in errors
    assert "apt-get install" not in errors


def test_machine_without_python_names_one_package_and_stops(checkout: Path, bare: Path) -> None:
    run = begin(checkout, PATH=str(bare))
    out, errors = run.communicate(timeout=60)
    assert (run.returncode, out) == (4, "")
    assert "`apt-get install python3-venv`" in errors.splitlines()[-1]
    assert len(errors.splitlines()) == 2


def test_user_who_is_not_root_is_told_the_command(checkout: Path, bare: Path) -> None:
    script(bare / "id", "echo 1000")
    run = begin(checkout, "--yes", PATH=str(bare))
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 4
    assert "`apt-get install python3-venv` as root" in errors


def test_old_python_is_an_error_with_a_remedy(checkout: Path, bare: Path) -> None:
    script(bare / "python3", "exit 1")
    run = begin(checkout, "--yes", PATH=str(bare))
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 4
    assert errors.splitlines() == [
        "pai-install: cannot start: Python 3.11 to 3.14 is missing. Install one, or set PAI_PYTHON to its path."
    ]
