"""What a worker needs to mount the storages of the site."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, everywhere
from pai_install.site import Machine, Site

# the kubelet calls mount.nfs; what mounts the other types comes in their drivers' images
_PACKAGES: Mapping[str, tuple[str, ...]] = {"nfs": ("nfs-common",)}
_MODULES: Mapping[str, tuple[str, ...]] = {
    "nfs": ("nfs",),
    "smb": ("cifs",),
    "azureFile": ("cifs",),
    "azureBlob": ("fuse",),
}


class StorageClientVariables(RoleVariables):
    """packages: Debian's."""

    role = "storage_client"
    packages: tuple[str, ...]


class StorageClient(Part):
    """Workers of a site whose storages need a program to be mounted."""

    name = "storage_client"
    phase = "base"
    model = StorageClientVariables
    after = ("base",)

    def applies(self, site: Site, machine: Machine) -> bool:
        """Where pods of jobs run."""
        del site
        return machine.worker

    def variables(self, context: Context, machine: Machine) -> StorageClientVariables | None:
        """The same on all workers; None where no storage needs a package."""
        del machine
        packages = _needed(context.site, _PACKAGES)
        return StorageClientVariables(packages=packages) if packages else None

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)

    def kernel_modules(self, site: Site) -> tuple[str, ...]:
        """The file systems in the kernel."""
        return _needed(site, _MODULES)


def _needed(site: Site, by_type: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What the storages of a site need, each once."""
    storages = site.services.storages or ()
    return tuple(dict.fromkeys(name for storage in storages for name in by_type.get(storage.type, ())))
