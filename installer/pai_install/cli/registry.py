"""`pai-install registry`: the cache of the cluster, and the registries that machines ask."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.app.context import App
from pai_install.cli._shared.act import How, acting_options
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.look import checked, look
from pai_install.cli._shared.rotation import rotate, subject_options
from pai_install.cli._shared.upstream import rotate_upstream
from pai_install.cli.command import reading
from pai_install.cli.options import format_option, group_site_option, limit_option, site_option
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.install import Install
from pai_install.operations.registry_look import RegistryGc, RegistryStatus, RegistryTest, RegistryWarm
from pai_install.registry.rotation import Subject
from pai_install.report.registries import registries_data, registries_shown, registries_text
from pai_install.run.environment import Environment


@click.group
@group_site_option
def command() -> None:
    """The registry cache of the cluster, and the registries that machines ask."""


@command.command()
@reading()
def show(*, app: App, terminal: Terminal) -> int:
    """Show the registries that each machine uses, and differences from the site. Changes nothing.

    Exit code 5 when a machine is unreachable.
    """
    session, prepared = app.inspect(Install(), "registry show")
    shown = registries_shown(session.site, prepared.plan, session.state.registry)
    terminal.show(registries_data(shown), registries_text(shown))
    return prepared.exit_code


@command.command()
@site_option
@click.option("--image", "images", multiple=True, metavar="IMAGE", help="An image for every machine to pull.")
@limit_option
@format_option
@pass_environment
def test(
    *, site_dir: Path, images: tuple[str, ...], limit: tuple[str, ...], output_format: str, environment: Environment
) -> int:
    """Ask the registries from every machine, as its containerd does; with --image, pull it and remove it again.

    Exit code 7 if one cannot be used, 5 when a machine does not answer.
    """
    return look(site_dir, checked(RegistryTest, images=images, limit=limit), environment, output_format)


@command.command()
@site_option
@format_option
@pass_environment
def status(*, site_dir: Path, output_format: str, environment: Environment) -> int:
    """Show how the cache is used since it started, what it keeps, its limit, and when it dropped what was unused."""
    return look(site_dir, RegistryStatus(), environment, output_format)


@command.command()
@site_option
@click.argument("images", nargs=-1, required=True, metavar="IMAGE...")
@format_option
@pass_environment
def warm(*, site_dir: Path, images: tuple[str, ...], output_format: str, environment: Environment) -> int:
    """Bring IMAGEs into the cache before a class of jobs starts: they are read through it once."""
    return look(site_dir, checked(RegistryWarm, images=images), environment, output_format)


@command.command()
@site_option
@click.option("--check", is_flag=True, help="Only say what would be dropped.")
@format_option
@pass_environment
def gc(*, site_dir: Path, check: bool, output_format: str, environment: Environment) -> int:
    """Drop from the cache what is unused for keep-days or over its limit, the least recently used first.

    The first control plane does so every ten minutes by itself; this does it now. What is dropped is fetched again
    when a machine asks for it. Exit code 7 if it cannot be done.
    """
    return look(site_dir, RegistryGc(only_count=check), environment, output_format)


@command.command(name="rotate")
@site_option
@subject_options
@click.option("--finish", is_flag=True, help="Only go on with a rotation that waits for machines.")
@click.option("--image", "images", multiple=True, metavar="IMAGE", help="An image to pull as a proof.")
@acting_options
@pass_environment
def rotate_command(
    *,
    site_dir: Path,
    subject: Subject | None,
    upstream: str,
    finish: bool,
    images: tuple[str, ...],
    how: How,
    environment: Environment,
) -> int:
    """Replace the cache's login, authority, port, upstream or the place of its content; no container restarts.

    The new is good beside the old until every machine has it; a machine that does not answer keeps the old good, is
    named, and `--finish` goes on when it answers again. Where the registries cannot be used with the new, it is taken
    back. An interrupted rotation goes on where it was when the command is run again.

    --endpoint, --backend and --upstream carry out what was changed in the site's files. An upstream is asked before
    anything changes; another address or authority of it restarts the cache's own pod.
    """
    checked(RegistryTest, images=images)
    if subject is None:
        if finish:
            raise PaiError(
                "--finish: an upstream waits for no machine", code="registry-upstream-finish", exit_code=ExitCode.USAGE
            )
        return rotate_upstream(site_dir, upstream, images, environment, how)
    return rotate(site_dir, subject, images, environment, how, finish=finish)
