"""Handle SIGTERM and SIGHUP like Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TIMEOUT_S = 10.0


class _Listener:
    """Interrupts at the first signal, and at another only when the end takes longer than the timeout."""

    def __init__(self, *, ending: bool) -> None:
        self._ignore_until = time.monotonic() + _TIMEOUT_S if ending else 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        now = time.monotonic()
        if now < self._ignore_until:
            return
        self._ignore_until = now + _TIMEOUT_S
        raise KeyboardInterrupt


@contextmanager
def ending_like_ctrl_c() -> Iterator[None]:
    """Converts the first SIGTERM or SIGHUP inside the block to KeyboardInterrupt, like Ctrl-C.

    Further ones are ignored for some seconds, because the run is ending and must report its work. Does nothing outside
    the main thread. An ignored signal (nohup) stays ignored.
    """
    with _listening(_Listener(ending=False)):
        yield


@contextmanager
def finishing() -> Iterator[None]:
    """Ignores these signals for the first seconds of the block, which writes the last records."""
    with _listening(_Listener(ending=True)):
        yield


def ended() -> None:
    """Ignores these signals from now on: the exit code is decided."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _listening(listener: _Listener) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, listener) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
