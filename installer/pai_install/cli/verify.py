"""`pai-install verify`: prove that the cluster works, now."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.act import How, act
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.options import format_option, limit_option, site_option
from pai_install.operations.verify import Verify
from pai_install.run.environment import Environment
from pai_install.run.request import Request


@click.command
@site_option
@limit_option
@format_option
@pass_environment
def command(*, site_dir: Path, limit: tuple[str, ...], output_format: str, environment: Environment) -> int:
    """Prove that the cluster works: swap, time, a container through each runtime, nodes, system pods, and from a
    pod on each machine DNS, a Service on another machine and the API.

    Starts small pods in a namespace of its own and removes them; changes nothing else. Exit code 7 if a check fails.
    """
    return act(Request(site_dir, Verify(limit=limit)), environment, How(yes=True, as_json=output_format == "json"))
