"""The verbs of `pai-install storage` that read more than the site, or change it."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.app.rotations.storage import RotateStorage, rotate_storage
from pai_install.app.storage import (
    AddStorage,
    RemoveStorage,
    StorageGroups,
    StorageName,
    add_storage,
    grant_storage,
    remove_storage,
    revoke_storage,
    show_storage,
)
from pai_install.cli.command import checking, editing, reading
from pai_install.cli.terminal import Terminal
from pai_install.operations.storage_test import StorageTest
from pai_install.report.storage import storage_text


@click.command
@reading(StorageName)
def show(*, app: App, terminal: Terminal, request: StorageName) -> int:
    """Show a storage: its definition without secrets, grants, and pods.

    Finished pods are omitted. If the cluster is unreachable, only the definition is shown. Exit code 5 if the control
    plane is unreachable, 6 if the API rejects the request.
    """
    shown, code = show_storage(app, request.name)
    terminal.show(shown, storage_text(shown))
    return code


@click.command
@editing(StorageGroups)
def grant(*, app: App, request: StorageGroups) -> int:
    """Grant a storage to groups in services-configuration.yaml.

    `apply` then creates the PV and the PVC in the namespaces of the groups.
    """
    return grant_storage(app, request)


@click.command
@editing(StorageGroups)
def revoke(*, app: App, request: StorageGroups) -> int:
    """Revoke a storage from groups in services-configuration.yaml.

    `apply` then deletes the PV and the PVC of the groups. Running pods keep their mount. The data remains.
    """
    return revoke_storage(app, request)


@click.command
@editing(AddStorage)
def add(*, app: App, request: AddStorage) -> int:
    """Define a storage in services-configuration.yaml.

    Secrets are never arguments. Options such as --password-env name their source for `apply`.
    """
    return add_storage(app, request)


@click.command
@editing(RemoveStorage)
def remove(*, app: App, request: RemoveStorage) -> int:
    """Remove the definition of a storage from services-configuration.yaml.

    Rejected while a group has a grant, unless you give --revoke. The data remains.
    """
    return remove_storage(app, request)


@click.command
@editing(RotateStorage)
def rotate(*, app: App, request: RotateStorage) -> int:
    """Move a storage to another server, path, account, or mount options. Running jobs continue.

    All workers test the new place first. New jobs then use the claim NAME-gNUMBER (see `storage list`), and running
    jobs keep the old one. When no pod uses the old claim, --finish deletes it, with its PV and Secret but without its
    data.

    --copy copies the data before the switch, and again when no pod uses the old place. The old claim is deleted only
    after a comparison of every byte. With --emergency, pods are deleted after the first copy, so keep the old key valid
    until the command ends, or rotate without --copy.

    Run the same command again to continue an interrupted rotation.
    """
    return rotate_storage(app, request)


@click.command
@checking(StorageTest, passed=True)
def test(*, app: App, request: StorageTest) -> int:
    """Test storages on every worker: mount, write, read, compare, and delete.

    Without NAME, all storages are tested, by pods in the namespaces of groups with a grant. A hung mount ends with its
    time limit. Exit code 7 if a storage or a worker fails.
    """
    return app.exit_code(request)
