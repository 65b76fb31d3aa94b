"""Waiting for a machine: sshd greets, then systemd has started everything."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from pai_install.errors import PaiError
from pai_install.lab import keys
from pai_install.lab.names import machine_names
from pai_install.lab.spec import LabMachine, LabSpec
from pai_install.system.proc import run

BOOT_TIMEOUT_S = 180.0
# --wait hangs if startup finishes in between
_ASK_AGAIN_S = 15.0
_CONSOLE_TAIL = 3000


def wait_ready(spec: LabSpec, machine: LabMachine, timeout_s: float = BOOT_TIMEOUT_S) -> None:
    """Returns when the machine can be worked on. Raises PaiError, with its console's end, when it does not come up."""
    deadline = time.monotonic() + timeout_s
    while not greets(machine):
        if time.monotonic() > deadline:
            raise _not_up(spec, machine, "sshd does not answer")
        time.sleep(0.1)
    question = keys.ssh_command(spec, machine, ["systemctl", "is-system-running", "--wait"])
    state = ""
    while time.monotonic() < deadline:
        state = _answer(question)
        if state in ("running", "degraded"):
            return
        time.sleep(0.2)
    raise _not_up(spec, machine, f"systemd says {state!r}")


def _answer(question: Sequence[str]) -> str:
    """Returns the state that systemd reports, or why it does not respond."""
    try:
        done = run(question, check=False, timeout_s=_ASK_AGAIN_S)
    except PaiError as silent:
        return silent.message
    return done.stdout.strip() or done.stderr.strip()


def greets(machine: LabMachine, *, timeout_s: float = 2) -> bool:
    """Whether an sshd answers at the machine's address."""
    try:
        with socket.create_connection((str(machine.address), machine.port), timeout=timeout_s) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _not_up(spec: LabSpec, machine: LabMachine, why: str) -> PaiError:
    console = machine_names(spec, machine).console
    tail = console.read_text(errors="replace")[-_CONSOLE_TAIL:] if console.exists() else ""
    return PaiError(
        f"cannot start {machine.name}: {why}",
        code="lab-machine-not-up",
        details=tail,
        remedy=f"read {console}, then run pai-install lab down and lab up",
    )
