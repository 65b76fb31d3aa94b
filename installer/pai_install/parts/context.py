"""The context of parts: the site, its components, shared addresses. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from pai_install.components.model import ComponentSet
from pai_install.ports import API_PROXY_PORT
from pai_install.registry.compile import registries_of
from pai_install.registry.content import with_content
from pai_install.registry.identity import Identity
from pai_install.registry.model import STORE_HOST, Registries
from pai_install.schedulers.compile import labels_of
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.read import scheduling_of
from pai_install.site import Machine, Site

API_NAME = "kubernetes.pai.internal"


class Artifact(BaseModel):
    """A program in the component store and where a machine installs it."""

    model_config = ConfigDict(frozen=True)
    name: str
    version: str
    url: str
    sha256: str
    kind: Literal["binary", "tar.gz"]
    dest: str


@dataclass(frozen=True)
class Context:
    """A site with its derived data and its state folder on the controller host.

    kernel_modules, namespaces, images (of a machine's pods), machine_ports (protocol -> ports that no pod needs): of
    all parts. identity: of store and cache, None if no variables are needed. registry.make_context creates a context.
    """

    site: Site
    components: ComponentSet
    state_dir: Path
    kernel_modules: tuple[str, ...]
    namespaces: tuple[str, ...]
    images: Callable[[Machine], tuple[str, ...]]
    machine_ports: Mapping[str, tuple[int, ...]]
    identity: Identity | None = None

    @cached_property
    def registries(self) -> Registries:
        """The registries as machines use them now. Raises PaiError where a secret of the cache is unavailable here."""
        identity = self.identity
        return with_content(registries_of(self.site, identity), identity.content if identity else None)

    @cached_property
    def scheduling(self) -> Scheduling | None:
        """Returns the division of the site's workers, or None."""
        return scheduling_of(self.site)

    @cached_property
    def scheduling_labels(self) -> Mapping[str, Mapping[str, str]]:
        """Returns worker -> node labels of its scheduler, for present workers."""
        return labels_of(self.scheduling) if self.scheduling is not None else {}

    @property
    def leader(self) -> Machine:
        """The first control plane: it serves the components and makes the join tokens."""
        return self.site.control_planes[0]

    @property
    def store_address(self) -> str:
        """HOST:PORT of the component store. The host is a name where machines know it, so that it may move."""
        host = STORE_HOST if self.site.settings.hosts_entries else self.leader.hostip
        return f"{host}:{self.site.settings.component_store_port}"

    @property
    def store_url(self) -> str:
        """Its address with the scheme."""
        return f"https://{self.store_address}"

    @property
    def authorities(self) -> str:
        """Returns PEM of the authorities of store and cache, or "" without an identity."""
        return self.identity.bundle if self.identity else ""

    @property
    def endpoint(self) -> str:
        """NAME:PORT that nodes reach the API by: each machine's own proxy, whatever control planes come and go."""
        host = API_NAME if self.site.settings.hosts_entries else "127.0.0.1"
        return f"{host}:{API_PROXY_PORT}"

    def image(self, repository: str) -> str:
        """Returns the reference of an image in our objects: NAME:TAG@DIGEST. Raises KeyError for an image that was not
        fetched.
        """
        return f"{self.tagged(repository)}@{self.digest(repository)}"

    def tagged(self, repository: str) -> str:
        """NAME:TAG of an image, as kubeadm names it."""
        return f"{STORE_HOST}/{repository}:{self.tag(repository)}"

    def digest(self, repository: str) -> str:
        """The digest of an image's manifest, "sha256:..."."""
        return self.components.image(repository).manifest_digest

    def tag(self, repository: str) -> str:
        """The tag of an image."""
        return self.components.image(repository).tag

    def artifacts(self, destinations: Sequence[tuple[str, str]]) -> tuple[Artifact, ...]:
        """Programs (name, where to install it) as the component store serves them."""
        return tuple(self._artifact(name, destination) for name, destination in destinations)

    def _artifact(self, name: str, destination: str) -> Artifact:
        file = self.components.file(name)
        url = f"{self.store_url}/v2/files/{file.name}/blobs/sha256:{file.sha256}"
        return Artifact(
            name=file.name, version=file.version, url=url, sha256=file.sha256, kind=file.kind, dest=destination
        )
