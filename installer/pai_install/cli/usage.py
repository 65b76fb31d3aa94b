"""`pai-install usage`: GPU hours of users, groups, virtual clusters, jobs, SKUs, and nodes."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.app.usage import AccountUsage, account_usage
from pai_install.cli.command import reading
from pai_install.cli.options import formats_option
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.report.gpu_hours import account_csv, account_text, usage_report


@click.command
@reading(AccountUsage, formats=formats_option("table", "csv", "json"))
def command(*, app: App, terminal: Terminal, request: AccountUsage) -> int:
    """Show the GPU hours that users, groups, virtual clusters, jobs, SKUs, or nodes held.

    Held: from the assignment of a node to the end of the pod. Busy: computing, as far as nodes measured it. Waited:
    from the queue to the node. Preempted: held by pods that were preempted. Borrowed: beyond the quota of the virtual
    cluster. The table shows unknown amounts as "-". Their cells in CSV are empty. Exit code 5 when no control plane
    answers.
    """
    account = account_usage(app, request)
    text = account_csv(account) if terminal.output_format == "csv" else account_text(account)
    terminal.show(usage_report(account), text)
    return ExitCode.OK
