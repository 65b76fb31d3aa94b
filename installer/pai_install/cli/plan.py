"""`pai-install plan`: preview the changes of apply, with reasons."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.app.runs import plan_site
from pai_install.cli.command import known_checks, reading
from pai_install.cli.options import accept_new_option, force_check_option
from pai_install.cli.terminal import Terminal
from pai_install.operations.install import Install
from pai_install.report.diffs import changes_summary, changes_text
from pai_install.report.plan import plan_document
from pai_install.report.planned import plan_summary, plan_text


@click.command
@reading(Install, force_check_option, accept_new_option, enduring=True)
@click.option("--diff/--no-diff", default=None, help="Print changed lines, or do not look for changed files (faster).")
def command(*, app: App, terminal: Terminal, request: Install, forced: tuple[str, ...], diff: bool | None) -> int:
    """Show the changes that apply would make, and why.

    By default, the plan has one line per changed file. --diff adds the content, except for programs of pai-install.

    Exit code 0, also with changes. 4: preflight rejects a new machine. 5: a machine is unreachable. 6: a machine cannot
    be observed. Pass the JSON form to `apply --plan`.
    """
    report = plan_site(app, request, diff=diff is not False, forced_checks=known_checks(forced))
    files = changes_text(report.changes or ()) if diff else changes_summary(report.changes or ())
    parts = (plan_text(report.plan), files, plan_summary(report.plan, report.changes))
    document = plan_document(report.plan, report.changes, report.refused)
    terminal.show(document, "\n".join(part for part in parts if part))
    return report.exit_code
