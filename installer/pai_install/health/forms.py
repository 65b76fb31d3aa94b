"""The report in each form that the command offers. Pure."""

from __future__ import annotations

import json
from pathlib import Path

from pai_install.checks.report.junit import junit
from pai_install.health.document import health_document
from pai_install.health.html import html, raw_links
from pai_install.health.report import HealthReport, metrics, text

FORMATS = ("table", "json", "html", "junit", "prometheus")


def in_form(
    report: HealthReport, form: str, *, when: str, everything: bool, strict: bool, raw: Path | None, out: Path | None
) -> str:
    """Returns the report in one of FORMATS. when: time of the run. raw: folder of evidence. out: file of the page."""
    match form:
        case "json":
            return json.dumps(health_document(report, everything=everything, strict=strict).as_json(), indent=1) + "\n"
        case "html":
            title = f"Health of {report.site or 'the machines'}, {when}"
            return html(report, title=title, raw=raw_links(raw, out))
        case "junit":
            return junit(report.findings, name="pai-install health")
        case "prometheus":
            return metrics(report)
        case _:
            return text(report)
