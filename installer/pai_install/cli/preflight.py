"""`pai-install preflight`: find reasons why an installation would fail."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from pai_install.app.context import App
from pai_install.app.preflight import RunPreflight, run_preflight
from pai_install.checks.explain import list_checks
from pai_install.checks.report.junit import junit
from pai_install.cli.command import reading
from pai_install.cli.options import accept_new_option, formats_option
from pai_install.cli.output import echo
from pai_install.errors import ExitCode
from pai_install.preflight import forms
from pai_install.preflight.catalogue import CATALOGUE
from pai_install.preflight.document import preflight_document
from pai_install.preflight.report import PreflightReport, text
from pai_install.system.files import write_atomic

FORMATS = ("text", "json", "html", "junit", "prometheus")


@click.command
@reading(RunPreflight, accept_new_option, formats=formats_option(*FORMATS))
@click.option("--all", "everything", is_flag=True, help="Also show passed and skipped checks.")
@click.option("--list-checks", is_flag=True, help="Only list the checks and their requirements.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file.")
def command(*, app: App, request: RunPreflight, everything: bool, list_checks: bool, out: Path | None) -> int:
    """Run preflight checks on the machines. Changes nothing.

    Exit code 0 when no check fails, 4 otherwise. The report is kept below SITE/.pai/runs.
    """
    form = click.get_current_context().params["output_format"]
    if list_checks:
        _list_checks(as_json=form == "json")
        return ExitCode.OK
    report = run_preflight(app, request)
    content = _render(report, form, everything=everything)
    if out is not None:
        write_atomic(out, content)
    else:
        echo(content, nl=False)
    return report.exit_code


def _render(report: PreflightReport, form: str, *, everything: bool) -> str:
    match form:
        case "json":
            return json.dumps(preflight_document(report).as_json(), indent=2) + "\n"
        case "html":
            return forms.html(report, when=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
        case "junit":
            return junit(report.findings, name="pai-install preflight")
        case "prometheus":
            return forms.prometheus(report)
        case _:
            return text(report, everything=everything)


def _list_checks(*, as_json: bool) -> None:
    found = [CATALOGUE[name] for name in sorted(CATALOGUE)]
    if as_json:
        checks = [{"id": check.id, "title": check.title} for check in found]
        echo(json.dumps({"schema_version": 1, "checks": checks}, indent=2))
    else:
        echo(list_checks(found), nl=False)
