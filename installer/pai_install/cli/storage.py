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
    help="A group of authentication.group-manager. Repeatable.",
)


@click.group
@group_site_option
def command() -> None:
    """Define, grant, test, and rotate storages for jobs."""


@command.command(name="list")
@site_option
@format_option
def list_command(*, site_dir: Path, output_format: str) -> int:
    """List the storages of the site and their groups. Reads the site only."""
    site = load_site(site_dir).site
    tell_result(output_format, storages_data(site), storages_text(site))
    return ExitCode.OK


@command.command()
@site_option
@name_argument
@format_option
@pass_environment
def show(*, site_dir: Path, name: str, output_format: str, environment: Environment) -> int:
    """Show a storage: its definition without secrets, grants, and pods.

    Finished pods are omitted. If the cluster is unreachable, only the definition is shown. Exit code 5 if the control
    plane is unreachable, 6 if the API rejects the request.
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
    """Grant a storage to groups in services-configuration.yaml.

    `apply` then creates the PV and the PVC in the namespaces of the groups.
    """
    return grant_storage(editing, name, groups)


@command.command()
@name_argument
@groups_option
@editing_options
def revoke(*, name: str, groups: tuple[str, ...], editing: Editing) -> int:
    """Revoke a storage from groups in services-configuration.yaml.

    `apply` then deletes the PV and the PVC of the groups. Running pods keep their mount. The data remains.
    """
    return revoke_storage(editing, name, groups)


@command.command()
@name_argument
@entry_options
@editing_options
def add(*, name: str, entry: Entry, editing: Editing) -> int:
    """Define a storage in services-configuration.yaml.

    Secrets are never arguments. Options such as --password-env name their source for `apply`.
    """
    return add_storage(editing, name, entry)


@command.command()
@name_argument
@click.option("--revoke", "with_grants", is_flag=True, help="Also revoke its grants.")
@editing_options
def remove(*, name: str, with_grants: bool, editing: Editing) -> int:
    """Remove the definition of a storage from services-configuration.yaml.

    Rejected while a group has a grant, unless you give --revoke. The data remains.
    """
    return remove_storage(editing, name, with_grants=with_grants)


@command.command()
@site_option
@name_argument
@change_options
@wish_options
@click.option("--check", is_flag=True, help="Only show the steps and the pods that use the storage.")
@yes_option
@pass_environment
def rotate(*, site_dir: Path, wish: Wish, check: bool, yes: bool, environment: Environment) -> int:
    """Move a storage to another server, path, account, or mount options. Running jobs continue.

    All workers test the new place first. New jobs then use the claim NAME-gNUMBER (see `storage list`), and running
    jobs keep the old one. When no pod uses the old claim, --finish deletes it, with its PV and Secret but without its
    data.

    --copy copies the data before the switch, and again when no pod uses the old place. The old claim is deleted only
    after a comparison of every byte. With --emergency, pods are deleted after the first copy, so keep the old key valid
    until the command ends, or rotate without --copy.

    Run the same command again to continue an interrupted rotation.
    """
    return rotate_storage(Editing(site_dir, environment, check=check, yes=yes), wish)


command.add_command(test)
