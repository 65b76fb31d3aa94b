"""SIGTERM and a closed terminal end a run like Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from pai_install.run.signals import ending_like_ctrl_c, finishing


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """A shell that runs the tests in the background, or nohup, has them ignore signals."""
    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_interrupts_and_the_old_handler_comes_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), ending_like_ctrl_c():  # noqa: PT012 - the signal comes a moment later
        os.kill(os.getpid(), number)
        time.sleep(5)
    assert signal.getsignal(number) == before


def test_other_threads_are_left_alone() -> None:
    seen = []

    def work() -> None:
        with ending_like_ctrl_c():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_another_signal_soon_after_the_first_is_ignored() -> None:
    ended = False
    with ending_like_ctrl_c():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)
        ended = True
    assert ended


def test_what_is_written_at_the_end_is_not_interrupted_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    before = signal.getsignal(signal.SIGINT)
    with finishing():
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(time, "monotonic", lambda: now + 60)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before


def test_signal_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_like_ctrl_c():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
