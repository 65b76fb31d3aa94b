"""OpenPAI's unmodified clients from npm, installed once into the user's cache."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
