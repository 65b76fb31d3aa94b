"""Which scheduler of jobs a site has. Pure."""

from __future__ import annotations

from pai_install.site.hived_cells import hived_of
from pai_install.site.model import Site
from pai_install.site.services.virtual_clusters import SchedulerType


def has_training_operator(site: Site) -> bool:
    """Whether Kubeflow's jobs run here."""
    section = site.services.scheduler
    return section is not None and section.training_operator


def scheduler_of(site: Site) -> SchedulerType | None:
    """Returns the type in the section `scheduler`, or hived for OpenPAI's block, or None without a choice."""
    section = site.services.scheduler
    if section is not None:
        return section.type
    return "hived" if hived_of(site) is not None else None
