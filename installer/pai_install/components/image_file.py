"""Reads one image out of a file as `docker save`, `skopeo copy` or `ctr images export` write it."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pai_install.components.download import digest_of
from pai_install.components.image import CONFIG, LAYER, MANIFEST, write_index
from pai_install.components.model import Architecture
from pai_install.components.registry_client import MANIFESTS
from pai_install.errors import ExitCode, PaiError

# Manifests and configurations are small. A wrong file must not fill the memory.
_LARGEST_DOCUMENT = 16 << 20
_GZIP = b"\x1f\x8b"
_COMPRESSION = (zlib.error, lzma.LZMAError, EOFError)
_UNREADABLE = (*_COMPRESSION, OSError, tarfile.TarError, ValueError, KeyError, TypeError, OverflowError, RecursionError)
Document = dict[str, Any]


def check_image_file(path: Path, architecture: Architecture) -> None:
    """Raises PaiError (site invalid) if the file is no image for that architecture. Layers are not read."""
    with _opened(path) as image:
        if image.is_oci:
            image.manifest(architecture)
        else:
            image.entry(architecture)


def unpack_image_file(path: Path, architecture: Architecture, layout: Path, tag: str) -> str:
    """Writes the image into the new folder `layout`, verifies every digest, and returns the digest of its manifest.

    Raises PaiError (site invalid) as `check_image_file`, and for a damaged layer.
    """
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    with _opened(path) as image:
        if image.is_oci:
            manifest = image.manifest(architecture)
            for part in _parts(json.loads(manifest)):
                image.copy(part, blobs)
        else:
            manifest = image.converted(image.entry(architecture), blobs)
        digest = digest_of(manifest)
        (blobs / digest.removeprefix("sha256:")).write_bytes(manifest)
        # The media type is optional in a manifest, and older tools leave it out.
        kind = json.loads(manifest).get("mediaType")
        known = kind if kind in MANIFESTS else MANIFEST
        return write_index(layout, {"mediaType": known, "digest": digest, "size": len(manifest)}, tag)


class _ImageFile:
    """The members of an opened file, by name."""

    def __init__(self, path: Path, archive: tarfile.TarFile) -> None:
        self._path, self._archive = path, archive
        # Some tools write "./" before the names, and others do not.
        self._members = {member.name.removeprefix("./"): member for member in archive}

    @property
    def is_oci(self) -> bool:
        """Returns whether it has OCI's format or both. Otherwise it has Docker's."""
        return "index.json" in self._members

    def manifest(self, architecture: Architecture) -> bytes:
        """OCI's manifest as it is. Raises PaiError."""
        data = self._chosen(self._document("index.json"), architecture)
        self._check(self._document(_blob(json.loads(data)["config"]["digest"])), architecture)
        return data

    def entry(self, architecture: Architecture) -> Document:
        """Returns the counterpart of the manifest in Docker's format. Raises PaiError."""
        entry = self._only(self._list("manifest.json"), "images")
        self._check(self._document(str(entry["Config"])), architecture)
        return entry

    def copy(self, digest: str, blobs: Path) -> None:
        """One blob, compared with its digest. Raises PaiError when it differs."""
        name = _hex(digest)
        with self._open(f"blobs/sha256/{name}") as source, (blobs / name).open("wb") as target:
            shutil.copyfileobj(source, target)
        with (blobs / name).open("rb") as written:
            if hashlib.file_digest(written, "sha256").hexdigest() != name:
                raise self._wrong(f"its part {name[:16]} is damaged")

    def converted(self, entry: Document, blobs: Path) -> bytes:
        """Returns OCI's manifest of an image in Docker's format. Its layers are verified against its configuration."""
        config = self._read(str(entry["Config"]))
        expected = json.loads(config)["rootfs"]["diff_ids"]
        layers = [self._layer(str(name), blobs) for name in entry["Layers"]]
        if [diff_id for _, diff_id in layers] != expected:
            raise self._wrong("its layers are not those of its configuration")
        (blobs / digest_of(config).removeprefix("sha256:")).write_bytes(config)
        described = {"mediaType": CONFIG, "digest": digest_of(config), "size": len(config)}
        document = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": described,
            "layers": [layer for layer, _ in layers],
        }
        return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()

    def _layer(self, name: str, blobs: Path) -> tuple[Document, str]:
        """Its description and the digest of its tar."""
        # A blob is named by its digest, which is known once it is read.
        part = blobs / "part"
        with self._open(name) as source, part.open("wb") as target:
            shutil.copyfileobj(source, target)
        with part.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
            written.seek(0)
            packed = written.read(2) == _GZIP
        diff_id = digest
        if packed:
            # A configuration names its layers by their digest without compression.
            with gzip.open(part) as unpacked:
                diff_id = hashlib.file_digest(unpacked, "sha256").hexdigest()
        kind = LAYER if packed else LAYER.removesuffix("+gzip")
        size = part.stat().st_size
        part.replace(blobs / digest)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": size}, f"sha256:{diff_id}"

    def _chosen(self, index: Document, architecture: Architecture) -> bytes:
        """The one manifest for the architecture, through indexes of indexes."""
        listed = [item for item in index["manifests"] if _fits(item, architecture)]
        item = self._only(listed, f"images for linux/{architecture}")
        name = _hex(item["digest"])
        data = self._read(f"blobs/sha256/{name}")
        if digest_of(data) != item["digest"]:
            raise self._wrong(f"its part {name[:16]} is damaged")
        document = json.loads(data)
        return self._chosen(document, architecture) if "manifests" in document else data

    def _check(self, config: Document, architecture: Architecture) -> None:
        found = f"{config.get('os')}/{config.get('architecture')}"
        if found != f"linux/{architecture}":
            raise self._wrong(f"it is an image for {found[:60]}, and machines are linux/{architecture}")

    def _only(self, found: list[Any], what: str) -> Document:
        if len(found) != 1 or not isinstance(found[0], dict):
            raise self._wrong(f"it has {len(found)} {what} and not one")
        return found[0]

    def _document(self, name: str) -> Document:
        found = json.loads(self._read(name))
        if not isinstance(found, dict):
            raise self._wrong(f"its {name[:60]} is no JSON object")
        return found

    def _list(self, name: str) -> list[Any]:
        found = json.loads(self._read(name))
        return found if isinstance(found, list) else []

    def _read(self, name: str) -> bytes:
        with self._open(name) as handle:
            data = handle.read(_LARGEST_DOCUMENT + 1)
        if len(data) > _LARGEST_DOCUMENT:
            raise self._wrong(f"its {name[:60]} is too large")
        return data

    def _open(self, name: str) -> IO[bytes]:
        member = self._members.get(name)
        # A sparse member is of any size, whatever the file here has.
        is_whole = member is not None and member.isreg() and not member.issparse()
        handle = self._archive.extractfile(member) if member is not None and is_whole else None
        if handle is None:
            raise self._wrong(f"it has no {name[:60]}")
        return handle

    def _wrong(self, why: str) -> PaiError:
        return _not_an_image(self._path, why)


