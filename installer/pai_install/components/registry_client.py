"""Pulls one image from a container registry into an OCI image layout, and verifies the digest of every blob."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pai_install.components.access import UPSTREAM, Access, Mirror, answered, in_a_hurry
from pai_install.components.download import LARGEST, digest_of, download, fetch_bytes, first_byte
from pai_install.components.image import place, write_index
from pai_install.components.model import Architecture
from pai_install.components.progress import Progress, silent
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
    """Reference of an image: base url of the registry, repository, tag.

    digest: known digest of the tag's index or manifest, "sha256:...", or "".
    """

    registry: str
    repository: str
    tag: str
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.registry.partition('://')[2]}/{self.repository}:{self.tag}"


def reference(name: str, tag: str, mirror_url: str = "", digest: str = "") -> Reference:
    """The place of an image like registry.k8s.io/pause: there, or below a mirror under its full name."""
    if mirror_url:
        address = urllib.parse.urlsplit(mirror_url)
        path = address.path.strip("/")
        repository = f"{path}/{name}" if path else name
        return Reference(f"{address.scheme}://{address.netloc}", repository, tag, digest)
    host, _, repository = name.partition("/")
    return Reference(f"https://{'registry-1.docker.io' if host == 'docker.io' else host}", repository, tag, digest)


@dataclass
class _Session:
    """One repository of a registry, and the login it wanted (none until it asks)."""

    place: Reference
    mirror: Mirror
    progress: Progress
    patient: bool = True
    access: Access = field(init=False)
    headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        access = self.mirror.access() if self.patient else in_a_hurry(self.mirror.access())
        self.headers = dict(access.headers)
        self.access = replace(access, headers=self.headers, renew=self._login)

    def url(self, kind: str, name: str) -> str:
        return f"{self.place.registry}/v2/{self.place.repository}/{kind}/{name}"

    def manifest(self, name: str) -> bytes:
        """Returns the manifest or index with that tag or digest. Logs in if the registry requires it."""
        url, accept = self.url("manifests", name), ", ".join((*INDEXES, *MANIFESTS))

        def send() -> bytes:
            return fetch_bytes(url, access=self.access, headers={"Accept": accept}, progress=self.progress)

        try:
            return answered(self.access, send)
        except urllib.error.HTTPError as error:
            raise self._refused() from error

    def _refused(self) -> PaiError:
        if self.mirror.username:
            return PaiError(
                f"cannot log in to {self.place} as {self.mirror.username}: the registry rejects the password",
                code="registry-login-rejected",
                remedy="check component_mirror_username and component_mirror_password",
            )
        return PaiError(
            f"cannot pull from {self.place}: the registry requires a login",
            code="registry-anonymous-pull-refused",
            remedy="set component_mirror_username and component_mirror_password",
        )

    def _login(self, refused: urllib.error.HTTPError) -> None:
        challenge = refused.headers.get("WWW-Authenticate", "")
        words = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        if not challenge.lower().startswith("bearer") or "realm" not in words:
            raise self._refused() from refused
        self._check_realm(words["realm"])
        query = urllib.parse.urlencode({name: words[name] for name in ("service", "scope") if name in words})
        answer = self.document(self._token(f"{words['realm']}?{query}"))
        token = answer.get("token") or answer.get("access_token")
        if not (isinstance(token, str) and re.fullmatch(r"[!-~]+", token)):
            raise PaiError(
                f"cannot log in to {self.place}: the registry returned no token", code="registry-token-missing"
            )
        self.headers["Authorization"] = f"Bearer {token}"

    def _token(self, url: str) -> bytes:
        # A token server that refuses would otherwise ask for a token again, and that request for another one.
        access = replace(self.access, headers=self.mirror.login(), renew=None)
        try:
            return fetch_bytes(url, access=access, limit=1 << 20, progress=self.progress)
        except urllib.error.HTTPError as error:
            raise self._refused() from error

    def _check_realm(self, realm: str) -> None:
        """Checks the login address from the registry: https or the registry itself, never a file of the controller
        host.
        """
        address, own = urllib.parse.urlsplit(realm), urllib.parse.urlsplit(self.place.registry)
        if address.scheme != "https" and (address.scheme, address.netloc) != (own.scheme, own.netloc):
            raise PaiError(
                f"cannot log in to {self.place}: it redirects to {realm[:200]!r}",
                code="registry-realm-outside",
                remedy="choose another registry: a login needs https, or the host of the registry",
            )

    def document(self, data: bytes) -> dict[str, Any]:
        """Returns a JSON object. Raises PaiError for other data."""
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise PaiError(
                f"cannot read the answer of {self.place}: it is not a JSON object", code="registry-answer-invalid"
            )
        return document


def pull(
    place_: Reference,
    architecture: Architecture,
    layout: Path,
    downloads: Path,
    progress: Progress,
    mirror: Mirror = UPSTREAM,
) -> str:
    """Writes the image into the new folder `layout` and returns the digest of its manifest.

    downloads: folder of interrupted downloads. mirror: source of credentials and authorities. Raises PaiError if the
    image is missing, not the pinned one, not for this architecture, or damaged.
    """
    progress(f"{place_}: pulling")
    session = _Session(place_, mirror, progress)
    described, data = _choose(session, architecture)
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    wanted = _parts(session, data)
    (blobs / _hex(described["digest"])).write_bytes(data)
    for digest, size in wanted:
        name = _hex(digest)
        url = session.url("blobs", digest)
        file = download(url, downloads / name, name, progress, access=session.access, limit=size)
        place(file, blobs / name)
    return write_index(layout, described, place_.tag)


def probe(place_: Reference, architecture: Architecture, mirror: Mirror = UPSTREAM) -> None:
    """Asks for the image's manifest and the first byte of a blob, and waits for no server.

    Raises PaiError as `pull` does.
    """
    session = _Session(place_, mirror, silent, patient=False)
    _described, data = _choose(session, architecture)
    config = _parts(session, data)[0][0]
    first_byte(session.url("blobs", config), session.access)


def _choose(session: _Session, architecture: Architecture) -> tuple[Mapping[str, Any], bytes]:
    """The manifest for the architecture: its descriptor and its bytes."""
    data = _named(session)
    document = session.document(data)
    if "manifests" in document:
        wanted = _for(session, document["manifests"], architecture)
        data = session.manifest(wanted)
        # A mirror may answer with any document. Only the digest in the list binds this manifest to the one that was
        # asked for.
        if digest_of(data) != wanted:
            raise PaiError(
                f"cannot use {session.place}: its manifest is not {wanted}",
                code="registry-manifest-not-listed",
            )
        document = session.document(data)
    media_type = document.get("mediaType")
    known = media_type if media_type in MANIFESTS else MANIFESTS[0]
    return {"mediaType": known, "digest": digest_of(data), "size": len(data)}, data


def _named(session: _Session) -> bytes:
    """Returns the referenced manifest. It requests a pinned image by digest, so that a changed tag has no effect."""
    pinned = session.place.digest
    data = session.manifest(pinned or session.place.tag)
    if pinned and digest_of(data) != pinned:
        raise PaiError(
            f"cannot use {session.place}: its digest is {digest_of(data)}, expected {pinned}",
            code="registry-digest-mismatch",
            remedy="choose another component source. The registry or a mirror has exchanged the image",
        )
    return data


def _for(session: _Session, manifests: object, architecture: Architecture) -> str:
    """Returns the digest of the architecture's manifest in an index."""
    for item in manifests if isinstance(manifests, list) else ():
        platform = item.get("platform") if isinstance(item, dict) else None
        if isinstance(platform, dict) and (platform.get("os"), platform.get("architecture")) == ("linux", architecture):
            return f"sha256:{_hex(item.get('digest'))}"
    raise PaiError(
        f"cannot find an image for linux/{architecture} at {session.place}", code="registry-image-not-for-architecture"
    )


def _parts(session: _Session, data: bytes) -> list[tuple[str, int]]:
    """Returns digest and size of the parts in a manifest."""
    manifest = session.document(data)
    layers = manifest.get("layers")
    found = [manifest.get("config"), *(layers if isinstance(layers, list) else [None])]
    if not all(isinstance(blob, dict) for blob in found):
        raise PaiError(
            f"cannot read the manifest of {session.place}: its form is unknown", code="registry-manifest-unknown"
        )
    return [(f"sha256:{_hex(blob.get('digest'))}", _size(blob.get("size"))) for blob in found]


def _size(value: object) -> int:
    # The manifest comes from outside. Its size bounds the download, so a missing or absurd one must not lift the bound.
    return min(value, LARGEST) if isinstance(value, int) and value > 0 else LARGEST


def _hex(digest: object) -> str:
    """Returns the hex digits of "sha256:...". Raises PaiError for other text, which could leave the folder."""
    match = re.fullmatch(r"sha256:([0-9a-f]{64})", str(digest))
    if not match:
        raise PaiError(
            f"cannot read the digest {str(digest)[:100]!r}: it is not a sha256 digest", code="registry-digest-invalid"
        )
    return match.group(1)
