"""The result of a preflight as HTML, JUnit XML, and Prometheus metrics. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pai_install.checks.report.html import Link, Page, findings_page
from pai_install.checks.report.prometheus import Target, metrics
from pai_install.checks.verdict import Verdict
from pai_install.preflight.report import PreflightReport, last_line

# files beside the page in the run's folder
BESIDE = (Link("this report as JSON", "preflight.json"), Link("all runs of this site", "../"))
COMMANDS = (Link("pai-install explain CHECK"), Link("pai-install apply"))


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
