"""What all unit tests may use."""

from __future__ import annotations

import time

import pytest


class Clock:
    """A clock that moves on by itself and by each sleep, which takes no time."""

    def __init__(self) -> None:
        self.slept = 0.0
        self._monotonic, self._time = time.monotonic, time.time

    def sleep(self, seconds: float) -> None:
        """Moves the clock."""
        self.slept += seconds

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return self._monotonic() + self.slept

    def time(self) -> float:
        """Seconds since the epoch."""
        return self._time() + self.slept


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Waiting costs no time: replaces `time.sleep`, `time.monotonic`, and `time.time`."""
    made = Clock()
    for name in ("sleep", "monotonic", "time"):
        monkeypatch.setattr(time, name, getattr(made, name))
    return made
