"""`pai-install preflight`: find what would make an installation fail; changes nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from pai_install.checks.explain import list_checks
from pai_install.checks.report.junit import junit
from pai_install.checks.runner import require_known
from pai_install.cli.command import environment_of
from pai_install.cli.options import accept_new_option, force_check_option, limit_option, site_option
from pai_install.errors import ExitCode
from pai_install.preflight import forms
from pai_install.preflight.catalogue import CATALOGUE
from pai_install.preflight.report import PreflightReport, text
from pai_install.run.state import open_state
from pai_install.site.load import load_site
from pai_install.system.files import write_atomic

FORMATS = ("text", "json", "html", "junit", "prometheus")


@click.command
@site_option
@limit_option
@force_check_option
@click.option("--all", "everything", is_flag=True, help="Also show passed and skipped checks.")
@click.option("--list-checks", is_flag=True, help="Only list the checks and their requirements.")
@accept_new_option
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Format of the report."
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file.")
def command(
    *,
    site_dir: Path,
    limit: tuple[str, ...],
    forced: tuple[str, ...],
    everything: bool,
    list_checks: bool,
    accept_new: bool,
    form: str,
    out: Path | None,
) -> int:
    """Find out what would make an installation fail; changes nothing.

    Exit code 0 when no check fails, 4 otherwise. The report is kept below SITE/.pai/runs.
    """
    if list_checks:
        _list_checks(as_json=form == "json")
        return ExitCode.OK
    require_known(forced, CATALOGUE)
    report = _run(site_dir, limit, forced, accept_new=accept_new)
    content = text(report, everything=everything) if form == "text" else _render(report, form)
    if out is not None:
        write_atomic(out, content)
    else:
        click.echo(content, nl=False)
    return report.exit_code


def _render(report: PreflightReport, form: str) -> str:
    if form == "json":
        return json.dumps(report.as_json(), indent=2) + "\n"
    if form == "html":
        return forms.html(report, when=_now())
    if form == "junit":
        return junit(report.findings, name="pai-install preflight")
    return forms.prometheus(report)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _list_checks(*, as_json: bool) -> None:
    found = [CATALOGUE[name] for name in sorted(CATALOGUE)]
    if as_json:
        checks = [{"id": check.id, "title": check.title} for check in found]
        click.echo(json.dumps({"schema_version": 1, "checks": checks}, indent=2))
    else:
        click.echo(list_checks(found), nl=False)


def _run(site_dir: Path, limit: tuple[str, ...], forced: tuple[str, ...], *, accept_new: bool) -> PreflightReport:
    from pai_install.preflight.run import run  # noqa: PLC0415
    from pai_install.preflight.source import source_finding  # noqa: PLC0415

    site = load_site(site_dir).site
    state = open_state(site_dir)
    folder = state.new_run(datetime.now(UTC))
    environment = environment_of(click.get_current_context())
    with environment.engine(state, folder, accept_new=accept_new) as engine:
        report = run(engine, site, hosts=limit, forced=forced, more=(source_finding(site),))
    write_atomic(folder.path / "preflight.json", _render(report, "json"), mode=0o600)
    write_atomic(folder.path / "preflight.html", forms.html(report, when=_now(), links=forms.BESIDE), mode=0o600)
    return report
