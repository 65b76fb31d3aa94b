"""`pai-install job connect`: the SSH server in a job."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.app.job_connection import ConnectJob, connect_job
from pai_install.cli.command import reading
from pai_install.cli.options import text_only
from pai_install.errors import ExitCode

_INPUT, _OUTPUT = 0, 1


@click.command
@reading(ConnectJob, formats=text_only)
def connect(*, app: App, request: ConnectJob) -> int:
    """Connect to the SSH server in your job, as ProxyCommand of ssh.

    Standard input and output become the connection: ssh -o ProxyCommand='pai-install job connect --token-file FILE %n'
    root@NAME. With --console, no site is needed. The console admits the owner of the job alone, over TLS. The
    connection ends with the job, the token, and your membership in the group.
    """
    connect_job(app, request, _INPUT, _OUTPUT)
    return ExitCode.OK
