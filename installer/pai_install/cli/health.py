"""`pai-install health`: which machine or GPU is unhealthy, why, and what to do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pai_install.cli._shared import acknowledged
from pai_install.cli.options import accept_new_option, format_option, limit_option, site_option
from pai_install.errors import ExitCode, PaiError
from pai_install.health.checkup import Accepted, Checkup, CheckupRequest
from pai_install.health.report import HealthReport, metrics, text
from pai_install.run.state import StateFolder, open_state, state_of
from pai_install.system.files import write_atomic

_SHARE = "Share of nodes that may be cordoned; above 0 at least one."
FORMATS = ("table", "json", "html", "junit", "prometheus")


from_option = click.option(
    "--from", "source", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Judge saved evidence again."
)


@dataclass(frozen=True, slots=True)
class Output:
    """How and where to report."""

    form: str
    everything: bool
    strict: bool
    path: Path | None
    raw: Path | None


@click.group(invoke_without_command=True)
@site_option
@limit_option
@accept_new_option
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="Format of the report."
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file.")
@click.option("--all", "everything", is_flag=True, help="With json: also every PASS and SKIP.")
@click.option("--strict", is_flag=True, help="Exit with 7 also for WARN and UNKNOWN.")
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Save the evidence to this file (.gz: compressed)."
)
@click.option(
    "--raw", type=click.Path(file_okay=False, path_type=Path), help="Write the evidence as text there; HTML links it."
)
@from_option
@click.option("--redact", is_flag=True, help="Replace serial numbers and UUIDs before they leave the machine.")
@click.option("--deep-image", default="", metavar="IMAGE", help="Also run this image in Docker, containerd, a pod.")
@click.option("--bandwidth-image", default="", metavar="IMAGE", help="Also run all_reduce_perf of this image in jobs.")
@click.option("--act", type=click.Choice(["cordon"]), help="Cordon machines that FAIL; release recovered ones.")
@click.option("--max-cordoned", default=0.2, show_default=True, type=click.FloatRange(0, 1), help=_SHARE)
@click.pass_context
def command(context: click.Context, /, **options: Any) -> int:  # noqa: ANN401 - click's values, one by one below
    """Show which machine or GPU is unhealthy, why, and what to do.

    Reads the machines and changes nothing on them. Exit code 7 when anything FAILs.
    """
    context.obj = options
    if context.invoked_subcommand is not None:
        return ExitCode.OK
    if options["act"] and options["source"] is not None:
        raise PaiError(
            "--act needs live evidence, not saved evidence",
            code="act-needs-live-evidence",
            remedy="leave --from or --act out",
            exit_code=ExitCode.USAGE,
        )
    output = Output(options["form"], options["everything"], options["strict"], options["out"], options["raw"])
    checkup = _checkup(options)
    report = checkup.run(_request(options))
    if output.form != "json":
        _show(report, output)
    if options["act"] == "cordon":
        _cordon(options, report)
    if output.form == "json":  # last: where cordoning fails, the one document on stdout is the error
        _show(report, output)
    return report.exit_code(strict=output.strict)


def _request(options: dict[str, Any]) -> CheckupRequest:
    return CheckupRequest(
        options["limit"],
        options["source"],
        options["save"],
        options["deep_image"],
        options["bandwidth_image"],
        options["redact"],
        options["raw"],
    )


def _checkup(options: dict[str, Any]) -> Checkup:
    site_dir: Path = options["site_dir"]
    if options["source"] is not None and not (site_dir / "layout.yaml").exists():
        return Checkup()
    from pai_install.site.load import load_site  # noqa: PLC0415 - slow, and not needed for --from alone

    site = load_site(site_dir).site
    state = open_state(site_dir)
    from pai_install.cluster.over_ssh import open_cluster  # noqa: PLC0415 - not needed for --from alone

    accept_new = options["accept_new"]
    cluster = partial(open_cluster, site, state.known_hosts, accept_new=accept_new)
    return Checkup(site, state.health, _engine(state, accept_new=accept_new), cluster)


def _engine(state: StateFolder, *, accept_new: bool) -> Any:  # noqa: ANN401 - a factory of the engine room's type
    def make() -> Any:  # noqa: ANN401
        from pai_install.cli.command import environment_of  # noqa: PLC0415 - not needed for --from alone

        environment = environment_of(click.get_current_context())
        return environment.engine(state, state.new_run(datetime.now(UTC)), accept_new=accept_new)

    return make


def _show(report: HealthReport, output: Output) -> None:
    content = _render(report, output)
    if output.path is not None:
        write_atomic(output.path, content)
    else:
        click.echo(content, nl=False)


def _render(report: HealthReport, output: Output) -> str:
    if output.form == "json":
        return json.dumps(report.as_json(everything=output.everything, strict=output.strict), indent=1) + "\n"
    if output.form == "html":
        from pai_install.health.html import html, raw_links  # noqa: PLC0415

        title = f"Health of {report.site or 'the machines'}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        return html(report, title=title, raw=raw_links(output.raw, output.path))
    if output.form == "junit":
        from pai_install.checks.report.junit import junit  # noqa: PLC0415

        return junit(report.findings, name="pai-install health")
    if output.form == "prometheus":
        return metrics(report)
    return text(report)


def _cordon(options: dict[str, Any], report: HealthReport) -> None:
    """Cordons unhealthy machines and releases recovered ones, with the lock, journal and report of a run.

    Raises PaiError where another run holds the site, or a node could not be told.
    """
    from pai_install.app.context import App  # noqa: PLC0415
    from pai_install.cli.command import environment_of  # noqa: PLC0415 - not needed for looking only
    from pai_install.cli.terminal import Terminal  # noqa: PLC0415
    from pai_install.operations.health_cordon import HealthCordon  # noqa: PLC0415
    from pai_install.run.pipeline import perform, prepare  # noqa: PLC0415

    share = options["max_cordoned"]
    operation = HealthCordon(max_cordoned=share, report=report)
    environment = environment_of(click.get_current_context())
    accept_new = options["accept_new"]
    with (
        Terminal(yes=True, as_json=True) as terminal,
        App(options["site_dir"], environment, terminal, accept_new_host_keys=accept_new) as app,
        app.session(operation) as session,
    ):
        prepared = prepare(session)
        outcome = perform(session, prepared) if not prepared.plan.empty else None
    plan = operation.decision(prepared.observation)
    if outcome is not None and not outcome.ok:
        failure = next(iter(outcome.failures), None)
        if failure is None:
            raise KeyboardInterrupt
        raise PaiError(
            f"{failure.host}: {failure.message}", code="cordon-failed", details=failure.evidence, remedy=failure.remedy
        )
    for name, check in plan.cordon.items():
        click.echo(f"cordoned {name}: {check}", err=True)
    for name in plan.release:
        click.echo(f"released {name}: the machine has recovered", err=True)
    for name, why in plan.kept.items():
        click.echo(f"still cordoned {name}: {why}", err=True)
    for name in plan.refused:
        click.echo(f"not cordoned {name}: more than {share:.0%} of the nodes would be cordoned", err=True)


def _own(context: click.Context, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - click's values
    """The group's options, with those that were given after the subcommand."""
    source = context.get_parameter_source
    given = {name: value for name, value in values.items() if source(name) is ParameterSource.COMMANDLINE}
    return {**context.obj, **given}


