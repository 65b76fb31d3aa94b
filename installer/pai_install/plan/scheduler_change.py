"""The scheduler of jobs that a cluster has, if the site has another one. Pure."""

from __future__ import annotations

from collections.abc import Collection

from pai_install.parts.addon import RECORD_PREFIX
from pai_install.plan.observation import Observation
from pai_install.scheduling.model import BACKENDS, Backend
from pai_install.site.model import Site
from pai_install.site.schedulers import scheduler_of

_QUOTAS = f"{RECORD_PREFIX}virtual_clusters"


def replaced_scheduler(site: Site, observation: Observation) -> Backend | None:
    """Returns the scheduler that an installation of the site would remove, or None."""
    seen = observation.machines.get(site.control_planes[0].hostname)
    wanted = scheduler_of(site)
    return next((name for name in installed_schedulers(seen.roles) if name != wanted), None) if seen else None


def installed_schedulers(records: Collection[str]) -> tuple[Backend, ...]:
    """Returns the schedulers on a control plane, several after an interrupted switch. records: names of its records."""
    found = tuple(name for name in BACKENDS if f"{RECORD_PREFIX}{name}" in records)
    return found or (("default",) if _QUOTAS in records else ())
