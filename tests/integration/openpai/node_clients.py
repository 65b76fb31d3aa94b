"""OpenPAI's unmodified clients from npm, installed once into the user's cache by a lock."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import filelock
import pytest

from tests.integration.openpai.conftest import Console

HERE = Path(__file__).parent / "node"
SDK = "@microsoft/openpai-js-sdk"


@dataclass(frozen=True)
class NodeClients:
    """modules: the folder node_modules. home: of the programs, with their own settings."""

    modules: Path
    home: Path
    console: Console

    def run(
        self, words: Sequence[str | Path], more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A program of Node.js that trusts the authority of the console."""
        environment = {
            "HOME": str(self.home),
            "NODE_EXTRA_CA_CERTS": str(self.console.authority),
            "NODE_PATH": str(self.modules),
            "PATH": os.environ["PATH"],
            **(more or {}),
        }
        return subprocess.run(
            ["node", *map(str, words)], env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    def pai(self, *words: str) -> str:
        """The output of OpenPAI's command line."""
        done = self.run([self.modules / SDK / "lib/src/cli.js", *words])
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


def modules(project: Path = HERE) -> Path:
    """node_modules of a project's lock. Skips without Node.js, or without a registry of npm."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("Node.js with npm is not installed: apt-get install nodejs npm")
    lock = (project / "package-lock.json").read_bytes()
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pai-install-tests"
    folder = base / f"node-{hashlib.sha256(lock).hexdigest()[:16]}"
    base.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(project, folder)
            words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
            if done.returncode:
                pytest.skip(f"npm cannot fetch the packages of the test: {done.stderr[-500:]}")
            (folder / "done").touch()
    return folder / "node_modules"
