"""Saves the irreplaceable data of the cluster in one file on the controller host."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.cluster.client import Select
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.objects import child, text
from pai_install.operations.operation import Operation
from pai_install.plan.leader import leader_of
from pai_install.plan.model import HostStep, LocalWork, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter

FOLDER = ".pai/backups"
# as the timer of the role etcd_backup names them
KEPT = re.compile(r"etcd-(?P<at>\d{8}T\d{6}Z)\.db")
KEPT_IN = "/var/lib/pai-install/etcd-backup"
ON_MACHINE = "/var/lib/pai-install/backup/backup.tar"


class Backup(Operation):
    """A snapshot of etcd, the keys of the cluster, the site's files, and the site's state on the controller host."""

    name: ClassVar[str] = "backup"
    summary: ClassVar[str] = (
        "Back up etcd, the cluster's keys, the site and its state into one file of the controller host."
    )
    file: Annotated[str, Parameter(positional=True, metavar="[FILE]")] = Field("", description="Path of the new file.")
    snapshot: Annotated[str, Parameter(metavar="NAME", default="a new snapshot")] = Field(
        "", description="Use a scheduled snapshot of the control plane, for example etcd-20270131T000000Z.db."
    )

    def watched(self, site: Site) -> tuple[str, ...]:
        """The control planes."""
        return tuple(machine.hostname for machine in site.control_planes)

    @property
    def queries(self) -> tuple[Select, ...]:
        """Returns the query of the namespace with the uid of the cluster."""
        return (Select(("namespaces",), fields="metadata.name=kube-system"),)

    def require(self, site: Site) -> None:
        """Checks that the file does not exist yet, and that the snapshot is one of the timer's."""
        del site
        if self.snapshot and KEPT.fullmatch(self.snapshot) is None:
            raise PaiError(
                f"cannot find snapshot {self.snapshot}",
                code="snapshot-name-invalid",
                remedy=f"name a file of {KEPT_IN} on the control plane, such as etcd-20270131T000000Z.db",
                exit_code=ExitCode.USAGE,
            )
        if self.file and Path(self.file).exists():
            raise PaiError(
                f"cannot write {self.file}: the file exists",
                code="backup-file-exists",
                remedy="name a new file",
                exit_code=ExitCode.USAGE,
            )

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step on the leader, one on the controller host. Raises PaiError where no control plane answered."""
        leader = leader_of(site, observation.machines)
        if leader not in observation.machines:
            raise PaiError(
                "cannot back up the cluster: every control-plane node is unreachable",
                code="control-plane-silent",
                remedy="find the cause with pai-install status",
                exit_code=ExitCode.UNREACHABLE,
            )
        file = self._file(site, observation)
        machine = f"{file}.machine"
        host = (HostStep(leader, ("asked for",)),)
        variables = {"backup_on_machine": ON_MACHINE, "backup_on_box": machine, "backup_snapshot": self.snapshot}
        arguments = {"file": file, "machine": machine, "cluster": cluster_id(observation), "of": self._of(observation)}
        what = f"the snapshot {self.snapshot}" if self.snapshot else "a snapshot of etcd"
        # A backup changes nothing, so no verification follows it.
        steps = (
            Step("backup", f"Take {what}, and the keys", host, Playbook("backup.yml", variables), looks=True),
            Step("pack", f"Write {file}", host, LocalWork("backup", arguments), ("backup",), looks=True),
        )
        return Plan(steps, observation.inventory, observation.unreachable, leader)

    def _file(self, site: Site, observation: Observation) -> str:
        if self.file:
            return str(Path(self.file).absolute())
        return str(site.directory.resolve() / FOLDER / f"{self._of(observation)}.tar.gz")

    def _of(self, observation: Observation) -> str:
        """Returns the time of the data."""
        kept = KEPT.fullmatch(self.snapshot)
        return kept["at"] if kept else datetime.fromtimestamp(observation.at, UTC).strftime("%Y%m%dT%H%M%SZ")


def cluster_id(observation: Observation) -> str:
    """Returns the unique uid of the namespace kube-system, or "" if the API did not return it."""
    found = observation.answers[0] if observation.answers else ()
    return text(child(found[0], "metadata").get("uid")) if found else ""
