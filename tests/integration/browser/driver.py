"""Chromium, driven by a script of node/ that prints what it found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.npm import installed

SCRIPTS = Path(__file__).parent / "node"
NAMES = ("chromium", "chromium-browser", "google-chrome")
# a folder: `make screenshots` keeps what the windows showed there
PICTURES = "PAI_PICTURES"
# bytes of a page
MOST = 300 * 1024


def chromium() -> str:
    """The browser. Skips without it, or with a Node.js that cannot drive it."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    if int(node.lstrip("v").partition(".")[0] or 0) < 20:
        pytest.skip("Node.js 20 or newer is not installed")
    return found


def driven(script: str, given: dict[str, Any], home: Path, limit_s: float = 600) -> Any:
    """What a script found. given: for it, with the browser."""
    pictures = str(Path(os.environ[PICTURES]) / Path(script).stem) if PICTURES in os.environ else ""
    environment = {
        "GIVEN": json.dumps({**given, "chromium": chromium(), "pictures": pictures}),
        "HOME": str(home),
        "NODE_PATH": str(installed("axe-core@4.14.1", "playwright-core@1.65.1")),
        "PATH": os.environ["PATH"],
    }
    words = ["node", str(SCRIPTS / script)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=limit_s, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def person(name: str, password: str) -> dict[str, str]:
    """A person for a script."""
    return {"name": name, "password": password}
