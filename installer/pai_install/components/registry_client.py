"""Pulls one image from a container registry into an OCI image layout; every blob is checked against its digest."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pai_install.components.download import digest_of, download, fetch_bytes
from pai_install.components.image import place, write_index
from pai_install.components.model import Architecture
from pai_install.components.progress import Progress
from pai_install.errors import PaiError

INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)


@dataclass(frozen=True, slots=True)
class Reference:
    """Where an image is: base url of the registry, repository below it, tag."""

    registry: str
    repository: str
    tag: str

    def __str__(self) -> str:
        return f"{self.registry.partition('://')[2]}/{self.repository}:{self.tag}"


def reference(name: str, tag: str, mirror_url: str = "") -> Reference:
    """The place of an image like registry.k8s.io/pause: there, or below a mirror under its full name."""
    if mirror_url:
        address = urllib.parse.urlsplit(mirror_url)
        path = address.path.strip("/")
        repository = f"{path}/{name}" if path else name
        return Reference(f"{address.scheme}://{address.netloc}", repository, tag)
    host, _, repository = name.partition("/")
    return Reference(f"https://{'registry-1.docker.io' if host == 'docker.io' else host}", repository, tag)


@dataclass
class _Session:
    """One repository of a registry, and the token it wanted (None until it asks)."""

    place: Reference
    headers: dict[str, str] = field(default_factory=dict)

    def url(self, kind: str, name: str) -> str:
        return f"{self.place.registry}/v2/{self.place.repository}/{kind}/{name}"

    def manifest(self, name: str) -> bytes:
        """The manifest or index called so (tag or digest); logs in anonymously when the registry asks for it."""
        accept = {"Accept": ", ".join((*INDEXES, *MANIFESTS))}
        url = self.url("manifests", name)
        try:
            return fetch_bytes(url, headers={**accept, **self.headers})
        except urllib.error.HTTPError as error:
            self._login(error)
        try:
            return fetch_bytes(url, headers={**accept, **self.headers})
        except urllib.error.HTTPError as error:
            raise PaiError(f"{self.place}: the registry refuses anonymous pulls") from error

    def _login(self, refused: urllib.error.HTTPError) -> None:
        challenge = refused.headers.get("WWW-Authenticate", "")
        words = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        if not challenge.lower().startswith("bearer") or "realm" not in words:
            raise PaiError(f"{self.place}: the registry refuses anonymous pulls") from refused
        query = urllib.parse.urlencode({name: words[name] for name in ("service", "scope") if name in words})
        answer = json.loads(fetch_bytes(f"{words['realm']}?{query}"))
        self.headers["Authorization"] = f"Bearer {answer.get('token') or answer.get('access_token')}"


def pull(place_: Reference, architecture: Architecture, layout: Path, downloads: Path, progress: Progress) -> str:
    """Writes the image into the new folder `layout`; gives the digest of its manifest.

    downloads: folder where interrupted downloads wait for the next attempt.
    Raises PaiError when the image is not there, not for this architecture, or damaged.
    """
    progress(f"{place_}: pulling")
    session = _Session(place_)
    described, data = _choose(session, architecture)
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    manifest = json.loads(data)
    (blobs / _hex(described["digest"])).write_bytes(data)
    for blob in [manifest["config"], *manifest["layers"]]:
        name = _hex(blob["digest"])
        url = session.url("blobs", blob["digest"])
        place(download(url, downloads / name, name, progress, headers=session.headers), blobs / name)
    return write_index(layout, described, place_.tag)


def _choose(session: _Session, architecture: Architecture) -> tuple[Mapping[str, Any], bytes]:
    """The manifest for the architecture: its descriptor and its bytes."""
    data = session.manifest(session.place.tag)
    document = json.loads(data)
    if "manifests" in document:
        platforms = [
            item
            for item in document["manifests"]
            if item.get("platform", {}).get("architecture") == architecture and item["platform"].get("os") == "linux"
        ]
        if not platforms:
            raise PaiError(f"{session.place} has no image for linux/{architecture}")
        wanted = platforms[0]["digest"]
        data = session.manifest(wanted)
        if digest_of(data) != wanted:
            raise PaiError(f"{session.place}: the registry sent another manifest than {wanted}")
        document = json.loads(data)
    media_type = document.get("mediaType", MANIFESTS[0])
    return {"mediaType": media_type, "digest": digest_of(data), "size": len(data)}, data


def _hex(digest: str) -> str:
    """The hex digits of "sha256:..."; raises PaiError for anything else, which could escape the folder."""
    match = re.fullmatch(r"sha256:([0-9a-f]{64})", digest)
    if not match:
        raise PaiError(f"{digest!r} is not a sha256 digest")
    return match.group(1)
