"""Two tests never get the same port, whichever worker they run on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ports

OTHER = "from tests import ports; ports._RANGE = range({}, {}); print(ports.free_ports({}))"


def in_another_process(first: int, count: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", OTHER.format(first, first + 3, count)]
    return subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)


def test_a_port_that_a_test_has_is_given_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(start for start in range(30_100, 32_000, 3) if in_another_process(start, 3).returncode == 0)
    monkeypatch.setattr(ports, "_RANGE", range(first, first + 3))
    assert set(ports.free_ports(2)) < set(range(first, first + 3))
    assert "fewer than 2 ports are free" in in_another_process(first, 2).stderr
    assert in_another_process(first, 1).returncode == 0
    ports.free_port()
    with pytest.raises(RuntimeError, match="fewer than 1 ports"):
        ports.free_port()
