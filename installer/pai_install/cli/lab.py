"""`pai-install lab`: throw-away machines for a site on the controller host."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from pai_install.cli.options import format_option, group_site_option, site_option, yes_option
from pai_install.cli.output import confirm, echo
from pai_install.errors import ExitCode
from pai_install.lab import (
    SUITES,
    Fault,
    GpuState,
    LabSpec,
    chosen,
    down_site,
    heal,
    inject,
    labs_of,
    mixins,
    reinstall,
    show,
    spec_of,
    ssh_command,
    state_dir_of,
    status,
    up,
    work,
)
from pai_install.site import load_site


@click.group(name="lab")
@group_site_option
def command() -> None:
    """Create and control throw-away machines on this host.

    Lab machines are systemd-nspawn containers with the names and addresses of the site. They share the kernel of the
    host: see docs/lab.md. Requires root.
    """


def _spec(site_dir: Path) -> LabSpec:
    return spec_of(load_site(site_dir).site)


def _inform(line: str) -> None:
    echo(line, err=True)


@command.command(name="up")
@site_option
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="[MACHINE=]SUITE",
    help=f"System of new machines: {', '.join(SUITES)}, or a tar file of a root file system. Repeatable.",
)
@click.option(
    "--with",
    "mixed_in",
    multiple=True,
    metavar="[MACHINE=]MIXIN",
    help="Mix-in that simulates earlier use of the machines (`lab mixins`). Repeatable.",
)
@yes_option
@format_option
def up_command(
    *, site_dir: Path, suites: tuple[str, ...], mixed_in: tuple[str, ...], yes: bool, output_format: str
) -> int:
    """Start the lab machines of the site. Running machines are not changed.

    Missing Debian packages on this host are installed after a confirmation.
    """
    spec = _spec(site_dir)
    choice = chosen(spec, suites, mixed_in)
    report = up(spec, choice, confirm=lambda question: yes or confirm(question), progress=_inform)
    if output_format == "json":
        document = {**status(spec).document(), "changed": list(report.changed), "duration_s": report.duration_s}
        echo(json.dumps(document, indent=2))
    elif report.changed:
        echo(f"{len(spec.machines)} machines run after {report.duration_s:.0f} s")
    else:
        echo("nothing to do: all machines run")
    return ExitCode.OK


@command.command(name="mixins")
@format_option
def mixins_command(*, output_format: str) -> int:
    """List the mix-ins of `lab up --with`."""
    if output_format == "json":
        rows = [{"name": name, "leaves": sentence} for name, sentence in mixins().items()]
        echo(json.dumps({"schema_version": 1, "mixins": rows}, indent=2))
        return ExitCode.OK
    width = max(len(name) for name in mixins())
    for name, sentence in mixins().items():
        echo(f"{name.ljust(width)}  {sentence}")
    return ExitCode.OK


@command.command(name="down")
@site_option
@yes_option
@format_option
def down_command(*, site_dir: Path, yes: bool, output_format: str) -> int:
    """Remove the lab of the site with all data on its machines.

    This also works after a crash, or if the site files have changed. Labs without a site folder are removed, too.
    """
    state_dir = state_dir_of(site_dir)
    labs = [
        record.lab if record.site == str(state_dir) else f"{record.lab} (of {record.site}, deleted)"
        for _, record in labs_of(state_dir)
    ]
    if labs and not yes:
        confirm(f"remove the lab {', '.join(labs)} and everything on its machines?", abort=True)
    removed = down_site(state_dir, progress=_inform)
    if output_format == "json":
        echo(json.dumps({"schema_version": 1, "ok": True, "removed": list(removed)}, indent=2))
    elif not removed:
        echo("nothing to remove")
    return ExitCode.OK


@command.command(name="status")
@site_option
@format_option
def status_command(*, site_dir: Path, output_format: str) -> int:
    """Show the state of the lab machines. Exit code 5 if a machine does not run."""
    found = status(_spec(site_dir))
    echo(json.dumps(found.document(), indent=2) if output_format == "json" else found.table())
    return ExitCode.OK if found.all_running else ExitCode.UNREACHABLE


@command.command(name="ssh", context_settings={"ignore_unknown_options": True})
@site_option
@click.argument("name")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def ssh_command_line(*, site_dir: Path, name: str, words: tuple[str, ...]) -> int:
    """Open a shell on machine NAME, or run a command there: lab ssh NAME -- CMD."""
    spec = _spec(site_dir)
    argv = ssh_command(spec, spec.machine(name), words)
    os.execvp(argv[0], argv)  # noqa: S606 - ssh takes this process's place, terminal and exit code included


@command.command(name="fault")
@site_option
@click.argument("name")
@click.argument("fault", type=click.Choice([*(fault.value for fault in Fault), "heal"]))
def fault_command(*, site_dir: Path, name: str, fault: str) -> int:
    """Inject a fault on machine NAME, or heal all its faults and start it."""
    spec = _spec(site_dir)
    machine = spec.machine(name)
    if fault == "heal":
        echo(f"{name} is healed: {', '.join(heal(spec, machine)) or 'nothing was wrong'}")
    else:
        echo(inject(spec, machine, Fault(fault)))
    return ExitCode.OK


@command.command(name="reinstall")
@site_option
@click.argument("name")
@yes_option
def reinstall_command(*, site_dir: Path, name: str, yes: bool) -> int:
    """Give machine NAME a new disk, host key, and machine ID. All its data is lost.

    This simulates replaced hardware with the same name. The site still has the old host key. `lab fault NAME heal`
    records the new one.
    """
    spec = _spec(site_dir)
    machine = spec.machine(name)
    if not yes:
        confirm(f"throw away everything on {name}?", abort=True)
    reinstall(spec, machine)
    echo(f"{name} is reinstalled: its host key and machine id are others now")
    return ExitCode.OK


@command.command(name="gpu")
@site_option
@click.argument("name")
@click.argument("state", type=click.Choice([state.value for state in GpuState]))
def gpu_command(*, site_dir: Path, name: str, state: str) -> int:
    """Set the state of the simulated GPUs of machine NAME.

    Machines with nvidia.com/gpu in their SKU have stand-ins for nvidia-smi and the GPU interfaces of the kernel.
    """
    spec = _spec(site_dir)
    echo(show(spec, spec.machine(name), GpuState(state)))
    return ExitCode.OK


@command.command(name="busy")
@site_option
@click.argument("name")
@click.argument("percent", nargs=-1, required=True, type=click.IntRange(0, 100))
def busy_command(*, site_dir: Path, name: str, percent: tuple[int, ...]) -> int:
    """Simulate GPU load on NAME: one PERCENT per GPU.

    The last value applies to all further GPUs. Nothing computes.
    """
    spec = _spec(site_dir)
    echo(work(spec, spec.machine(name), percent))
    return ExitCode.OK
