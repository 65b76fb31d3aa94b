"""OpenPAI's Python SDK, which is no part of this repository: PAI_OPAI names its program, as docs/console.md says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.openpai.conftest import Console

PROGRAM = os.environ.get("PAI_OPAI", "")
NEEDS_OPAI = pytest.mark.skipif(not PROGRAM, reason="PAI_OPAI names no program of OpenPAI's Python SDK")


@dataclass(frozen=True)
class Opai:
    """home: of the program, with its settings."""

    home: Path
    console: Console

    def run(self, *words: str) -> str:
        """What a verb writes. It must end with 0."""
        done = self.ended([PROGRAM, *words])
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def script(self, text: str, given: Mapping[str, str]) -> str:
        """What a program with the SDK writes."""
        done = self.ended([str(Path(PROGRAM).parent / "python"), "-c", text], given)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    def ended(self, words: list[str], given: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """A program that ended. The SDK opens pages in a browser: `true` stands for it."""
        environment = {"BROWSER": "true", "HOME": str(self.home), "PATH": os.environ["PATH"], **(given or {})}
        return subprocess.run(
            words, cwd=self.home, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
