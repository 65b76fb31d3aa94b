"""A second real registry (CNCF distribution) on the controller host, in the part of the world's registries."""

from __future__ import annotations

import base64
import http.client
import json
import subprocess
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from tests.ends_with_us import ends_with_us


@dataclass
class Upstream:
    """A registry that listens on one address of the controller host. program: of CNCF distribution. folder: of its own.

    login: NAME:PASSWORD that it asks for, and htpasswd, a line of that account with bcrypt; both empty for none.
    """

    program: Path
    folder: Path
    address: str
    port: int
    login: str = ""
    htpasswd: str = ""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Its address with the scheme."""
        return f"http://{self.address}:{self.port}"

    def start(self) -> None:
        """Returns once it answers."""
        config = self._configure()
        with (self.folder / "log").open("ab") as log:
            words = ends_with_us(str(self.program), "serve", str(config))
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while not self._answers():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.2)

    def stop(self) -> None:
        """Switches it off."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _configure(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {
            "version": 0.1,
            "log": {"accesslog": {"disabled": True}, "level": "error"},
            "storage": {"filesystem": {"rootdirectory": str(self.folder / "data")}},
            "http": {"addr": f"{self.address}:{self.port}"},
        }
        if self.htpasswd:
            users = self.folder / "htpasswd"
            users.write_text(f"{self.htpasswd}\n")
            settings["auth"] = {"htpasswd": {"realm": "upstream", "path": str(users)}}
        config = self.folder / "config.yml"
        config.write_text(yaml.safe_dump(settings))
        return config

    def push(self, layout: Path, repository: str, tag: str) -> None:
        """Puts the one image of an OCI layout into it."""
        (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
        raw = _blob(layout, entry["digest"]).read_bytes()
        manifest: dict[str, Any] = json.loads(raw)
        for part in (manifest["config"], *manifest["layers"]):
            self._upload(repository, part["digest"], _blob(layout, part["digest"]))
        self.put_manifest(repository, tag, raw, entry["mediaType"])

    def put_manifest(self, repository: str, tag: str, raw: bytes, media_type: str) -> None:
        """Puts a manifest under a tag; the blobs and manifests that it names must be there."""
        self._expect(201, "PUT", f"/v2/{repository}/manifests/{tag}", raw, {"Content-Type": media_type})

    def _upload(self, repository: str, digest: str, blob: Path) -> None:
        headers = self._expect(202, "POST", f"/v2/{repository}/blobs/uploads/", b"", {})
        place = urllib.parse.urlsplit(headers["location"])
        target = f"{place.path}?{place.query}&digest={urllib.parse.quote(digest)}"
        size = {"Content-Type": "application/octet-stream", "Content-Length": str(blob.stat().st_size)}
        with blob.open("rb") as data:
            self._expect(201, "PUT", target, data, size)

    def _expect(
        self, status: int, verb: str, target: str, body: bytes | BinaryIO, headers: dict[str, str]
    ) -> dict[str, str]:
        connection = http.client.HTTPConnection(self.address, self.port, timeout=60)
        token = base64.b64encode(self.login.encode()).decode()
        shown = {"Authorization": f"Basic {token}"} if self.login else {}
        connection.request(verb, target, body, {**headers, **shown})
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == status, said
        return {name.lower(): value for name, value in answer.getheaders()}

    def _answers(self) -> bool:
        try:
            self._expect(200, "GET", "/v2/", b"", {})
        except OSError:
            return False
        return True


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")
