"""`pai-install storage`: storages that jobs mount, who is granted them, and what uses them."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.site_edit import Editing, editing_options
from pai_install.cli._shared.storage_edit import (
    add_storage,
    grant_storage,
    known_storage,
    remove_storage,
    revoke_storage,
)
from pai_install.cli._shared.storage_entry import Entry, change_options, entry_options
from pai_install.cli._shared.storage_rotate import rotate_storage, wish_options
from pai_install.cli._shared.storage_test import test
from pai_install.cli._shared.storage_wish import Wish
from pai_install.cli._shared.tell import tell_result
from pai_install.cli.options import format_option, group_site_option, names, site_option, yes_option
from pai_install.cluster.client import ApiError, NoClusterError
from pai_install.cluster.read import Mounts, mounts
from pai_install.errors import ExitCode, PaiError
from pai_install.report.storage import STORAGE_LABEL, storage_data, storage_shown, storage_text
from pai_install.report.storages import storages_data, storages_text
from pai_install.run.environment import Environment
from pai_install.run.state import state_of
from pai_install.site.load import load_site
from pai_install.site.model import Site
from pai_install.storage.compile import grants_of

name_argument = click.argument("name", metavar="NAME")
groups_option = click.option(
    "--group",
    "groups",
    multiple=True,
    required=True,
    callback=names,
    metavar="GROUP,...",
    help="A group of authentication.group-manager; repeatable.",
)


@click.group
@group_site_option
def command() -> None:
    """Storages that jobs mount: which there are, who is granted them, and what uses them."""


@command.command(name="list")
@site_option
@format_option
def list_command(*, site_dir: Path, output_format: str) -> int:
    """List the site's storages and the groups that are granted them; asks no machine."""
    site = load_site(site_dir).site
    tell_result(output_format, storages_data(site), storages_text(site))
    return ExitCode.OK


@command.command()
@site_option
@name_argument
@format_option
@pass_environment
def show(*, site_dir: Path, name: str, output_format: str, environment: Environment) -> int:
    """Show a storage: its definition, its grants as they stand in the cluster, and the pods that use it.

    Pods that have ended use nothing and are left out. No secret is shown. Where the cluster cannot be asked, what the
    site says is shown; exit code 5 when no control plane answers, 6 when the API refuses.
    """
    site = load_site(site_dir).site
    known_storage(site, name)
    seen, error = _seen(site, site_dir, name, environment)
    shown = storage_shown(site, name, seen, _why(error))
    tell_result(output_format, storage_data(shown), storage_text(shown))
    return ExitCode.OK if error is None else error.exit_code


def _seen(site: Site, site_dir: Path, name: str, environment: Environment) -> tuple[Mounts | None, PaiError | None]:
    namespaces = [grant.namespace for grant in grants_of(site) if grant.storage.name == name]
    try:
        with environment.cluster(site, state_of(site_dir), accept_new=False) as cluster:
            return mounts(cluster, namespaces, f"{STORAGE_LABEL}={name}"), None
    except (NoClusterError, ApiError) as error:
        return None, error


def _why(error: PaiError | None) -> str:
    return "" if error is None else "; ".join(filter(None, (error.message, *error.details.splitlines())))


@command.command()
@name_argument
@groups_option
@editing_options
def grant(*, name: str, groups: tuple[str, ...], editing: Editing) -> int:
    """Grant a storage to groups: edits services-configuration.yaml, where all else stays as it is.

    No other grant changes. `apply` then makes the PV and the PVC in the group's namespace.
    """
    return grant_storage(editing, name, groups)


@command.command()
@name_argument
@groups_option
@editing_options
def revoke(*, name: str, groups: tuple[str, ...], editing: Editing) -> int:
    """Take a storage away from groups: edits services-configuration.yaml, where all else stays as it is.

    `apply` then removes the group's PV and PVC; pods that use them keep them until they end. Data stays.
    """
    return revoke_storage(editing, name, groups)


@command.command()
@name_argument
@entry_options
@editing_options
def add(*, name: str, entry: Entry, editing: Editing) -> int:
    """Define a storage: edits services-configuration.yaml, where all else stays as it is.

    A secret is never an argument: --password-env and its like name where `apply` finds it.
    """
    return add_storage(editing, name, entry)


@command.command()
@name_argument
@click.option("--revoke", "with_grants", is_flag=True, help="Also take it away from the groups that are granted it.")
@editing_options
def remove(*, name: str, with_grants: bool, editing: Editing) -> int:
    """Remove the definition of a storage; refused while a group is granted it, without --revoke.

    Data stays where it is.
    """
    return remove_storage(editing, name, with_grants=with_grants)


@command.command()
@site_option
@name_argument
@change_options
@wish_options
@click.option("--check", is_flag=True, help="Only show what would be done, and who uses the storage.")
@yes_option
@pass_environment
def rotate(*, site_dir: Path, wish: Wish, check: bool, yes: bool, environment: Environment) -> int:
    """Move a storage to another server, path, account or mount options; running jobs are not disturbed.

    Every worker mounts the new place first: where one cannot, nothing is changed. Then a next generation stands beside
    the old one: new jobs use its claim, NAME-gNUMBER, which `storage list` shows, and jobs that run keep the old one.
    That goes, with its PV, PVC and Secret and never with its data, when no pod uses it: at once, or by --finish.

    --copy brings the data along: all of it before a job hears of the new place, what changed since when no pod uses the
    old one any longer. Nothing of the old generation goes before every byte was compared. With --emergency pods are
    ended after the first copy, so the old key has to be valid until the command ends; where it must go at once, rotate
    without --copy.

    An interrupted rotation goes on where it was when the command is run again.
    """
    return rotate_storage(Editing(site_dir, environment, check=check, yes=yes), wish)


command.add_command(test)
