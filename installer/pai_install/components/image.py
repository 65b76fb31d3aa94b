"""Container images from files, without a container engine: OCI image layouts, the same bytes for the same input."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from pai_install.components.model import Architecture

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
EPOCH = "1970-01-01T00:00:00Z"
# the file capability CAP_NET_BIND_SERVICE: struct vfs_cap_data of linux/capability.h, effective and permitted, as tar
# carries extended attributes
_LOW_PORTS = {"SCHILY.xattr.security.capability": "\1\0\0\2\0\4" + "\0" * 14}
SEARCH_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """One path of a layer, without a leading slash: a file (content), a link (link), or else a folder.

    low_ports: a program that may bind ports below 1024, also without root.
    """

    path: str
    mode: int = 0o755
    content: Path | bytes | None = None
    link: str = ""
    low_ports: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """A gzip-compressed tar. digest: of the file. diff_id: of the tar in it. Both "sha256:...". size: bytes."""

    path: Path
    digest: str
    diff_id: str
    size: int


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """How a container of the image starts. user: "" is root. env: "NAME=VALUE", beside the search path."""

    entrypoint: tuple[str, ...]
    user: str = ""
    env: tuple[str, ...] = ()


class _Hashing:
    """A writable stream that also computes the digest."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._target.write(data)

    def flush(self) -> None:
        self._target.flush()

    @property
    def digest(self) -> str:
        return f"sha256:{self.hash.hexdigest()}"


def write_archive(
    nodes: Iterable[LayerEntry], target: Path, *, folders: bool = True, level: int = 1
) -> tuple[str, str]:
    """Writes a reproducible tar.gz and returns (digest of the file, digest of the tar).

    Owners are root, times 1970, order by path. Parent folders are added unless `folders` is False. level: of gzip.
    """
    ordered = _ordered(nodes, folders=folders)
    # GNU's form has no extended attributes
    form = tarfile.PAX_FORMAT if any(node.low_ports for node in ordered) else tarfile.GNU_FORMAT
    with target.open("wb") as raw:
        packed = _Hashing(raw)
        # gzip would store name and time, and each build would have another digest.
        squeeze = gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=cast("IO[bytes]", packed), mtime=0)
        with squeeze:
            plain = _Hashing(cast("IO[bytes]", squeeze))
            with tarfile.open(fileobj=cast("IO[bytes]", plain), mode="w|", format=form) as archive:
                for node in ordered:
                    _add(archive, node)
    return packed.digest, plain.digest


def write_layer(nodes: Iterable[LayerEntry], folder: Path, level: int = 1) -> Layer:
    """Writes a layer into `folder`, under the hex digits of its digest."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=folder)
    os.close(descriptor)
    digest, diff_id = write_archive(nodes, Path(name), level=level)
    path = Path(name).rename(folder / digest.removeprefix("sha256:"))
    path.chmod(0o644)
    return Layer(path, digest, diff_id, path.stat().st_size)


def read_layer(path: Path) -> Layer:
    """Describes a layer that is already on disk."""
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    with gzip.open(path) as unpacked:
        diff_id = hashlib.file_digest(unpacked, "sha256").hexdigest()
    return Layer(path, f"sha256:{digest}", f"sha256:{diff_id}", path.stat().st_size)


def write_image(
    layout: Path, layers: Sequence[Layer], config: ImageConfig, tag: str, architecture: Architecture
) -> str:
    """Writes an OCI image layout with one image and returns the digest of its manifest.

    Layers are linked (or copied) into the layout.
    """
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    for layer in layers:
        place(layer.path, blobs / layer.digest.removeprefix("sha256:"))
    described = _describe(blobs, CONFIG, _config(layers, config, architecture))
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": described,
        "layers": [{"mediaType": LAYER, "digest": layer.digest, "size": layer.size} for layer in layers],
    }
    return write_index(layout, _describe(blobs, MANIFEST, manifest), tag)


def write_index(layout: Path, manifest: Mapping[str, Any], tag: str) -> str:
    """Writes oci-layout and index.json for one manifest and returns its digest."""
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            {**manifest, "annotations": {"org.opencontainers.image.ref.name": tag}},
        ],
    }
    (layout / "index.json").write_bytes(_json(index))
    (layout / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    return str(manifest["digest"])


def place(source: Path, target: Path) -> None:
    """Makes `target` the same file as `source`: a hard link, or a copy where that is not possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _config(layers: Sequence[Layer], config: ImageConfig, architecture: Architecture) -> dict[str, Any]:
    return {
        "created": EPOCH,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": config.user,
            "Env": [SEARCH_PATH, *config.env],
            "Entrypoint": list(config.entrypoint),
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": EPOCH, "created_by": "pai-install"} for _ in layers],
    }


def _describe(blobs: Path, media_type: str, document: Mapping[str, Any]) -> dict[str, Any]:
    data = _json(document)
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def _ordered(nodes: Iterable[LayerEntry], *, folders: bool) -> list[LayerEntry]:
    known = {node.path: node for node in nodes}
    if folders:
        for path in list(known):
            for parent in list(PurePosixPath(path).parents)[:-1]:
                known.setdefault(str(parent), LayerEntry(str(parent)))
    return [known[path] for path in sorted(known)]


def _add(archive: tarfile.TarFile, node: LayerEntry) -> None:
    member = tarfile.TarInfo(node.path)
    member.mode = node.mode
    member.pax_headers = _LOW_PORTS if node.low_ports else {}
    if node.link:
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, node.link, 0o777
        archive.addfile(member)
    elif node.content is None:
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
    elif isinstance(node.content, bytes):
        member.size = len(node.content)
        archive.addfile(member, io.BytesIO(node.content))
    else:
        member.size = node.content.stat().st_size
        with node.content.open("rb") as handle:
            archive.addfile(member, handle)
