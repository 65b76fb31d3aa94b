"""Reports as one self-contained HTML page each, all in one look: no file beside it, readable offline.

Escaping is the environment's own work: every value is text unless a template says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jinja2

from pai_install.checks.finding import Finding, counts, worst
from pai_install.checks.report.groups import groups
from pai_install.checks.report.text import by_subject
from pai_install.checks.verdict import CALM, GRAVITY, OPEN, Verdict
from pai_install.system.words import plural, shortened

# beside its colour, each verdict has a sign
SIGNS = {Verdict.FAIL: "✖", Verdict.UNKNOWN: "?", Verdict.WARN: "!", Verdict.PASS: "✔", Verdict.SKIP: "-"}


class ReportMachine(NamedTuple):
    """Facts of a machine in a report, in addition to its findings."""

    name: str
    roles: tuple[str, ...] = ()
    sku: str = ""
    address: str = ""


class Link(NamedTuple):
    """A file beside the page, or a command with more details. target: relative, empty for a command."""

    text: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """The head of a report. verdict: worst of all. headline: one sentence."""

    title: str
    verdict: Verdict
    headline: str
    machines: Sequence[ReportMachine] = ()
    links: Sequence[Link] = ()


class Row(NamedTuple):
    """One machine, or another subject, in the table of machines."""

    machine: ReportMachine
    verdict: Verdict
    counts: dict[str, int]
    checks: tuple[str, ...]


class Passed(NamedTuple):
    """A check that passes or does not apply somewhere."""

    verdict: Verdict
    check: str
    message: str
    number: int
    values: str


def findings_page(page: Page, findings: Sequence[Finding]) -> str:
    """Returns a report of checks: problems with remedies, then machines, then passed checks, collapsed."""
    return render("findings.html", page=page, **parts(page, findings))


def parts(page: Page, findings: Sequence[Finding]) -> dict[str, Any]:
    """Returns the template variables of findings: counts, groups, rows of machines, passes."""
    every = rows(page.machines, findings)
    return {
        "counts": counts(findings),
        "groups": list(groups(findings, OPEN)),
        "open_rows": [row for row in every if row.verdict not in CALM],
        "calm_rows": [row for row in every if row.verdict in CALM],
        "passes": passes(findings),
    }


def rows(machines: Iterable[ReportMachine], findings: Sequence[Finding]) -> list[Row]:
    """Returns a row for every machine and every other subject, worst first. A machine without findings is SKIP."""
    found = by_subject(findings)
    known = {machine.name: machine for machine in machines}
    # A subject such as the cluster is no machine, and has a row for its findings as well.
    known |= {name: ReportMachine(name) for name in found if name not in known}
    made = [_row(machine, found.get(name, [])) for name, machine in known.items()]
    return sorted(made, key=lambda row: GRAVITY.index(row.verdict))


def _row(machine: ReportMachine, findings: Sequence[Finding]) -> Row:
    checks = dict.fromkeys(finding.id for verdict in OPEN for finding in findings if finding.verdict is verdict)
    return Row(machine, worst(findings), counts(findings), tuple(checks))


def passes(findings: Iterable[Finding]) -> list[Passed]:
    """Every check that passes or does not apply somewhere, with the values that were seen."""
    alike: dict[tuple[Verdict, str], list[Finding]] = {}
    for finding in findings:
        if finding.verdict in CALM:
            alike.setdefault((finding.verdict, finding.id), []).append(finding)
    return [
        Passed(verdict, check, _causes(found), len(found), shortened(dict.fromkeys(_values(found)), 3, separator="; "))
        for (verdict, check), found in sorted(alike.items(), key=lambda item: (GRAVITY.index(item[0][0]), item[0][1]))
    ]


def _causes(findings: Sequence[Finding]) -> str:
    return shortened(dict.fromkeys(finding.message for finding in findings), 1)


def _values(findings: Iterable[Finding]) -> Iterable[str]:
    return (finding.value for finding in findings if finding.value)


@cache
def _environment(package: str) -> jinja2.Environment:
    loaders = [jinja2.PackageLoader("pai_install.checks.report")]
    if package:
        loaders.append(jinja2.PackageLoader(package))
    environment = jinja2.Environment(
        autoescape=True,
        # A misspelt name in a template fails at once. Jinja would show nothing in its place.
        undefined=jinja2.StrictUndefined,
        loader=jinja2.ChoiceLoader(loaders),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"signs": SIGNS, "plural": plural, "shortened": shortened, "Verdict": Verdict}
    return environment


def render(template: str, *, package: str = "", **values: object) -> str:
    """A page from a template of this folder, or of the folder templates/ of `package`, which may extend page.html."""
    return _environment(package).get_template(template).render(**values)
