"""`pai-install explain`: what a check reads, its rule and numbers, and what to do, for the checks of every verb."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pai_install.checks.check import Check
from pai_install.checks.explain import explain, find_check, list_checks
from pai_install.checks.limits import Limits
from pai_install.cli.options import site_option
from pai_install.errors import ExitCode


@click.command
@site_option
@click.argument("check", required=False)
def command(*, site_dir: Path, check: str | None) -> int:
    """Say what CHECK reads, its rule, its numbers and whose they are, and what to do; without it list all checks.

    CHECK may also be an Xid of NVIDIA's driver: 79 or xid-79.
    """
    rooms = _rooms()
    if check is None:
        click.echo("\n".join(f"{name}:\n{list_checks(checks.values())}" for name, checks in rooms.items()), nl=False)
        return ExitCode.OK
    if re.fullmatch(r"(?i)(xid[ -]?)?\d+", check.strip()):
        click.echo(_xid(check, site_dir), nl=False)
        return ExitCode.OK
    find_check(check, {name: item for checks in rooms.values() for name, item in checks.items()})
    told = [
        f"{room}\n{explain(checks[check], _limits(room, site_dir))}"
        for room, checks in rooms.items()
        if check in checks
    ]
    click.echo("\n".join(told), nl=False)
    return ExitCode.OK


def _rooms() -> dict[str, Mapping[str, Check[Any]]]:
    """Verb -> its checks."""
    from pai_install.cluster.checks import CONDITIONS, PROOFS  # noqa: PLC0415 - the rules load only when needed
    from pai_install.health.judge.rules import CHECKS as HEALTH  # noqa: PLC0415
    from pai_install.preflight.catalogue import CATALOGUE as PREFLIGHT  # noqa: PLC0415

    return {
        "preflight": PREFLIGHT,
        "verify": {check.id: check for check in PROOFS},
        "status and verify": {check.id: check for check in CONDITIONS},
        "health": HEALTH,
    }


def _limits(room: str, site_dir: Path) -> Limits:
    if room == "health":
        from pai_install.health.checkup import site_limits  # noqa: PLC0415
        from pai_install.health.judge.catalogues import load_limits  # noqa: PLC0415

        return site_limits(load_limits(), site_dir)
    from pai_install.preflight.limits import LIMITS  # noqa: PLC0415

    return LIMITS


def _xid(name: str, site_dir: Path) -> str:
    from pai_install.health.judge.catalogues import load_catalogue  # noqa: PLC0415
    from pai_install.health.judge.explain import explain as explain_health  # noqa: PLC0415

    return explain_health(name, _limits("health", site_dir), load_catalogue())
