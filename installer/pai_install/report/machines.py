"""The machines of a site in a report: role, SKU, and address. Pure."""

from __future__ import annotations

from pai_install.checks.report.html import ReportMachine
from pai_install.site import Site
from pai_install.site.summary import roles


def machines_of(site: Site) -> tuple[ReportMachine, ...]:
    """The present machines, in the order of the layout."""
    return tuple(
        ReportMachine(machine.hostname, tuple(roles(machine)), machine.sku, machine.hostip)
        for machine in site.present_machines
    )
