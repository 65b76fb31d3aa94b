"""A real blob service (Azurite) on the controller host, in the part of Azure."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.ansible_path import module_util
from tests.ends_with_us import ends_with_us
from tests.npm import installed, node

PACKAGE, PROGRAM = "azurite@3.35.0", "azurite/dist/src/blob/main.js"
KEY = base64.b64encode(b"an-account-of-the-tests-own-0123456789").decode()


@dataclass
class BlobStore:
    """A storage account that listens on one address of the controller host. folder: of its own."""

    folder: Path
    address: str
    port: int
    account: str = "paicache"
    key: str = KEY
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def endpoint(self) -> str:
        """URL of the account's blob service; an address has no room for the account's name before it."""
        return f"http://{self.address}:{self.port}/{self.account}"

    def start(self) -> None:
        """Returns once it answers."""
        program = installed(PACKAGE) / PROGRAM
        self.folder.mkdir(parents=True, exist_ok=True)
        place = ("--blobHost", self.address, "--blobPort", str(self.port), "--location", str(self.folder))
        quiet = ("--silent", "--disableTelemetry", "--skipApiVersionCheck")
        words = ends_with_us(str(node()), str(program), *place, *quiet)
        accounts = {**os.environ, "AZURITE_ACCOUNTS": f"{self.account}:{self.key}"}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(words, env=accounts, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while not self._answers():
            # who else answers there is another one
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.2)

    def stop(self) -> None:
        """Switches it off; what it keeps stays."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def make(self, container: str) -> None:
        """Makes a container, as the admin does in Azure's portal."""
        blob = module_util("pai_blob")
        made = blob.Container(blob.Account(self.account, self.key, container, self.endpoint))
        headers = {"Content-Length": "0", "Content-Type": "application/octet-stream"}
        made.request("PUT", "", {"restype": "container"}, b"", headers).close()

    def _answers(self) -> bool:
        try:
            socket.create_connection((self.address, self.port), timeout=1).close()
        except OSError:
            return False
        return True
