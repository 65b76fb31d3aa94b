"""`pai-install health`: unhealthy machines and GPUs, the reason, and the remedy."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import click
from click.core import ParameterSource

from pai_install.app.context import App
from pai_install.app.health import (
    AcknowledgeFinding,
    acknowledge,
    baselines,
    check_health,
    cordon_unhealthy,
    health_history,
    watch_health,
)
from pai_install.cli.command import reading
from pai_install.cli.explain import show_explanation
from pai_install.cli.options import accept_new_option, formats_option
from pai_install.cli.output import echo, write_report
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode, PaiError
from pai_install.health.checkup import HealthRequest
from pai_install.health.document import AcknowledgementsReport, HistoryReport, acknowledgement_entries
from pai_install.health.forms import FORMATS, in_form
from pai_install.health.texts import acknowledgements_text, baselines_text, cordoning_lines, history_text
from pai_install.system.words import minute_text

_SHARE = "Maximum share of cordoned nodes. Above 0, at least one node."
# options of the group for its own report only
_OF_THE_REPORT = ("output_format", "out", "raw", "everything", "act", "max_cordoned")


@click.group(invoke_without_command=True)
@reading(
    HealthRequest,
    accept_new_option,
    formats=formats_option(*FORMATS),
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file.")
@click.option("--all", "everything", is_flag=True, help="With json: also every PASS and SKIP.")
@click.option("--strict", is_flag=True, help="Exit with 7 also for WARN and UNKNOWN.")
@click.option("--act", type=click.Choice(["cordon"]), help="Cordon nodes that FAIL. Uncordon recovered nodes.")
@click.option("--max-cordoned", default=0.2, show_default=True, type=click.FloatRange(0, 1), help=_SHARE)
def command(
    *,
    app: App,
    terminal: Terminal,
    request: HealthRequest,
    everything: bool,
    strict: bool,
    out: Path | None,
    act: str | None,
    max_cordoned: float,
) -> int:
    """Show unhealthy machines and GPUs, the reason, and the remedy.

    Reads the machines and changes nothing on them. Exit code 7 when anything FAILs.
    """
    context = click.get_current_context()
    # click runs the group also before a subcommand.
    if context.invoked_subcommand is not None:
        return ExitCode.OK
    if act and request.source is not None:
        raise PaiError(
            "cannot act on saved evidence",
            code="act-needs-live-evidence",
            remedy="remove --from or --act",
            exit_code=ExitCode.USAGE,
        )
    form = context.params["output_format"]
    report = check_health(app, request)
    when = minute_text(datetime.now(UTC))
    content = in_form(report, form, when=when, everything=everything, strict=strict, raw=request.raw, out=out)
    if form != "json":
        write_report(content, out)
    if act == "cordon":
        for line in cordoning_lines(cordon_unhealthy(app, report, max_cordoned), max_cordoned):
            terminal.inform(line)
    if form == "json":  # last: where cordoning fails, the one document on stdout is the error
        write_report(content, out)
    return report.exit_code(strict=strict)


def _refuse(*names: str) -> None:
    """Raises PaiError for an option of the group that the subcommand would ignore."""
    context = click.get_current_context()
    assert context.parent is not None  # noqa: S101 - a subcommand has one
    given = [name for name in names if context.parent.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    words = {"output_format": "--format", "everything": "--all"}
    if given:
        options = ", ".join(words.get(name, f"--{name.replace('_', '-')}") for name in given)
        raise PaiError(
            f"cannot run health {context.info_name} with {options}",
            code="health-options-unknown",
            exit_code=ExitCode.USAGE,
            remedy="remove these options",
        )


def _as_json(terminal: Terminal) -> bool:
    """Whether --format json stands before or after the subcommand."""
    parent = click.get_current_context().parent
    return terminal.as_json or (parent is not None and parent.params["output_format"] == "json")


def _show(terminal: Terminal, report: HistoryReport | AcknowledgementsReport, text: str) -> int:
    echo(json.dumps(report.as_json()) + "\n" if _as_json(terminal) else text, nl=False)
    return ExitCode.OK


@command.command()
@reading(HealthRequest)
@click.option("--every", default=60, show_default=True, type=click.IntRange(5), help="Seconds between runs.")
@click.option("--runs", default=0, type=click.IntRange(0), help="Stop after this number of runs (0: never).")
def watch(*, app: App, request: HealthRequest, every: int, runs: int) -> int:
    """Repeat the check, and show only changes."""
    _refuse(*_OF_THE_REPORT)
    parent = click.get_current_context().parent
    strict, code = parent is not None and parent.params["strict"], 0
    for report, lines in watch_health(app, request, every_s=every, runs=runs):
        for line in lines:
            echo(f"{datetime.now(UTC):%H:%M:%S} {line}")
        code = report.exit_code(strict=strict)
    return code


@command.command()
@reading()
@click.argument("check", required=False)
def explain(*, app: App, terminal: Terminal, check: str | None) -> int:
    """Explain CHECK: its inputs, rule, numbers, and remedy. Without CHECK, list all checks.

    CHECK may also be an Xid (79 or xid-79), or an SXid of an NVSwitch (sxid-12020).
    """
    return show_explanation(check, app.site_dir, as_json=_as_json(terminal), health_only=True)


@command.command()
@reading()
@click.argument("machine")
def history(*, app: App, terminal: Terminal, machine: str) -> int:
    """Show earlier results of MACHINE."""
    found = health_history(app, machine)
    return _show(terminal, HistoryReport(machine=machine, runs=tuple(found)), history_text(found))


@command.command()
@reading(HealthRequest)
@click.option("--accept", is_flag=True, help="Accept the current state as the baseline.")
def baseline(*, app: App, terminal: Terminal, request: HealthRequest, accept: bool) -> int:
    """Show the accepted link widths, speeds, memory, and NVLinks of each GPU, or accept the current ones."""
    _refuse(*_OF_THE_REPORT)
    accepted = baselines(app, request, accept=accept)
    echo(baselines_text(accepted.baselines), nl=False)
    for machine, why in sorted(accepted.missed.items()):
        terminal.inform(f"not accepted {machine}: {why}")
    return ExitCode.UNREACHABLE if accepted.missed else ExitCode.OK


@command.command("acknowledge")
@reading(AcknowledgeFinding)
def acknowledge_finding(*, app: App, terminal: Terminal, request: AcknowledgeFinding) -> int:
    """Acknowledge a known fault: CHECK on MACHINE, with a reason and an end. Without arguments, list them.

    An acknowledged verdict is shown with its reason. Until its end, it neither cordons nor fails the exit code. Another
    fault of the same check is another verdict.
    """
    _refuse("out", "raw", "everything", "act", "max_cordoned")
    rows = sorted(acknowledge(app, request), key=lambda item: item.key)
    report = AcknowledgementsReport(acknowledged=acknowledgement_entries(rows))
    return _show(terminal, report, acknowledgements_text(rows))


@command.command("alert-rules")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the file there.")
def alert_rules(*, out: Path | None) -> int:
    """Print alert rules for a Prometheus that reads the metrics of --format prometheus."""
    write_report(resources.files("pai_install.health").joinpath("alert-rules.yml").read_text(), out)
    return ExitCode.OK
