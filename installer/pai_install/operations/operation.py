"""An operation: its name, its arguments, and its plan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from pai_install.checks.finding import Finding
from pai_install.cluster.client import Select
from pai_install.plan.changes import RefusedChange
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.plan.versions import Versions, kept
from pai_install.scheduling.model import Backend
from pai_install.site.model import Machine, Site
from pai_install.system.words import plural


class Operation(BaseModel):
    """A command that changes something. The model's fields are its arguments, and `run` executes it.

    name: of the command, such as "node drain". summary: one line for lists and help.
    configures: it changes machine settings. Only then are the site's components downloaded.
    checks_deprecated: it needs `Observation.deprecated`.
    ends_cluster: it leaves no cluster to store the site's state.
    Every method is pure.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: ClassVar[str]
    summary: ClassVar[str]
    configures: ClassVar[bool] = False
    checks_deprecated: ClassVar[bool] = False
    ends_cluster: ClassVar[bool] = False

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as plain data."""
        return self.model_dump(mode="json")

    @property
    def guests(self) -> tuple[Machine, ...]:
        """Machines that the site does not have, or has as absent, and that the run reaches as well."""
        return ()

    def require(self, site: Site) -> None:
        """Raises PaiError for an argument that is unknown in the site. Called before any change."""

    def watched(self, site: Site) -> tuple[str, ...]:
        """The machines to observe before planning: none, unless the operation says otherwise."""
        del site
        return ()

    @property
    def queries(self) -> tuple[Select, ...]:
        """Returns the queries of the cluster before planning. `Observation.answers` has the objects of each."""
        return ()

    def refused_changes(self, site: Site, observation: Observation) -> tuple[RefusedChange, ...]:
        """Returns changes that the running cluster does not support. Then the run ends before any download.

        observation: its inventory has connections only.
        """
        del site, observation
        return ()

    def replaced_scheduler(self, site: Site, observation: Observation) -> Backend | None:
        """Returns the scheduler that the plan removes. `Observation.kept_jobs` has its jobs."""
        del site, observation
        return None

    def versions(self, site: Site, observation: Observation) -> Mapping[str, Versions]:
        """Returns machine -> component -> desired version. Installed versions stay, regardless of the catalogue's
        defaults.
        """
        return kept(site, observation.machines)

    @abstractmethod
    def plan(self, site: Site, observation: Observation) -> Plan:
        """The steps that are left to do, with the reason for each host."""

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]:
        """Findings that the report begins with."""
        del site, observation, plan
        return ()

    def typed(self, plan: Plan) -> str:
        """Returns the text that the user must type to confirm, or "" if yes is enough."""
        del plan
        return ""

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """Returns the confirmation question for the `hosts` that preflight admits, without '?'."""
        return f"run {plural(len(plan.steps), 'step')} on {plural(len(hosts), 'machine')}"
