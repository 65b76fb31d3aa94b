"""Limits of idle jobs of a virtual cluster, and their actions. Its settings override the site's. Pure.

The program that measures on the machines and the recorder on the control-plane nodes read the values from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pai_install.site.model import Site
from pai_install.site.services.jobs import Jobs
from pai_install.site.services.section import KebabSection
from pai_install.site.services.use_limits import IdleLimit, LongLimit, NotebookLimit, Then
from pai_install.site.services.virtual_clusters import VirtualClusterEntry

What = Literal["idle", "long", "notebook"]
# label of a notebook
NOTEBOOK_LABEL = "pai-install/notebook"
# annotation of a job: what it is warned of; no user writes it
WARNED = "pai-install/warned"


@dataclass(frozen=True, slots=True)
class UseLimit:
    """A limit. what: kind of jobs. busy_below: percent, 0 if utilization does not matter."""

    what: What
    busy_below: int
    after_s: int
    then: Then
    grace_s: int


@dataclass(frozen=True, slots=True)
class UseLimits:
    """All of a virtual cluster. A notebook has `notebook` in place of `idle`."""

    idle: UseLimit
    long: UseLimit
    notebook: UseLimit

    @property
    def all(self) -> tuple[UseLimit, ...]:
        """Each of them."""
        return self.idle, self.notebook, self.long


def limits_of(site: Site, cluster: str) -> UseLimits:
    """Returns the limits of a virtual cluster, or the site's for an unlisted one."""
    entries = site.services.virtual_clusters or ()
    return _limits(site.services.job_records, next((one for one in entries if one.name == cluster), None))


def all_limits(site: Site) -> Mapping[str, UseLimits]:
    """Returns the limits by virtual cluster. "": all others."""
    named = {entry.name: limits_of(site, entry.name) for entry in site.services.virtual_clusters or ()}
    return {"": _limits(site.services.job_records, None), **named}


def default_limits() -> UseLimits:
    """Returns the limits of a site without settings of its own."""
    return _limits(Jobs(), None)


def acts_of(site: Site) -> frozenset[Then]:
    """Returns all actions of the site except listing."""
    return frozenset(limit.then for limits in all_limits(site).values() for limit in limits.all if limit.then != "list")


def _limits(jobs: Jobs, entry: VirtualClusterEntry | None) -> UseLimits:
    idle = IdleLimit(**_given(jobs.idle, entry and entry.idle))
    long = LongLimit(**_given(jobs.long, entry and entry.long))
    notebooks = NotebookLimit(**_given(jobs.notebooks, entry and entry.notebooks))
    return UseLimits(
        UseLimit("idle", idle.busy_below, idle.after, idle.then, idle.grace),
        UseLimit("long", 0, long.after, long.then, long.grace),
        UseLimit("notebook", notebooks.busy_below, notebooks.after, notebooks.then, notebooks.grace),
    )


def _given(*sections: KebabSection | None) -> dict[str, Any]:
    """Returns the given values, with precedence for the last one."""
    # Later sections win. Only keys that are written count, so a default does not hide what the site says.
    return dict(pair for section in sections if section is not None for pair in _pairs(section))


def _pairs(section: KebabSection) -> Iterator[tuple[str, Any]]:
    fields = type(section).model_fields
    return ((fields[name].alias or name, getattr(section, name)) for name in section.model_fields_set)
