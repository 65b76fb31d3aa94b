"""`pai-install user`: who may use the cluster, as a member of which groups, and until when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from pai_install.cli._shared.act import How, SiteRequest, act, acting_options
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import tell_result
from pai_install.cli._shared.user_kubeconfig import make_kubeconfig, require_free, server_of
from pai_install.cli.options import Command, format_option, group_site_option, names, site_option
from pai_install.errors import ExitCode
from pai_install.operations.user import USERS, require_name
from pai_install.operations.user_add import UserAdd
from pai_install.operations.user_remove import UserRemove
from pai_install.report.users import time_text, users_data, users_text
from pai_install.run.environment import Environment
from pai_install.run.state import state_of
from pai_install.site.load import load_site
from pai_install.system.words import plural
from pai_install.users.read import Found

name_argument = click.argument("name", metavar="NAME")


def groups_option(meaning: str, *, required: bool = False) -> Callable[[Command], Command]:
    """An option that names groups; the verb gets them as `groups`."""
    return click.option(
        "--group", "groups", multiple=True, required=required, callback=names, metavar="GROUP,...", help=meaning
    )


@click.group
@group_site_option
def command() -> None:
    """Users: members of groups, their access to the cluster and when it ends."""


@command.command()
@site_option
@name_argument
@groups_option("A group of authentication.group-manager; repeatable.", required=True)
@acting_options
@pass_environment
def add(*, site_dir: Path, name: str, groups: tuple[str, ...], how: How, environment: Environment) -> int:
    """Make a person a user: a member of groups, who submits jobs in their namespaces.

    A user that exists is added to these groups and stays in its others. A member of a group of administrators sees and
    stops the jobs of all. The user gets in with what `user kubeconfig` makes.
    """
    return act(SiteRequest(site_dir, UserAdd(user=name, groups=groups)), environment, how)


@command.command(name="list")
@site_option
@format_option
@pass_environment
def list_command(*, site_dir: Path, output_format: str, environment: Environment) -> int:
    """List the cluster's users: their groups, and until when their access lasts.

    Only the Kubernetes API is asked; exit code 5 when no control plane answers, 6 when the API refuses.
    """
    site = load_site(site_dir).site
    with environment.cluster(site, state_of(site_dir), accept_new=False) as cluster:
        users = Found(*cluster.list(*USERS)).users
    now = datetime.now(UTC)
    tell_result(output_format, users_data(users, now), users_text(users, now))
    return ExitCode.OK


@command.command()
@site_option
@name_argument
@groups_option("Only take the user out of this group; repeatable.  [default: remove the user]")
@acting_options
@pass_environment
def remove(*, site_dir: Path, name: str, groups: tuple[str, ...], how: How, environment: Environment) -> int:
    """Take a user's access away at once, whatever kubeconfigs there are; its jobs go on.

    With --group the user only leaves these groups. Whoever is added again under the name needs a new kubeconfig, and
    owns the jobs that carry it.
    """
    return act(SiteRequest(site_dir, UserRemove(user=name, groups=groups)), environment, how)


@command.command()
@site_option
@name_argument
@click.option("--days", type=click.IntRange(1, 365), default=30, show_default=True, help="How long it lasts, in days.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file; it must not exist yet.  [default: NAME.kubeconfig]",
)
@click.option("--server", default="", metavar="URL", help="Where users reach the API.  [default: as `kubectl` does]")
@click.option("--replace", is_flag=True, help="End all earlier kubeconfigs of the user.")
@pass_environment
def kubeconfig(
    *, site_dir: Path, name: str, days: int, output: Path | None, server: str, replace: bool, environment: Environment
) -> int:
    """Make a kubeconfig for a user, a private file (0600), which ends by itself.

    It has a context for each of the user's groups; whoever has the file is the user. `user remove` ends it before its
    time, and --replace ends those that were made earlier, within ten seconds.
    """
    require_name(name)
    site, state = load_site(site_dir).site, state_of(site_dir)
    path = output or Path(f"{name}.kubeconfig")
    require_free(path)
    where = (path, server_of(state.path / "kubeconfig", server))
    with environment.cluster(site, state, accept_new=False) as cluster:
        made = make_kubeconfig(cluster, name, days, where, replace=replace)
    click.echo(f"{path}: {name}, until {time_text(made.until)}; contexts {', '.join(made.namespaces)}")
    if replace:
        click.echo(f"{plural(made.ended, 'earlier kubeconfig')} ended")
    return ExitCode.OK
