"""`make release`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.release.release import ReleaseError, release

ROOT = Path(__file__).parents[2]

try:
    print(f"{release(ROOT)} is tagged; its files are in dist/")  # noqa: T201 - the result
except (ReleaseError, subprocess.CalledProcessError) as error:
    sys.exit(f"cannot release: {getattr(error, 'stderr', '') or error}")
