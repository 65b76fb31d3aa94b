"""Take the whole cluster off its machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.operations.node_cordon import ASKED
from pai_install.operations.node_removal_steps import cleaning, forgetting
from pai_install.operations.operation import Operation
from pai_install.plan.model import Plan, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Machine, Site
from pai_install.site.selection import watched
from pai_install.system.parameters import Parameter


class Reset(Operation):
    """Restores every machine to its state before the installation, without requests to Kubernetes."""

    name: ClassVar[str] = "reset"
    summary: ClassVar[str] = "Remove the cluster from all machines."
    ends_cluster: ClassVar[bool] = True
    with_data: bool = Field(
        default=False, description="Also remove images, Docker's data, the component store's content and storages."
    )
    cluster: Annotated[str, Parameter(hidden=True)] = Field(
        "", description="The cluster's id, which must be typed or given before anything is done."
    )

    def watched(self, site: Site) -> tuple[str, ...]:
        """All present machines."""
        return watched(site, ())

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the reset of workers, then of the machines that serve them. An unreachable machine is reported and
        skipped.
        """
        servers = {machine.hostname for machine in (*site.control_planes, *site.storage_servers)}
        last = [machine for machine in site.present_machines if machine.hostname in servers]
        first = [machine for machine in site.present_machines if machine.hostname not in servers]
        steps = (
            *self._cleaning(observation, first, "clean-workers", "Clean the workers"),
            *self._cleaning(observation, last, "clean-servers", "Clean the control planes and storage servers"),
        )
        cleaned = [name for step in steps for name in step.names]
        addresses = {machine.hostname: machine.hostip for machine in site.present_machines}
        steps += forgetting(cleaned, "keep", ASKED, addresses)
        nothing = "no machine that answered has anything of pai-install"
        return Plan(steps, observation.inventory, observation.unreachable, nothing=nothing)

    def _cleaning(
        self, observation: Observation, machines: Sequence[Machine], name: str, title: str
    ) -> tuple[Step, ...]:
        names = [machine.hostname for machine in machines]
        found = cleaning(observation.machines, names, ASKED, data=self.with_data)
        return tuple(replace(step, name=name, title=title) for step in found)

    def typed(self, plan: Plan) -> str:
        """The cluster's id."""
        del plan
        return self.cluster

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """What is lost."""
        del plan
        lost = "with all images and data" if self.with_data else "its objects and jobs are lost"
        return f"destroy cluster {self.cluster} on {len(hosts)} machines, {lost}"


def cluster_id(site: Site) -> str:
    """The word by which people tell clusters apart: OpenPAI's cluster-id, else the name of the site's folder."""
    common = site.services.cluster.common if site.services.cluster else None
    return (common.cluster_id if common else None) or site.directory.resolve().name
