"""A server that does not answer is given up soon, and a slow one is not."""

from __future__ import annotations

import socket

import pytest

from pai_install.components.connect import CONNECT_S, connect


@pytest.mark.parametrize(("timeout_s", "connecting_s"), [(60.0, CONNECT_S), (2.0, 2.0)])
def test_connecting_takes_less_time_than_a_transfer_may(
    monkeypatch: pytest.MonkeyPatch, timeout_s: float, connecting_s: float
) -> None:
    given: list[float] = []
    here, there = socket.socketpair()

    def create(_address: tuple[str, int], timeout: float, _source: object) -> socket.socket:
        given.append(timeout)
        return here

    monkeypatch.setattr(socket, "create_connection", create)
    with there, connect(("server", 443), timeout_s) as connection:
        assert (given, connection.gettimeout()) == ([connecting_s], timeout_s)
