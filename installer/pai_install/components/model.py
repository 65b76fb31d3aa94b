"""The components as other rooms see them: verified programs and images on disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

FileKind = Literal["binary", "tar.gz"]
SourceName = Literal["upstream", "mirror", "bundle", "modules"]
Architecture = Literal["amd64", "arm64"]


@dataclass(frozen=True, slots=True)
class FileArtifact:
    """A program that is installed on machines as a file.

    kind: "binary" is the program itself (kubeadm, kubelet, kubectl, runc, registry, etcdctl). "tar.gz" unpacks into a
    folder: containerd and nvidia-container-toolkit hold bin/NAME (for /usr/local), cni-plugins holds ./NAME (for
    /opt/cni/bin).
    path: in the cache of the controller host. sha256: 64 lower-case hex digits. size: bytes.
    """

    name: str
    version: str
    kind: FileKind
    path: Path
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class ImageArtifact:
    """A container image as an OCI image layout on the controller host.

    repository: below the registry of the site, e.g. "kube-apiserver".
    tag: the one kubeadm asks for, e.g. "v1.36.3".
    manifest_digest: "sha256:..." of the one manifest that index.json names.
    layout: folder with oci-layout, index.json and blobs/sha256/*.
    """

    repository: str
    tag: str
    manifest_digest: str
    layout: Path


@dataclass(frozen=True, slots=True)
class ManifestArtifact:
    """Kubernetes objects of a third-party program, as its makers publish them.

    path: a file of YAML documents on the controller host. sha256: 64 lower-case hex digits.
    """

    name: str
    version: str
    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class ComponentSet:
    """Everything a site needs. kubernetes_version: exact, without a leading v."""

    files: tuple[FileArtifact, ...]
    images: tuple[ImageArtifact, ...]
    kubernetes_version: str
    manifests: tuple[ManifestArtifact, ...] = ()

    def also(self, *others: ComponentSet) -> ComponentSet:
        """Returns the union with other sets. For duplicates, the version of this set wins."""
        sets = (self, *others)
        files = {(file.name, file.sha256): file for found in sets for file in found.files}
        images = {(image.repository, image.tag): image for found in reversed(sets) for image in found.images}
        own = {(image.repository, image.tag): image for image in self.images}
        return replace(self, files=tuple(files.values()), images=tuple({**own, **images}.values()))

    def file(self, name: str) -> FileArtifact:
        """Returns the file called `name`. Raises KeyError if the set lacks it."""
        for artifact in self.files:
            if artifact.name == name:
                return artifact
        raise KeyError(name)

    def image(self, repository: str) -> ImageArtifact:
        """Returns the image called `repository`. Raises KeyError if the set lacks it."""
        for artifact in self.images:
            if artifact.repository == repository:
                return artifact
        raise KeyError(repository)

    def manifest(self, name: str) -> ManifestArtifact:
        """Returns the manifest called `name`. Raises KeyError if the set lacks it."""
        for artifact in self.manifests:
            if artifact.name == name:
                return artifact
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class PinnedComponent:
    """One component at the version chosen for it."""

    component: str
    version: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which components, at which versions, for one Kubernetes version and one source."""

    kubernetes_version: str
    source: SourceName
    picks: tuple[PinnedComponent, ...]

    def version(self, component: str) -> str:
        """Returns the selected version of `component`. Raises KeyError if it is not in the selection."""
        for pick in self.picks:
            if pick.component == component:
                return pick.version
        raise KeyError(component)
