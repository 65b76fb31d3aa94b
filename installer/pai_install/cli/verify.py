"""`pai-install verify`: prove that the cluster works, now."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli.apply import apply
from pai_install.cli.options import format_option, limit_option, site_option
from pai_install.plan.phases import VERIFY
from pai_install.run.pipeline import Request
from pai_install.run.wiring import product_wiring


@click.command
@site_option
@limit_option
@format_option
def command(*, site_dir: Path, limit: tuple[str, ...], output_format: str) -> int:
    """Prove that the cluster works: swap, time, a container through each runtime, nodes, system pods, and from a
    pod on each machine DNS, a Service on another machine and the API.

    Starts small pods in a namespace of its own and removes them; changes nothing else. Exit code 7 if a check fails.
    """
    request = Request(site_dir, (VERIFY.name,), limit)
    as_json = output_format == "json"
    return apply(request, product_wiring(), yes=True, check=False, plan_file=None, as_json=as_json)
