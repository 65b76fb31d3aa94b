"""`pai-install registry`: the cache of the cluster, and the registries that machines use."""

from __future__ import annotations

import click

from pai_install.app.context import App, RunOptions
from pai_install.app.rotations.registry import RotateRegistry, rotate_registry
from pai_install.cli.command import acting, checking, reading
from pai_install.cli.options import group_site_option
from pai_install.cli.terminal import Terminal
from pai_install.operations.install import Install
from pai_install.operations.registry_inspect import RegistryGc, RegistryStatus, RegistryTest, RegistryWarm
from pai_install.report.registries import registries_report, registries_text


@click.group
@group_site_option
def command() -> None:
    """Manage registry mirrors and the registry cache."""


@command.command()
@reading()
def show(*, app: App, terminal: Terminal) -> int:
    """Show the registries that each machine uses, and differences from the site. Changes nothing.

    Exit code 5 when a machine is unreachable.
    """
    session, prepared = app.inspect(Install(), "registry show")
    report = registries_report(session.site, prepared.plan, session.state.registry)
    terminal.show(report, registries_text(report))
    return prepared.exit_code


@command.command()
@checking(RegistryTest, passed=True)
def test(*, app: App, request: RegistryTest) -> int:
    """Test the registries from every machine, with its containerd. With --image, pull the image and remove it.

    Exit code 7 if a registry fails, 5 if a machine is unreachable.
    """
    return app.exit_code(request)


@command.command()
@checking(RegistryStatus, passed=True)
def status(*, app: App, request: RegistryStatus) -> int:
    """Show the use of the cache since its start, its size, its limit, and its last clean-up."""
    return app.exit_code(request)


@command.command()
@checking(RegistryWarm, passed=True)
def warm(*, app: App, request: RegistryWarm) -> int:
    """Load IMAGEs into the cache, so that many jobs can start quickly."""
    return app.exit_code(request)


@command.command()
@checking(RegistryGc, passed=True)
def gc(*, app: App, request: RegistryGc) -> int:
    """Delete unused content of the cache, and the least recently used content over its limit.

    The first control plane does this every ten minutes. This command does it now. The cache downloads deleted content
    again on demand. Exit code 7 on a failure.
    """
    return app.exit_code(request)


@command.command()
@acting(RotateRegistry, several=True, plans=False)
def rotate(*, app: App, run: RunOptions, request: RotateRegistry) -> int:
    """Replace the login, authority, port, storage, or an upstream of the cache. No container restarts.

    The old value stays valid until every machine has the new one. The command lists unreachable machines. Run it with
    --finish once they are reachable. If a machine cannot use the registries with the new value, the command rolls back.
    Run the same command to resume an interrupted rotation.

    --endpoint, --backend, and --upstream use your changes of the site's files. The command tests an upstream before the
    first change. A new address or authority of an upstream restarts the cache's own pod.
    """
    return rotate_registry(app, request, run)
