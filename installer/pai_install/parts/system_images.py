"""The system's images on each machine, by the digests of the plan.

A part of its own: its settings change with every image, and neither containerd nor the kubelet restarts for one.
"""

from __future__ import annotations

from collections.abc import Hashable

from pydantic import BaseModel, ConfigDict

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, by_kind
from pai_install.site import Machine, Site


class Image(BaseModel):
    """name: with its tag. digest: of the manifest."""

    model_config = ConfigDict(frozen=True)
    name: str
    digest: str


class SystemImagesVariables(RoleVariables):
    """The images of the machine's pods."""

    role = "system_images"
    images: tuple[Image, ...]


class SystemImages(Part):
    """Every machine, before its kubelet could ask for an image by its tag."""

    name = "system_images"
    phase = "runtime"
    model = SystemImagesVariables
    after = ("component_store", "container_runtime")

    def variables(self, context: Context, machine: Machine) -> SystemImagesVariables:
        """Returns the images of all parts and add-ons with pods on this machine."""
        names = sorted(context.images(machine))
        return SystemImagesVariables(
            images=tuple(Image(name=context.tagged(name), digest=context.digest(name)) for name in names)
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """Nothing of the machine itself matters."""
        return by_kind(site, machine)
