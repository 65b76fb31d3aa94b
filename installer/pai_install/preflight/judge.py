"""Checks the evidence of all machines. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pai_install.checks.finding import Finding
from pai_install.checks.result import passed
from pai_install.checks.runner import run_checks
from pai_install.preflight.contact import REACHABLE, no_contact
from pai_install.preflight.evidence import PreflightEvidence
from pai_install.preflight.model import PreflightFleet, case_of
from pai_install.preflight.rules import checks_of
from pai_install.site import Site


def judge(
    site: Site,
    evidence: Mapping[str, PreflightEvidence],
    unreachable: Mapping[str, str],
    *,
    hosts: Collection[str] | None = None,
    architecture: str = "",
) -> tuple[Finding, ...]:
    """Returns all findings, by machine in the order of the layout.

    unreachable: machine -> error message. hosts: check only these and compare them with the others. None: all.
    architecture: of the controller host in the kernel's terms. Empty: any.
    """
    fleet = PreflightFleet(site, evidence, architecture)
    names = [machine.hostname for machine in site.present_machines if hosts is None or machine.hostname in hosts]
    return tuple(finding for name in names for finding in _machine(fleet, name, unreachable))


def _machine(fleet: PreflightFleet, name: str, unreachable: Mapping[str, str]) -> Iterator[Finding]:
    if name not in fleet.evidence:
        if name in unreachable:
            yield no_contact(name, unreachable[name])
        return
    yield REACHABLE.finding(name, passed(message="the machine answers over SSH"))
    case = case_of(fleet, name)
    yield from run_checks(checks_of(case.machine), case, name, case.record)
