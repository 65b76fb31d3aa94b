"""Every process of a run finds the same tests under the same names, whatever its clock and its hash seed say."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def collecting(seed: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_names_depend_on_neither_clock_nor_hash_seed() -> None:
    """Workers that find different names refuse to run anything (pytest-xdist)."""
    first = collecting(1)
    # Stamps of what is packed carry whole seconds; the second process must not catch up with the first.
    time.sleep(4)
    found = [process.communicate()[0].splitlines() for process in (first, collecting(2))]
    names = [{line for line in lines if "::" in line} for lines in found]
    assert names[0], found[0]
    assert not names[0] ^ names[1]
