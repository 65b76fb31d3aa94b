"""Waiting for a machine, with real sockets on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pai_install.errors import PaiError
from pai_install.lab import names, ready
from pai_install.lab.names import machine_names
from pai_install.lab.ready import greets, wait_ready
from pai_install.lab.spec import LabMachine, LabSpec
from tests.errors import raises


class Server:
    """Sends one greeting to everyone who connects."""

    def __init__(self, greeting: bytes) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._greeting = greeting
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.sendall(self._greeting)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def sshd() -> Iterator[Server]:
    server = Server(b"SSH-2.0-OpenSSH\r\n")
    yield server
    server.close()


def local(port: int) -> LabMachine:
    return LabMachine("one", IPv4Address("127.0.0.1"), port)


@pytest.fixture(autouse=True)
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "LABS_DIR", tmp_path / "labs")


def test_an_sshd_greets(sshd: Server) -> None:
    assert greets(local(sshd.port))


def test_another_service_is_no_sshd() -> None:
    server = Server(b"HTTP/1.1 400\r\n")
    assert not greets(local(server.port))
    server.close()
    assert not greets(local(server.port))


@pytest.mark.parametrize("state", ["running", "degraded"])
def test_ready_when_systemd_has_started_everything(spec: LabSpec, sshd: Server, stand_in: Any, state: str) -> None:
    asked = stand_in(ready)
    asked.answer("ssh", 0 if state == "running" else 1, f"{state}\n")
    wait_ready(spec, local(sshd.port), timeout_s=5)
    assert len(asked.commands) == 1


def test_a_machine_that_never_answers_is_named_with_the_end_of_its_console(spec: LabSpec) -> None:
    console = machine_names(spec, spec.machines[0]).console
    console.parent.mkdir(parents=True)
    console.write_text("x" * 9000 + "Failed to mount cgroup")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with raises("lab-machine-not-up") as caught:
        wait_ready(spec, local(port), timeout_s=0.2)
    assert caught.value.details.endswith("Failed to mount cgroup")
    assert len(caught.value.details) < 4000


def test_a_machine_that_stays_in_its_boot_is_named_with_its_state(spec: LabSpec, sshd: Server, stand_in: Any) -> None:
    stand_in(ready).answer("ssh", 1, "maintenance\n")
    with raises("lab-machine-not-up"):
        wait_ready(spec, local(sshd.port), timeout_s=0.3)


def test_a_question_without_an_answer_is_asked_again(
    spec: LabSpec, sshd: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`systemctl --wait` hangs where the start ends just as it begins to wait."""
    answers = iter([PaiError("ssh did not finish within 15.0 s"), "running"])

    def answer(*_: Any, **__: Any) -> Any:
        found = next(answers)
        if isinstance(found, PaiError):
            raise found
        return SimpleNamespace(stdout=found, stderr="")

    monkeypatch.setattr(ready, "run", answer)
    wait_ready(spec, local(sshd.port), timeout_s=5)
    assert next(answers, None) is None
