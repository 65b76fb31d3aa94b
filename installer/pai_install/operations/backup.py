"""Put what the cluster cannot make again into one file on the dev box."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from pai_install.cluster.client import Select
from pai_install.cluster.objects import child, text
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.plan.leader import leader_of
from pai_install.plan.model import HostStep, LocalWork, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Site

FOLDER = ".pai/backups"
ON_MACHINE = "/var/lib/pai-install/backup/backup.tar"


class Backup(Operation):
    """A snapshot of etcd, the keys of the cluster, the site's files, what the dev box alone knows of the site."""

    name: ClassVar[str] = "backup"
    summary: ClassVar[str] = "Back up etcd, the cluster's keys, the site and its state into one file of the dev box."
    file: str = Field("", description="Path of the new file; empty: in .pai/backups of the site, named after the time.")

    def watched(self, site: Site) -> tuple[str, ...]:
        """The control planes."""
        return tuple(machine.hostname for machine in site.control_planes)

    @property
    def queries(self) -> tuple[Select, ...]:
        """The namespace whose id is the cluster's."""
        return (Select(("namespaces",), fields="metadata.name=kube-system"),)

    def require(self, site: Site) -> None:
        """A file that is there already is never replaced."""
        del site
        if self.file and Path(self.file).exists():
            raise PaiError(f"{self.file} is there already", remedy="give a new file", exit_code=ExitCode.USAGE)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step on the leader, one on the dev box. Raises PaiError where no control plane answered."""
        leader = leader_of(site, observation.machines)
        if leader not in observation.machines:
            raise PaiError(
                "no control plane of a cluster answered", remedy="pai-install status", exit_code=ExitCode.UNREACHABLE
            )
        file = self._file(site, observation)
        machine = f"{file}.machine"
        host = (HostStep(leader, ("asked for",)),)
        packing = Playbook("backup.yml", {"backup_on_machine": ON_MACHINE, "backup_on_box": machine})
        arguments = {"file": file, "machine": machine, "cluster": cluster_id(observation)}
        steps = (
            Step("backup", "Take a snapshot of etcd, and the keys", host, packing, looks=True),
            Step("pack", f"Write {file}", host, LocalWork("backup", arguments), ("backup",), looks=True),
        )
        return Plan(steps, observation.inventory, observation.unreachable, leader)

    def _file(self, site: Site, observation: Observation) -> str:
        if self.file:
            return str(Path(self.file).absolute())
        stamp = datetime.fromtimestamp(observation.at, UTC).strftime("%Y%m%dT%H%M%SZ")
        return str(site.directory.resolve() / FOLDER / f"{stamp}.tar.gz")


def cluster_id(observation: Observation) -> str:
    """The uid of the namespace kube-system, which no two clusters share; empty where the API did not say it."""
    found = observation.answers[0] if observation.answers else ()
    return text(child(found[0], "metadata").get("uid")) if found else ""
