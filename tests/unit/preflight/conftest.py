"""A site whose machines are in machines.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.site import Site
from tests.unit.preflight.machines import read_site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """One control plane, a worker with two GPUs, a worker without."""
    return read_site(tmp_path / "site")
