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


def test_answering_is_accepting_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(kubectl, "API_PORT", server.getsockname()[1])
        assert kubectl.accepts("127.0.0.1")
    assert not kubectl.accepts("127.0.0.1")