@contextmanager
def _opened(path: Path) -> Iterator[_ImageFile]:
    try:
        with tarfile.open(path) as archive:
            yield _ImageFile(path, archive)
    except _UNREADABLE as error:
        raise _not_an_image(path, f"{type(error).__name__}: {error}"[:200]) from error


def _fits(item: Mapping[str, Any], architecture: Architecture) -> bool:
    """Whether it may be the wanted one: of that platform, or of none that is said."""
    platform = item.get("platform")
    return platform is None or (platform.get("os"), platform.get("architecture")) == ("linux", architecture)


def _parts(manifest: Document) -> list[str]:
    return [str(part["digest"]) for part in (manifest["config"], *manifest["layers"])]


def _blob(digest: object) -> str:
    return f"blobs/sha256/{_hex(digest)}"


def _hex(digest: object) -> str:
    """Returns the hex digits of a digest. Raises ValueError for other text, which could be a path."""
    found = re.fullmatch(r"sha256:([0-9a-f]{64})", str(digest))
    if found is None:
        raise ValueError("a digest is not one")
    return found.group(1)


def _not_an_image(path: Path, why: str) -> PaiError:
    return PaiError(
        f"cannot read the image {path}: {why}",
        code="image-file-unreadable",
        remedy="create it with docker save IMAGE -o FILE, or skopeo copy docker://IMAGE oci-archive:FILE",
        exit_code=ExitCode.SITE_INVALID,
    )
