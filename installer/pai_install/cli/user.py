"""`pai-install user`: users of the cluster, their groups, and their access."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from pai_install.app.context import App, RunOptions
from pai_install.app.users import (
    ImportUsers,
    MakeKubeconfig,
    MakePasswordLink,
    import_users,
    list_users,
    make_kubeconfig,
    make_password_link,
)
from pai_install.cli.command import acting, reading
from pai_install.cli.options import group_site_option, text_only
from pai_install.cli.output import echo
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.operations.user_add import UserAdd
from pai_install.operations.user_remove import UserRemove
from pai_install.report.users import time_text, users_report, users_text
from pai_install.system.words import plural


@click.group
@group_site_option
def command() -> None:
    """Add, list, and remove users, and make their kubeconfigs."""


@command.command()
@acting(UserAdd)
def add(*, app: App, run: RunOptions, request: UserAdd) -> int:
    """Add a user to groups. A member of a group submits jobs in the group's namespace.

    An existing user keeps its other groups. A member of a group of administrators sees and stops the jobs of all users.
    `user kubeconfig` makes the user's credentials.
    """
    return app.exit_code(request, run)


@command.command(name="import")
@acting(ImportUsers)
def import_command(*, app: App, run: RunOptions, request: ImportUsers) -> int:
    """Add all users of a FILE to their groups. Existing users keep their other groups.

    The file is CSV with the header `name,groups` and spaces between groups, or the JSON of OpenPAI's `GET
    /api/v2/users`. One invalid row stops the import before any change. `user password` makes a link for each user.
    """
    return import_users(app, request, run)


@command.command(name="list")
@reading()
def list_command(*, app: App, terminal: Terminal) -> int:
    """List the cluster's users, their groups, and the end of their access.

    Exit code 5 when no control plane answers, 6 when the API refuses.
    """
    report = users_report(list_users(app), datetime.now(UTC))
    terminal.show(report, users_text(report))
    return ExitCode.OK


@command.command()
@acting(UserRemove)
def remove(*, app: App, run: RunOptions, request: UserRemove) -> int:
    """Revoke a user's access at once, with all kubeconfigs. The user's jobs continue.

    With --group the user only leaves these groups. A user that is added again under the same name needs a new
    kubeconfig, and owns the jobs with that name.
    """
    return app.exit_code(request, run)


@command.command()
@reading(MakeKubeconfig, formats=text_only)
def kubeconfig(*, app: App, request: MakeKubeconfig) -> int:
    """Make a kubeconfig for a user: a private file (0600) that expires.

    It has a context for each of the user's groups. Its holder acts as the user. `user remove` revokes it, and --replace
    revokes earlier ones, within ten seconds.
    """
    made = make_kubeconfig(app, request)
    echo(f"{made.path}: {request.name}, until {time_text(made.until)}; contexts {', '.join(made.namespaces)}")
    if request.replace:
        echo(f"{plural(made.revoked, 'earlier kubeconfig')} revoked")
    return ExitCode.OK


@command.command()
@reading(MakePasswordLink, formats=text_only)
def password(*, app: App, request: MakePasswordLink) -> int:
    """Print a link with which a user sets a password for the console.

    The link counts once, and earlier links of the user end. Its holder sets the password, so send it over a secure
    channel. The old password counts until then. --replace revokes it at once, with all sessions and tokens.
    """
    made = make_password_link(app, request)
    if request.replace:
        echo(f"the password, sessions, and tokens of {made.user} are revoked")
    echo(f"{made.url}\n{made.user} sets a password with it once, until {time_text(made.until)}")
    return ExitCode.OK
