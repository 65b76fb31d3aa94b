"""Which scheduler of jobs a site has. Pure."""

from __future__ import annotations

from pai_install.site.model import Site


def scheduler_of(site: Site) -> str:
    """The type that the section `scheduler` names; empty where it names none."""
    section = site.services.scheduler
    return section.type if section is not None else ""
