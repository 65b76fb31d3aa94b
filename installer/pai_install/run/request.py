"""The request of a run: an operation on a site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pai_install.checks.finding import Finding
from pai_install.cluster.client import Select
from pai_install.plan.changes import RefusedChange
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.plan.versions import Versions
from pai_install.scheduling.model import Backend
from pai_install.site.model import Machine, Site


class RunnableOperation(Protocol):
    """The part of an operation that a run needs. See `operations.operation.Operation`."""

    @property
    def name(self) -> str: ...

    @property
    def configures(self) -> bool: ...

    @property
    def checks_deprecated(self) -> bool: ...

    @property
    def ends_cluster(self) -> bool: ...

    @property
    def arguments(self) -> Mapping[str, Any]: ...

    @property
    def queries(self) -> tuple[Select, ...]: ...

    @property
    def guests(self) -> tuple[Machine, ...]: ...

    def require(self, site: Site) -> None: ...

    def watched(self, site: Site) -> tuple[str, ...]: ...

    def refused_changes(self, site: Site, observation: Observation) -> tuple[RefusedChange, ...]: ...

    def replaced_scheduler(self, site: Site, observation: Observation) -> Backend | None: ...

    def versions(self, site: Site, observation: Observation) -> Mapping[str, Versions]: ...

    def plan(self, site: Site, observation: Observation) -> Plan: ...

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]: ...

    def typed(self, plan: Plan) -> str: ...

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str: ...


@dataclass(frozen=True, slots=True)
class Request:
    """A requested run. forced_checks: ids of preflight checks with ignored failures.

    services, layout: texts that replace services-configuration.yaml and layout.yaml. None: the files.
    """

    operation: RunnableOperation
    forced_checks: tuple[str, ...] = ()
    services: str | None = None
    layout: str | None = None
