"""What upstream would serve, made up: files and archives laid out as the real ones, images of one small layer."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML

from pai_install.components.catalogue import Catalogue, Component, FileSpec, Release
from pai_install.components.model import Architecture

MEMBERS: Mapping[str, list[str]] = YAML(typ="safe").load(Path(__file__).with_name("archives.yml"))
ARCHITECTURES: tuple[Architecture, ...] = ("amd64", "arm64")
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass
class Content:
    """files: url -> bytes. manifests: (repository with its host, tag or digest) -> bytes. blobs: digest -> bytes."""

    files: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[tuple[str, str], bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def make(catalogue: Catalogue, scratch: Path) -> tuple[Catalogue, Content]:
    """Everything that the catalogue names, and the catalogue with the sums and digests of that.

    This is the one seam: made-up files have other sums than the real ones. What was pinned stays pinned, what was
    not stays so, and an architecture without a sum gets none.
    """
    content = Content()
    components = {
        name: component.model_copy(
            update={
                "versions": {
                    version: _release(component, version, release, content, scratch)
                    for version, release in component.versions.items()
                }
            }
        )
        for name, component in catalogue.components.items()
    }
    return catalogue.model_copy(update={"components": components}), content


def _release(component: Component, version: str, release: Release, content: Content, scratch: Path) -> Release:
    if not component.has(version, "upstream"):
        return release
    sums: dict[str, dict[str, str]] = {}
    for name, spec in component.files.items():
        for key, url in spec.downloads(name).items():
            for architecture in release.sha256[key]:
                address = url.format(version=version, arch=architecture)
                # several programs may come out of one archive
                data = content.files.get(address) or _file(key, spec, version, architecture, scratch)
                content.files[address] = data
                sums.setdefault(key, {})[architecture] = hashlib.sha256(data).hexdigest()
    objects = {
        name: {file: _object(spec.url.format(version=version, file=file), content) for file in spec.files}
        for name, spec in component.manifests.items()
    }
    digests = {
        name: _image(component, spec.from_, spec.tag.format(version=version), content)
        for name, spec in component.images.items()
    }
    pinned = {name: digest if release.digest(name) else "unknown" for name, digest in digests.items()}
    return release.model_copy(update={"sha256": sums, "manifests": objects, "digests": pinned})


def _object(url: str, content: Content) -> str:
    content.files[url] = f"# {url}\nkind: StandIn\n".encode()
    return hashlib.sha256(content.files[url]).hexdigest()


def _file(key: str, spec: FileSpec, version: str, architecture: str, scratch: Path) -> bytes:
    names = [name.format(version=version, arch=architecture) for name in MEMBERS.get(key, ())]
    if spec.packages:
        return _package(f"{key}-{version}-{architecture}", architecture, names, scratch)
    return _archive(names, architecture) if names else f"stand-in for {key} {version} {architecture}".encode()


def _archive(names: list[str], architecture: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name.removesuffix("/") or ".")
            content = f"stand-in for {name} {architecture}".encode()
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            member.size, member.mode = (0 if member.isdir() else len(content)), 0o755
            archive.addfile(member, None if member.isdir() else io.BytesIO(content))
    return data.getvalue()


def _package(name: str, architecture: str, members: list[str], scratch: Path) -> bytes:
    root = scratch / name
    (root / "DEBIAN").mkdir(parents=True)
    control = (
        f"Package: stand-in\nVersion: 1\nArchitecture: {architecture}\nMaintainer: x <x@example.org>\nDescription: x\n"
    )
    (root / "DEBIAN/control").write_text(control)
    for member in members:
        (root / member).parent.mkdir(parents=True, exist_ok=True)
        (root / member).write_text(f"stand-in for {member} {architecture}")
    built = scratch / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, built], check=True, capture_output=True)
    return built.read_bytes()


def _image(component: Component, repository: str, tag: str, content: Content) -> str:
    """An image below its tag, with a manifest per architecture that its makers build; gives the index's digest."""
    listed = []
    for architecture in ARCHITECTURES:
        if architecture in component.lacks:
            continue
        config = json.dumps({"os": "linux", "architecture": architecture, "of": f"{repository}:{tag}"}).encode()
        layer = gzip.compress(f"stand-in for {repository}:{tag} {architecture}".encode() * 50, mtime=0)
        parts = [{"digest": digest_of(data), "size": len(data)} for data in (config, layer)]
        content.blobs |= {digest_of(data): data for data in (config, layer)}
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": parts[0], "layers": parts[1:]}
        manifest = json.dumps(document).encode()
        content.manifests[repository, digest_of(manifest)] = manifest
        listed.append(
            {"mediaType": MANIFEST, "digest": digest_of(manifest), "size": len(manifest)}
            | {"platform": {"os": "linux", "architecture": architecture}}
        )
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}).encode()
    content.manifests[repository, tag] = content.manifests[repository, digest_of(index)] = index
    return digest_of(index)
