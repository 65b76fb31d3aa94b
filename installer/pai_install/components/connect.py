"""Requests over HTTP that give up soon where no server answers."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.request
from typing import Any

# Seconds for one address of a server. A firewall that drops packets would otherwise cost the timeout of the transfer,
# for each address of the server.
CONNECT_S = 10.0


def connect(address: tuple[str, int], timeout_s: float, source: Any = None) -> socket.socket:  # noqa: ANN401 - http.client
    """Connects within CONNECT_S, with the given timeout for the transfer. Raises OSError."""
    connection = socket.create_connection(address, min(timeout_s, CONNECT_S), source)
    connection.settimeout(timeout_s)
    return connection


class _Soon(http.client.HTTPConnection):
    def __init__(self, *words: Any, **options: Any) -> None:  # noqa: ANN401 - as the class above
        super().__init__(*words, **options)
        self._create_connection = connect


class _SoonSecure(_Soon, http.client.HTTPSConnection):
    pass


class _HttpHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Soon, req)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def __init__(self, trust: ssl.SSLContext | None) -> None:
        super().__init__(context=trust)
        self._trust = trust

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SoonSecure, req, context=self._trust)


def send(request: urllib.request.Request, timeout_s: float, trust: ssl.SSLContext | None) -> http.client.HTTPResponse:
    """Returns the open response. Proxies of the environment are used. Raises OSError, HTTPException."""
    opener = urllib.request.build_opener(_HttpHandler(), _HttpsHandler(trust))
    response: http.client.HTTPResponse = opener.open(request, timeout=timeout_s)
    return response
