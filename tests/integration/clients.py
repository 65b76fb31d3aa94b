"""Each client of the API, on the API server of control_plane.py, as the administrator."""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path

from pai_install.cluster.client import ClusterClient
from pai_install.cluster.credentials import BearerToken
from pai_install.cluster.http import Connections, api_server
from pai_install.cluster.kubectl import KubectlClient
from pai_install.cluster.over_http import HttpClient
from pai_install.cluster.transport import Answer, Call, Reply
from tests.integration.control_plane import Api

TRANSPORTS = ("kubectl", "http")


class LocalTransport:
    """Runs kubectl here."""

    def __init__(self, kubectl: Path, kubeconfig: Path) -> None:
        self._words = [str(kubectl), f"--kubeconfig={kubeconfig}"]

    def run(self, calls: Sequence[Call]) -> Reply:
        """Makes the calls up to the first failure of one that may not fail."""
        found: list[Answer] = []
        for call in calls:
            words = [*self._words, *call.argv]
            done = subprocess.run(words, input=call.stdin, capture_output=True, text=True, check=False, timeout=60)
            found.append(Answer(done.returncode, done.stdout, done.stderr))
            if done.returncode and not call.may_fail:
                break
        return Reply("here", tuple(found))

    def lines(self, call: Call) -> Generator[str]:
        """Yields the output line by line."""
        words = [*self._words, *call.argv]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            assert child.stdout is not None
            try:
                for line in child.stdout:
                    yield line.rstrip("\n")
            finally:
                child.terminate()


def http_client(api: Api) -> HttpClient:
    """The client over HTTP, with the token of the API's user."""
    place = api_server(f"https://127.0.0.1:{api.port}", authority=api.authority, name="here")
    return HttpClient(Connections([place]), BearerToken(api.token))


def client_of(transport: str, api: Api, programs: dict[str, Path]) -> ClusterClient:
    """A client over that transport."""
    if transport == "http":
        return http_client(api)
    return KubectlClient(LocalTransport(programs["kubectl"], api.kubeconfig("admin", api.token)))
