"""Which control plane kubectl is sent to."""

from __future__ import annotations

import socket

import pytest

from pai_install.cli import kubectl

THREE = ("10.0.0.1", "10.0.0.2", "10.0.0.3")


@pytest.mark.parametrize(
    ("alive", "words"),
    [
        (THREE, ("--server=https://10.0.0.1:6443",)),
        (THREE[1:], ("--server=https://10.0.0.2:6443",)),
        (THREE[2:], ("--server=https://10.0.0.3:6443",)),
        ((), ()),
    ],
)
def test_the_first_that_answers_is_asked(alive: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert kubectl.server_words(THREE, lambda address: address in alive) == words


def test_a_single_control_plane_is_not_asked_first() -> None:
    assert kubectl.server_words(THREE[:1], lambda _address: pytest.fail("asked")) == ()


def test_taking_a_connection_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is frozen, or whose API server has just started, does that too."""
    monkeypatch.setattr(kubectl, "PATIENCE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(kubectl, "API_PORT", server.getsockname()[1])
        assert not kubectl.ready("127.0.0.1")
    assert not kubectl.ready("127.0.0.1")
