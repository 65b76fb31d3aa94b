"""The code that runs as root on machines: mypy sees all of it, and the machines' Python understands it."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAYBOOKS = ROOT / "playbooks"
STUBS = ROOT / "tests" / "typings" / "ansible" / "module_utils"
COLLECTOR = sorted((ROOT / "installer" / "pai_install" / "health").rglob("collector.py"))
ON_MACHINES = [*sorted(PLAYBOOKS.glob("library/*.py")), *sorted(PLAYBOOKS.glob("module_utils/*.py"))]


def test_mypy_reads_playbooks() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"]
    assert {"installer", "playbooks"} <= set(settings["files"])


def test_imports_of_module_utils_are_typed() -> None:
    """Without its stub, mypy takes everything that a module imports from the file for Any."""
    wanted = {
        path.stem: f"from playbooks.module_utils.{path.stem} import *" for path in PLAYBOOKS.glob("module_utils/*.py")
    }
    stubs = {path.stem: path.read_text().strip() for path in STUBS.glob("pai_*.pyi")}
    assert stubs == wanted, f"{STUBS.relative_to(ROOT)} needs one line per file of module_utils"


def parses(path: Path, *, minor: int) -> bool:
    """Whether Python 3.MINOR can read a program."""
    try:
        ast.parse(path.read_text(), feature_version=(3, minor))
    except SyntaxError:
        return False
    return True


def test_python_3_9_parses_modules() -> None:
    assert [path.name for path in ON_MACHINES if not parses(path, minor=9)] == []


def test_python_3_6_parses_the_collector() -> None:
    assert [parses(path, minor=6) for path in COLLECTOR] == [True]
