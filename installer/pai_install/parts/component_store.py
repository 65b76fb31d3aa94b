"""The component store: a registry on the first control plane with every program and image that machines need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from pai_install.parts.context import Context
from pai_install.parts.part import Part, Port, RoleVariables, Space, is_leader
from pai_install.site import Machine, Site

# Where something lies on the controller host says nothing about the machine.
_PLACES = {"path", "layout"}


class LocalFile(BaseModel):
    """A file on the controller host."""

    model_config = ConfigDict(frozen=True)
    name: str
    path: str
    sha256: str


class LocalImage(BaseModel):
    """An OCI image layout on the controller host."""

    model_config = ConfigDict(frozen=True)
    repository: str
    tag: str
    layout: str
    manifest_digest: str


class LocalProgram(BaseModel):
    """A program on the controller host."""

    model_config = ConfigDict(frozen=True)
    path: str
    sha256: str


class ComponentStoreVariables(RoleVariables):
    """The content of the store, and its registry program.

    private_key: with the certificate before it. ca: PEM of the authorities for requests to the store.
    """

    role = "component_store"
    port: int
    private_key: str
    ca: str
    registry: LocalProgram
    files: tuple[LocalFile, ...]
    images: tuple[LocalImage, ...]

    def settings(self) -> dict[str, Any]:
        """Without the places on the controller host."""
        return {name: _without_places(value) for name, value in self.variables().items()}


class ComponentStore(Part):
    """On the first control plane alone."""

    name = "component_store"
    phase = "components"
    model = ComponentStoreVariables
    # one more authority changes nothing that the store serves or shows
    not_settings = frozenset({"component_store_ca"})

    def applies(self, site: Site, machine: Machine) -> bool:
        """The first control plane."""
        return is_leader(site, machine)

    def variables(self, context: Context, machine: Machine) -> ComponentStoreVariables:
        """Everything that was fetched for the site."""
        del machine
        registry = context.components.file("registry")
        return ComponentStoreVariables(
            port=context.site.settings.component_store_port,
            private_key=context.identity.store.chain if context.identity else "",
            ca=context.authorities,
            registry=LocalProgram(path=str(registry.path), sha256=registry.sha256),
            files=tuple(
                LocalFile(name=file.name, path=str(file.path), sha256=file.sha256) for file in context.components.files
            ),
            images=tuple(
                LocalImage(
                    repository=image.repository,
                    tag=image.tag,
                    layout=str(image.layout),
                    manifest_digest=image.manifest_digest,
                )
                for image in context.components.images
            ),
        )

    def components(self, site: Site) -> frozenset[str]:
        """The registry."""
        del site
        return frozenset({"registry"})

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """Where machines fetch from."""
        del machine
        return (Port(site.settings.component_store_port, "component store", ("pai-registry",), clients="machines"),)

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """Its content."""
        del site, machine
        return {"/var/lib/pai-install": Space(2, 10)}


def _without_places(value: Any) -> Any:  # noqa: ANN401 - any plain value
    if isinstance(value, dict):
        return {key: _without_places(entry) for key, entry in value.items() if key not in _PLACES}
    return [_without_places(entry) for entry in value] if isinstance(value, list) else value
