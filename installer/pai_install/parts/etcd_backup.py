"""Snapshots of etcd by a timer, on every control plane."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, Space, everywhere
from pai_install.site import Machine, Site


class EtcdBackupVariables(RoleVariables):
    """schedule: as OnCalendar of systemd takes it. keep: snapshots that stay."""

    role = "etcd_backup"
    schedule: str
    keep: int


class EtcdBackup(Part):
    """Every control plane of a site that asks for it: the disk of any of them may be lost."""

    name = "etcd_backup"
    phase = "addons"
    model = EtcdBackupVariables
    after = ("control_plane",)
    removable = True

    def applies(self, site: Site, machine: Machine) -> bool:
        """The control planes, also where the timer is to be taken away."""
        del site
        return machine.control_plane

    def variables(self, context: Context, machine: Machine) -> EtcdBackupVariables | None:
        """Returns the same variables for all nodes, or None without backups in the site."""
        del machine
        wanted = context.site.settings.etcd_backup
        return EtcdBackupVariables(schedule=wanted.schedule, keep=wanted.keep) if wanted else None

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """Returns the space of the kept backups for a typical small etcd."""
        del machine
        return {"/var/lib/pai-install": Space(2, 10)} if site.settings.etcd_backup else {}
