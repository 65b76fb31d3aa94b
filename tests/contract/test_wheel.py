"""The wheel is the whole product: all that runs, no tests of roles, nothing that a run left in the checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from pai_install import __version__

ROOT = Path(__file__).parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


def test_folders_are_not_taken_whole() -> None:
    """What is forced in is not filtered by .gitignore: a lab's keys in layouts/lab/.pai would be carried, too."""
    assert not [path for path in WHEEL["force-include"] if (ROOT / path).is_dir()]


def test_pages_install_it_in_an_environment_of_its_own() -> None:
    """Debian and Ubuntu refuse `pip install` outside of a virtual environment (PEP 668)."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/contributing").glob("*.md")]
    installs = re.compile(r"^ +\S*pip3? install \S*pai_install\S*$", re.MULTILINE)
    found = [line.strip() for page in pages for line in installs.findall(page.read_text())]
    assert found
    assert [line for line in found if "/bin/pip" not in line] == []


def run(command: list[str], cwd: Path, home: Path | None = None) -> str:
    """What a program prints that ends well. home: its Python packages, beside those of the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PAI_", "PYTHON"))}
    environment |= {"PYTHONPATH": str(home)} if home else {}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)], ROOT)
    wheel, target = next(folder.glob("*.whl")), folder / "home"
    install = ["pip", "install", "--quiet", "--no-compile", "--no-deps", "--no-index", "--target", str(target)]
    run([sys.executable, "-m", *install, str(wheel)], ROOT)
    return target


@pytest.fixture
def product(home: Path, tmp_path: Path) -> Callable[..., str]:
    """Runs the installed pai-install in an empty folder."""
    return lambda *words: run([str(home / "bin" / "pai-install"), *words], tmp_path, home)


def test_it_has_its_version_and_schemas(product: Callable[..., str]) -> None:
    assert __version__ in product("--version").split()
    assert all(json.loads(product("schema", name)) for name in ("layout", "health"))


def test_a_new_site_is_valid(product: Callable[..., str]) -> None:
    product("init", "--site", "site")
    product("validate", "--site", "site")


def test_its_content_is_that_of_the_checkout(home: Path) -> None:
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True, check=False).returncode != 0:
        pytest.skip("no checkout of git")
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = run([*listing, "playbooks", "roles", "addons", "layouts", "examples"], ROOT).splitlines()
    present = [path for path in listed if (ROOT / path).exists()]
    wanted = {path for path in present if not re.match(r"roles/[^/]+/molecule/|addons/[^/]+/tests/", path)}
    content = home / "pai_install" / "content"
    found = {path.relative_to(content).as_posix() for path in content.rglob("*") if path.is_file()}
    assert found == wanted | {"ansible.cfg"}


def test_its_playbooks_and_add_ons_are_read(home: Path, tmp_path: Path) -> None:
    content = home / "pai_install" / "content"
    check = ["env", f"ANSIBLE_CONFIG={content / 'ansible.cfg'}", "ansible-playbook", "--syntax-check"]
    run([*check, "-i", "localhost,", str(content / "playbooks" / "site.yml")], tmp_path)
    names = "from pai_install.parts.registry import ADDONS; print(*(addon.addon for addon in ADDONS))"
    found = run([sys.executable, "-c", names], tmp_path, home).split()
    assert set(found) == {path.parent.name for path in (ROOT / "addons").glob("*/addon.yml")}
