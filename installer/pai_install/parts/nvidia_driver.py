"""NVIDIA's driver, where the site wants a branch of it installed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Annotated, Literal

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, Space, everywhere, restarts
from pai_install.site import Machine, Site
from pai_install.site.nvidia_driver import DriverSpec

_NONE = restarts()  # what runs keeps running: another version takes its turn when the machine restarts


class NvidiaDriverVariables(RoleVariables):
    """branch: first number of the version. modules: of the kernel. packages: whose."""

    role = "nvidia_driver"
    branch: Annotated[int, _NONE]
    modules: Annotated[Literal["open", "proprietary"], _NONE]
    packages: Annotated[Literal["distribution", "nvidia"], _NONE]


class NvidiaDriver(Part):
    """Machines with NVIDIA devices."""

    name = "nvidia_driver"
    phase = "base"
    model = NvidiaDriverVariables
    # their packages restart them, where they run already
    restarts = ("nvidia-persistenced.service", "nvidia-fabricmanager.service")

    def applies(self, site: Site, machine: Machine) -> bool:
        """Returns whether the node's SKU has NVIDIA devices."""
        return machine.node and site.sku_of(machine).has_nvidia

    def variables(self, context: Context, machine: Machine) -> NvidiaDriverVariables | None:
        """None where the driver is the admin's."""
        del machine
        driver = context.site.settings.nvidia_driver
        if not isinstance(driver, DriverSpec):
            return None
        return NvidiaDriverVariables(branch=driver.branch, modules=driver.modules, packages=driver.packages)

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """Nothing of the machine itself matters."""
        return everywhere(site, machine)

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """Packages, and modules built for each kernel."""
        del machine
        return {"/usr": Space(2, 4)} if isinstance(site.settings.nvidia_driver, DriverSpec) else {}
