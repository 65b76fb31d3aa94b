"""`pai-install verify`: prove that the cluster works, now."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.cli.command import checking
from pai_install.operations.verify import Verify


@click.command
@checking(Verify)
def command(*, app: App, request: Verify) -> int:
    """Verify the cluster: nodes, system pods, runtimes, time, DNS, Services, and the API.

    Starts small pods in their own namespace and deletes them. Changes nothing else. Exit code 7 if a check fails.
    """
    return app.exit_code(request)
