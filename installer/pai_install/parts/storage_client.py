"""Packages of a worker for mounts of the site's storages and of its storage server."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from pydantic import BaseModel, ConfigDict, Field

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, everywhere
from pai_install.ports import NFS_PORT
from pai_install.site import Machine, Site

# the kubelet calls mount.nfs; what mounts the other types comes in their drivers' images
_PACKAGES: Mapping[str, tuple[str, ...]] = {"nfs": ("nfs-common",)}
_MODULES: Mapping[str, tuple[str, ...]] = {
    "nfs": ("nfs",),
    "smb": ("cifs",),
    "azureFile": ("cifs",),
    "azureBlob": ("fuse",),
}


class ExportCheck(BaseModel):
    """A folder that workers will mount. number: of the entry of `storages`."""

    model_config = ConfigDict(frozen=True)
    number: int = Field(exclude=True)
    server: str
    path: str
    port: int


def export_checks(site: Site) -> Iterator[ExportCheck]:
    """Yields those of NFS servers that are not the site's own, which this run may only set up."""
    own = {name for machine in site.storage_servers for name in (machine.hostname, machine.hostip)}
    for number, entry in enumerate(site.services.storages or ()):
        if entry.type == "nfs" and entry.server and entry.path and entry.server not in own:
            yield ExportCheck(number=number, server=entry.server, path=entry.path, port=_port(entry.mount_options))


def _port(options: Iterable[str]) -> int:
    """That of the mount's options, else NFS's."""
    given = (option.partition("=")[2] for option in options if option.startswith("port="))
    return next((int(word) for word in given if word.isdigit()), NFS_PORT)


class StorageClientVariables(RoleVariables):
    """packages: Debian's. exports: folders of servers of others. places: their SERVER:PATH -> FILE:LINE:COLUMN."""

    role = "storage_client"
    packages: tuple[str, ...]
    exports: tuple[ExportCheck, ...] = ()
    places: dict[str, str] = Field(default_factory=dict)


class StorageClient(Part):
    """Workers of a site with storages that need packages."""

    name = "storage_client"
    phase = "storage"
    model = StorageClientVariables
    after = ("base", "storage_server")
    not_settings = frozenset({"storage_client_places"})

    def applies(self, site: Site, machine: Machine) -> bool:
        """Where pods of jobs run."""
        del site
        return machine.worker

    def variables(self, context: Context, machine: Machine) -> StorageClientVariables | None:
        """Returns the same variables for all workers, or None if no storage needs a package."""
        del machine
        site = context.site
        packages = _needed(site, _PACKAGES)
        exports = tuple(export_checks(site))
        places = {f"{one.server}:{one.path}": site.places.get(f"storages.{one.number}.server", "") for one in exports}
        return StorageClientVariables(packages=packages, exports=exports, places=places) if packages else None

    def components(self, site: Site) -> frozenset[str]:
        """Returns the components that copy a storage to another place."""
        return frozenset({"rsync"}) if site.services.storages else frozenset()

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)

    def kernel_modules(self, site: Site) -> tuple[str, ...]:
        """The file systems in the kernel."""
        return _needed(site, _MODULES)


def _needed(site: Site, by_type: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the packages for the storages of a site, without duplicates. Workers mount a storage server even by
    foreign objects.
    """
    types = [*(storage.type for storage in site.services.storages or ()), *("nfs" for _server in site.storage_servers)]
    return tuple(dict.fromkeys(name for kind in types for name in by_type.get(kind, ())))
