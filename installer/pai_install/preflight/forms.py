"""The result of a preflight in each form that the command offers. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pai_install.checks.explain import list_checks
from pai_install.checks.report.html import Link, Page, findings_page
from pai_install.checks.report.junit import junit
from pai_install.checks.report.prometheus import Target, metrics
from pai_install.checks.verdict import Verdict
from pai_install.preflight.catalogue import CATALOGUE
from pai_install.preflight.document import preflight_document
from pai_install.preflight.report import PreflightReport, last_line, text

FORMATS = ("text", "json", "html", "junit", "prometheus")

# files beside the page in the run's folder
BESIDE = (Link("this report as JSON", "preflight.json"), Link("all runs of this site", "../"))
COMMANDS = (Link("pai-install explain CHECK"), Link("pai-install apply"))


def in_form(report: PreflightReport, form: str, *, when: str, everything: bool) -> str:
    """Returns the report in one of FORMATS. when: time of the run. everything: also passed and skipped checks."""
    match form:
        case "json":
            return json.dumps(preflight_document(report).as_json(), indent=2) + "\n"
        case "html":
            return html(report, when=when)
        case "junit":
            return junit(report.findings, name="pai-install preflight")
        case "prometheus":
            return prometheus(report)
        case _:
            return text(report, everything=everything)


def html(report: PreflightReport, *, when: str, links: Sequence[Link] = ()) -> str:
    """Returns one page. when: time of the run as text. links: files beside the page."""
    verdict = Verdict.PASS if report.ok else Verdict.FAIL
    title = f"Preflight of {report.site}, {when}"
    return findings_page(
        Page(title, verdict, last_line(report), report.machines, (*links, *COMMANDS)), list(report.findings)
    )


def prometheus(report: PreflightReport) -> str:
    """The verdicts for an existing Prometheus."""
    skus = {machine.name: machine.sku for machine in report.machines}
    targets = [Target(name, found, skus.get(name, "")) for name, found in report.subjects.items()]
    return metrics("pai_preflight", targets)


def check_list(*, as_json: bool) -> str:
    """Returns all checks with their titles, for people or as JSON."""
    found = [CATALOGUE[name] for name in sorted(CATALOGUE)]
    if not as_json:
        return list_checks(found)
    checks = [{"id": check.id, "title": check.title} for check in found]
    return json.dumps({"schema_version": 1, "checks": checks}, indent=2) + "\n"
