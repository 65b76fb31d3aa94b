"""Each client of the API, on the API server of control_plane.py, as the administrator."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pai_install.cluster import relay
from pai_install.cluster.credentials import BearerToken
from pai_install.cluster.http import Connections, api_server
from pai_install.cluster.over_http import HttpClient
from pai_install.cluster.ssh_connection import SshCommand, over_ssh
from tests.integration.control_plane import Api

TRANSPORTS = ("http", "relay")


def http_client(api: Api) -> HttpClient:
    """The client over HTTP, with the token of the API's user."""
    place = api_server(f"https://127.0.0.1:{api.port}", authority=api.authority, name="here")
    return HttpClient(Connections([place]), BearerToken(api.token))


def relayed_client(api: Api) -> HttpClient:
    """The client of the controller host, with the relay as a program of this machine instead of over SSH."""
    program = Path(relay.__file__).read_text().replace(relay.CONFIG, str(api.admin_config))
    command = SshCommand((sys.executable, "-I", "-c", program), os.environ, "password\n")
    return HttpClient(Connections([over_ssh("here", lambda: command)]))


def client_of(transport: str, api: Api) -> HttpClient:
    """A client over that transport."""
    return relayed_client(api) if transport == "relay" else http_client(api)
