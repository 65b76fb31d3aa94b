"""OpenPAI's API on a cluster of the lab: a client without any code of ours."""

from __future__ import annotations

import hashlib
import json
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
# a job of one instance with an image of the component store
JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{type: dockerimage, name: busybox, uri: "registry.pai.internal/busybox:stable"}}]
taskRoles:
  main:
    instances: 1
    dockerImage: busybox
    resourcePerInstance: {{cpu: 1, memoryMB: 128, gpu: 0}}
    commands: ["{command}"]
defaults: {{virtualCluster: default}}
"""


@dataclass
class ConsoleClient:
    """host: of the console. trust: its authority alone. token: of the API."""

    host: str
    trust: ssl.SSLContext
    token: str = ""

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        """Status and content of an answer: JSON where it is JSON."""
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        address = path if path.startswith("https://") else f"https://{self.host}/rest-server{path}"
        request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310 # the lab's
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.trust) as answer:  # noqa: S310 # the lab's
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def sign_in(self, name: str, password: str) -> None:
        """As a user with a password."""
        status, found = self.ask("POST", "/api/v2/authn/basic/login", {"username": name, "password": password})
        assert status == 200, found
        self.token = str(found["token"])

    def submit(self, text: str) -> None:
        """A job file."""
        status, found = self.ask("POST", "/api/v2/jobs", text, "text/yaml")
        assert status == 202, found

    def until(self, job: str, *states: str, seconds: float = 300) -> dict[str, Any]:
        """The job once it is in one of the states."""
        end = time.monotonic() + seconds
        while True:
            status, found = self.ask("GET", f"/api/v2/jobs/{job}")
            if status == 200 and found["jobStatus"]["state"] in states:
                return dict(found)
            assert time.monotonic() < end, (status, found)
            time.sleep(2)

    def log(self, job: str, role: str) -> str:
        """The log of the first instance, by the address that the API gives."""
        place = f"/api/v2/jobs/{job}/attempts/0/taskRoles/{role}/taskIndex/0/attempts/0/logs"
        status, found = self.ask("GET", place)
        assert status == 200, found
        address = found["locations"][0]["uri"]
        token, self.token = self.token, ""  # the address is enough
        try:
            status, text = self.ask("GET", address if "//" in address else f"https://{self.host}{address}")
        finally:
            self.token = token
        assert status == 200, text
        return str(text)


def client_of(site: Path, host: str) -> ConsoleClient:
    """A client that trusts the authority of the site alone."""
    identity = json.loads((site / ".pai/registry.json").read_text())
    bundle = "".join(one["certificate"] for one in identity["authorities"])
    return ConsoleClient(host, ssl.create_default_context(cadata=bundle))


def fingerprint_of(host: str) -> str:
    """SHA-256 of the certificate that a host serves."""
    pem = ssl.get_server_certificate((host, 443))
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
    return ":".join(digest[place : place + 2] for place in range(0, len(digest), 2))