def _refuse(context: click.Context, *names: str) -> None:
    """Raises PaiError for an option of the group that the subcommand would ignore."""
    assert context.parent is not None  # noqa: S101 - a subcommand has one
    given = [name for name in names if context.parent.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    words = {"form": "--format", "everything": "--all"}
    if given:
        options = ", ".join(words.get(name, f"--{name.replace('_', '-')}") for name in given)
        raise PaiError(
            f"health {context.info_name} takes no {options}", code="health-options-unknown", exit_code=ExitCode.USAGE
        )


@command.command()
@site_option
@limit_option
@from_option
@click.option("--every", default=60, show_default=True, type=click.IntRange(5), help="Seconds between runs.")
@click.option("--runs", default=0, type=click.IntRange(0), help="Stop after this many runs (0: never).")
@click.pass_context
def watch(context: click.Context, /, *, every: int, runs: int, **own: Any) -> int:  # noqa: ANN401 - click's values
    """Repeat, and show only what changes."""
    _refuse(context, "form", "out", "raw", "everything", "act", "max_cordoned")
    options = _own(context, **own)
    from pai_install.health.watch import changes, open_findings  # noqa: PLC0415

    checkup, request = _checkup(options), _request(options)
    before: dict[Any, Any] = {}
    number = 0
    while True:
        number += 1
        report = checkup.run(request)
        after = open_findings(report)
        for line in changes(before, after):
            click.echo(f"{datetime.now(UTC):%H:%M:%S} {line}")
        before = after
        if number == runs:
            return report.exit_code(strict=options["strict"])
        time.sleep(every)


@command.command()
@site_option
@click.argument("check", required=False)
@format_option
@click.pass_context
def explain(context: click.Context, /, *, check: str | None, output_format: str, **own: Any) -> int:  # noqa: ANN401
    """Say what CHECK reads, its rule and numbers, and what to do; without it list all checks.

    CHECK may also be an Xid, 79 or xid-79, or an SXid of an NVSwitch: sxid-12020.
    """
    from pai_install.cli._shared.explained import told  # noqa: PLC0415 - the rules load only when needed

    as_json = "json" in (output_format, context.obj["form"])
    click.echo(told(check, _own(context, **own)["site_dir"], as_json=as_json, health_only=True), nl=False)
    return ExitCode.OK


@command.command()
@site_option
@click.argument("machine")
@click.pass_context
def history(context: click.Context, /, *, machine: str, **own: Any) -> int:  # noqa: ANN401 - click's values
    """Show what earlier runs found on MACHINE."""
    options = _own(context, **own)
    from pai_install.health.memory.store import HealthStore  # noqa: PLC0415

    found = HealthStore(state_of(options["site_dir"]).health).history(machine)
    if not found:
        raise PaiError(f"no health run of {machine} yet", code="health-history-missing", exit_code=ExitCode.USAGE)
    if options["form"] == "json":
        click.echo(json.dumps({"schema_version": 1, "machine": machine, "runs": [item.as_json() for item in found]}))
        return ExitCode.OK
    for snapshot in found:
        when = f"{datetime.fromtimestamp(snapshot.time, UTC):%Y-%m-%d %H:%M:%S}"
        click.echo(
            f"{when}  boot {snapshot.boot_id[:8]}  {_words('FAIL', snapshot.failed)} {_words('WARN', snapshot.warned)}"
        )
        for incident in snapshot.incidents:
            boot = f" boot {incident.boot_id[:8]}" if incident.boot_id != snapshot.boot_id else ""
            at = datetime.fromtimestamp(incident.time, UTC)
            click.echo(f"    Xid {incident.xid} {incident.uuid} {at:%Y-%m-%d %H:%M:%S}{boot}")
    return ExitCode.OK


def _words(verdict: str, checks: Iterable[str]) -> str:
    names = ", ".join(checks)
    return f"{verdict} {names}" if names else f"no {verdict}"


@command.command()
@site_option
@limit_option
@from_option
@click.option("--accept", is_flag=True, help="Accept the current state as the baseline.")
@click.pass_context
def baseline(context: click.Context, /, *, accept: bool, **own: Any) -> int:  # noqa: ANN401 - click's values
    """Show the accepted link widths, speeds, memory and NVLinks of each GPU, or accept the present ones."""
    _refuse(context, "form", "out", "raw", "everything", "act", "max_cordoned")
    options = _own(context, **own)
    checkup = _checkup(options)
    accepted = checkup.accept(_request(options)) if accept else Accepted(checkup.baselines(), {})
    for machine, item in sorted(accepted.baselines.items()):
        for bus_id, gpu in item.gpus.items():
            width = f"x{gpu.pcie_width:.0f}" if gpu.pcie_width is not None else "?"
            gen = f"gen {gpu.pcie_gen:.0f}" if gpu.pcie_gen is not None else "gen not judged"
            click.echo(f"{machine} {bus_id}: PCIe {width} {gen}, {gpu.memory_mib or 0:.0f} MiB, NVLinks {gpu.nvlinks}")
    for machine, why in sorted(accepted.missed.items()):
        click.echo(f"not accepted {machine}: {why}", err=True)
    return ExitCode.UNREACHABLE if accepted.missed else ExitCode.OK


@command.command()
@site_option
@click.argument("machine", required=False)
@click.argument("check", required=False)
@click.option("--why", default="", help="The reason, for everybody who reads the report.")
@click.option("--until", default="", metavar="DAY", help="When it ends: 2026-12-01 (00:00 UTC), or 12h, 7d, 2w.")
@click.option("--device", default="", help="One bus id, port or disk; without it all that the last run named.")
@click.option("--who", default="", help="Who says so; without it the one who is logged in.")
@click.option("--take-back", is_flag=True, help="End it now.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Format of the list.")
@click.pass_context
def acknowledge(
    context: click.Context,
    /,
    *,
    machine: str | None,
    check: str | None,
    **own: Any,  # noqa: ANN401 - click's values
) -> int:
    """Say that CHECK on MACHINE is known, why, and until when; without arguments list what is.

    An acknowledged verdict is shown with its reason; it neither cordons nor fails the exit code until its end. Another
    fault of the same check is another verdict.
    """
    _refuse(context, "out", "raw", "everything", "act", "max_cordoned")
    checkup = _checkup(_own(context, **own))
    if machine is None:
        kept = checkup.acknowledged()
    elif check is None:
        raise click.UsageError("give a check, too: acknowledge MACHINE CHECK")
    elif own["take_back"]:
        kept = checkup.take_back(machine, check, own["device"])
    else:
        kept = checkup.acknowledge(machine, acknowledged.known_check(check), acknowledged.judgement(own))
    acknowledged.show(kept, as_json="json" in (own["form"], context.obj["form"]))
    return ExitCode.OK


@command.command("alert-rules")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the file there.")
def alert_rules(*, out: Path | None) -> int:
    """Give the alert rules for an existing Prometheus that reads the metrics of --format prometheus."""
    from importlib import resources  # noqa: PLC0415

    rules = resources.files("pai_install.health").joinpath("alert-rules.yml").read_text()
    if out is not None:
        write_atomic(out, rules)
    else:
        click.echo(rules, nl=False)
    return ExitCode.OK
