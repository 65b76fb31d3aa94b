"""Evidence of all machines in, findings out; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.preflight.evidence import Evidence
from pai_install.preflight.model import Case, Check, Fleet, MissingEvidenceError, Ruling, unknown
from pai_install.preflight.rules import CHECKS
from pai_install.report.explain import explain
from pai_install.site import Site

REACHABLE = "reachable"
# a machine that gave no evidence at all: cause, as report.explain names it -> the check that says so
_CAUSES = {
    "host-key-changed": "host-key",
    "host-key-unknown": "host-key",
    "ssh-login": "login",
    "sudo-password": "sudo",
    "python-missing": "python",
    "no-space": "disk-space",
    "read-only": "file-systems",
}
CONTACT_CHECKS = {
    REACHABLE: "The machine answers over SSH and gives evidence",
    "host-key": "Its SSH host key is the recorded one",
    "login": "It lets the site's user log in",
}
BOX_CHECKS = {"component-source": "This box has every component in its cache, or can fetch it"}


def judge(
    site: Site,
    evidence: Mapping[str, Evidence],
    unreachable: Mapping[str, str],
    *,
    hosts: Collection[str] | None = None,
    architecture: str = "",
) -> tuple[Finding, ...]:
    """Every verdict, machine by machine in the order of the layout.

    unreachable: machine -> the words of what failed. hosts: only these are judged, the others are only compared
    with; None: all. architecture: this box's, by the kernel's name for it; empty: any will do.
    """
    fleet = Fleet(site, evidence, architecture)
    names = [machine.hostname for machine in site.present_machines if hosts is None or machine.hostname in hosts]
    return tuple(finding for name in names for finding in _machine(fleet, name, unreachable))


def _machine(fleet: Fleet, name: str, unreachable: Mapping[str, str]) -> Iterator[Finding]:
    seen = fleet.evidence.get(name)
    if seen is None:
        if name in unreachable:
            yield no_contact(name, unreachable[name])
        return
    yield Finding(REACHABLE, Verdict.PASS, name, "it answers over SSH")
    case = Case(fleet.site, fleet.machines[name], seen, fleet)
    for check in CHECKS:
        ruling = _ask(check, case)
        if ruling is not None:
            yield Finding(check.id, ruling.verdict, name, ruling.message, ruling.value, ruling.expected, ruling.remedy)


def _ask(check: Check, case: Case) -> Ruling | None:
    try:
        return check.judge(case)
    except MissingEvidenceError as missing:
        why = case.evidence.problems.get(missing.part, "it was not seen")
        return unknown(f"no evidence of {missing.part.replace('_', ' ')}: {why}")


def no_contact(name: str, words: str) -> Finding:
    """The finding for a machine that gave no evidence, with the cause in plain words."""
    found = explain(words, unreachable=True)
    assert found is not None  # noqa: S101 - there is always an explanation for an unreachable machine
    check = _CAUSES.get(found.id, REACHABLE)
    value = " ".join(words.split())[:500]
    return Finding(check, Verdict.FAIL, name, found.cause.rstrip("."), value, "evidence over SSH", found.remedy)


def check_ids() -> dict[str, str]:
    """Every check: id -> what must be so."""
    return {**BOX_CHECKS, **CONTACT_CHECKS, **{check.id: check.title for check in CHECKS}}
