"""SIGTERM and a closed terminal end a run like Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from pai_install.apply.signals import ending_like_ctrl_c


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
