"""`pai-install support-bundle`: one file for who helps to find a fault."""

from __future__ import annotations

import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from pai_install import __version__
from pai_install.app.context import App
from pai_install.app.runs import status_of
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import say
from pai_install.cli.options import site_option
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode, PaiError
from pai_install.parts.registry import system_namespaces
from pai_install.report.standing import status_data
from pai_install.run.environment import Environment
from pai_install.run.signals import ending_like_ctrl_c
from pai_install.run.state import open_state
from pai_install.run.support.bundle import from_dev_box, known_secrets, write_bundle
from pai_install.run.support.gather import Collected, from_cluster, from_machines
from pai_install.run.support.masks import Masks
from pai_install.site.load import load_site

_MB = 1_000_000


@click.command
@site_option
@click.option("--offline", is_flag=True, help="Only what the dev box knows; ask no machine.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="The file.  [default: named after the time]"
)
@click.option(
    "--max-size", type=click.IntRange(1), default=100, show_default=True, help="Megabytes, before it is compressed."
)
@click.option(
    "--timeout", type=click.IntRange(1), default=180, show_default=True, help="Seconds in which machines may answer."
)
@pass_environment
def command(
    *, site_dir: Path, offline: bool, out: Path | None, max_size: int, timeout: int, environment: Environment
) -> int:
    """Write logs, versions, findings and the reports of runs into one file; changes nothing.

    Secrets that the dev box knows are masked, and what looks like one; still read it before you give it away. Machines
    that do not answer are named in it and stop nothing. Exit code 0 also then: the bundle is what there is.
    """
    now = datetime.now(UTC)
    path = out or Path(f"pai-install-support-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    state, found = open_state(site_dir), Collected()
    found.files["versions.txt"] = f"pai-install {__version__}\npython {sys.version}\n{platform.platform()}\n"
    with ending_like_ctrl_c():
        from_dev_box(site_dir, state, found)
        try:
            site = load_site(site_dir).site
        except PaiError as error:
            found.missing["site"] = f"{error.message}\n{error.details}"
        else:
            _standing(site_dir, environment, found, offline=offline)
            if not offline:
                say("asking the machines")
                run = state.new_run(now)
                with environment.engine(state, run, accept_new=False) as engine:
                    from_machines(engine, site, timeout, found)
                with environment.cluster(site, state, accept_new=False) as cluster:
                    from_cluster(cluster, system_namespaces(), found)
    dropped = write_bundle(path, found, Masks(known_secrets(site_dir, state)), max_size * _MB)
    _tell(path, found, dropped)
    return ExitCode.OK


def _standing(site_dir: Path, environment: Environment, found: Collected, *, offline: bool) -> None:
    try:
        with Terminal(yes=True) as terminal, App(site_dir, environment, terminal) as app:
            known = status_data(status_of(app, offline=offline))
    except PaiError as error:
        found.missing["status"] = error.message
        return
    found.files["status.json"] = json.dumps(known, indent=2) + "\n"


def _tell(path: Path, found: Collected, dropped: tuple[str, ...]) -> None:
    for name, why in found.missing.items():
        say(f"without {name}: {why}")
    if dropped:
        say(f"left out, because the bundle would be too large: {', '.join(dropped)}")
    click.echo(f"{path}: {len(found.files) - len(dropped)} files, {path.stat().st_size / _MB:.1f} MB")
