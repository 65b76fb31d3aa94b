"""`pai-install storage`: the storages that jobs mount."""

from __future__ import annotations

import click

from pai_install.cli._shared.storage_test import test


@click.group
def command() -> None:
    """The storages that jobs mount, and who may mount them."""


command.add_command(test)
