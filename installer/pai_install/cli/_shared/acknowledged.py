"""`pai-install health acknowledge`: what its words mean, and how what is acknowledged is shown."""

from __future__ import annotations

import getpass
import json
import os
import time
from collections.abc import Iterable
from typing import Any

import click

from pai_install.errors import ExitCode, PaiError
from pai_install.health.checkup import Judgement
from pai_install.health.memory.acknowledgement import Acknowledgement
from pai_install.system.plain import one_line


def known_check(name: str) -> str:
    """The name. Raises PaiError for what is no check."""
    from pai_install.checks.explain import find_check  # noqa: PLC0415
    from pai_install.health.judge.rules import CHECKS  # noqa: PLC0415
    from pai_install.health.report import UNREACHED  # noqa: PLC0415

    return name if name == UNREACHED else find_check(name, CHECKS, listing="pai-install health explain").id


def judgement(own: dict[str, Any]) -> Judgement:
    """What the options say. Raises PaiError where reason or end is missing."""
    from pai_install.health.memory.acknowledgement import end_of  # noqa: PLC0415

    missing = [f"--{name}" for name in ("why", "until") if not own[name].strip()]
    if missing:
        raise PaiError(
            f"acknowledge needs {' and '.join(missing)}",
            code="acknowledge-incomplete",
            remedy='pai-install health acknowledge MACHINE CHECK --why "the card is ordered" --until 7d',
            exit_code=ExitCode.USAGE,
        )
    who = own["who"] or os.environ.get("SUDO_USER") or getpass.getuser()
    return Judgement(one_line(who), one_line(own["why"]), end_of(own["until"], time.time()), own["device"])


def show(kept: Iterable[Acknowledgement], *, as_json: bool) -> None:
    """Prints what is acknowledged, by machine and check."""
    from pai_install.health.report import acknowledgement_json  # noqa: PLC0415

    rows = sorted(kept, key=lambda item: item.key)
    if as_json:
        click.echo(json.dumps({"schema_version": 1, "acknowledged": [acknowledgement_json(item) for item in rows]}))
        return
    for item in rows:
        where = f"{item.machine} {item.device}".rstrip()
        click.echo(f"{where} {item.check}: {item.words} ({item.said})")
    if not rows:
        click.echo("nothing is acknowledged")
