"""`pai-install explain`: what a check reads, its rule and numbers, and what to do, for the checks of every verb."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pai_install.checks.check import Check
from pai_install.checks.explain import explain, explain_data, find_check, list_checks
from pai_install.checks.limits import Limits
from pai_install.cli.options import format_option, site_option
from pai_install.errors import ExitCode
from pai_install.json_schema import closed_object

SCHEMA_VERSION = 1
Rooms = Mapping[str, Mapping[str, Check[Any]]]


@click.command
@site_option
@click.argument("check", required=False)
@format_option
def command(*, site_dir: Path, check: str | None, output_format: str) -> int:
    """Say what CHECK reads, its rule, its numbers and whose they are, and what to do; without it list all checks.

    CHECK may also be an Xid of the NVIDIA driver: 79 or xid-79.
    """
    from pai_install.health.judge.explain import xid_number  # noqa: PLC0415 - the rules load only when needed

    number = xid_number(check or "")
    rooms = _rooms() if number is None else {}
    if check is not None and number is None:
        rooms = _those_named(check, rooms)
    if output_format == "json":
        click.echo(json.dumps(_data(rooms, number, site_dir), indent=2))
    else:
        click.echo(_text(rooms, check, number, site_dir), nl=False)
    return ExitCode.OK


def _rooms() -> Rooms:
    """Verb -> its checks."""
    from pai_install.cluster.checks import CONDITIONS, PROOFS  # noqa: PLC0415
    from pai_install.health.judge.rules import CHECKS as HEALTH  # noqa: PLC0415
    from pai_install.preflight.catalogue import CATALOGUE as PREFLIGHT  # noqa: PLC0415

    return {
        "preflight": PREFLIGHT,
        "verify": {check.id: check for check in PROOFS},
        "status and verify": {check.id: check for check in CONDITIONS},
        "health": HEALTH,
    }


def _those_named(name: str, rooms: Rooms) -> Rooms:
    """The checks of that name: two verbs may have one each. Raises PaiError where none has."""
    find_check(name, {known: item for checks in rooms.values() for known, item in checks.items()})
    return {verb: {name: checks[name]} for verb, checks in rooms.items() if name in checks}


def _text(rooms: Rooms, check: str | None, number: int | None, site_dir: Path) -> str:
    if check is None:
        return "\n".join(f"{verb}:\n{list_checks(checks.values())}" for verb, checks in rooms.items())
    if number is not None:
        from pai_install.health.judge.catalogues import load_catalogue  # noqa: PLC0415
        from pai_install.health.judge.explain import explain as explain_health  # noqa: PLC0415

        return explain_health(check, _limits("health", site_dir), load_catalogue())
    return "\n".join(f"{verb}\n{explain(checks[check], _limits(verb, site_dir))}" for verb, checks in rooms.items())


def _data(rooms: Rooms, number: int | None, site_dir: Path) -> dict[str, Any]:
    """The published form: the checks that were asked for, or the Xid."""
    from pai_install.health.judge.catalogues import load_catalogue  # noqa: PLC0415
    from pai_install.health.judge.explain import xid_data  # noqa: PLC0415

    limits = {verb: _limits(verb, site_dir) for verb in rooms}
    return {
        "schema_version": SCHEMA_VERSION,
        "checks": [
            {"verb": verb, **explain_data(check, limits[verb])}
            for verb, checks in rooms.items()
            for check in checks.values()
        ],
        "xids": [] if number is None else [xid_data(number, load_catalogue())],
    }


def schema() -> dict[str, Any]:
    """The JSON Schema of the published form; docs/reference/explain.schema.json is the same."""
    text = {"type": "string"}
    number = closed_object(name=text, value={"type": "number"}, applies_to=text, source=text)
    words = dict.fromkeys(("verb", "id", "title", "reads", "rule", "source", "remedy", "action"), text)
    check = closed_object(**words, numbers={"type": "array", "items": number})
    meaning = dict.fromkeys(("name", "kind", "verdict", "remedy", "action", "check"), text)
    xid = closed_object(number={"type": "integer"}, **meaning)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pai-install explain",
        **closed_object(
            schema_version={"const": SCHEMA_VERSION},
            checks={"type": "array", "items": check},
            xids={"type": "array", "items": xid},
        ),
    }


def _limits(room: str, site_dir: Path) -> Limits:
    if room == "health":
        from pai_install.health.checkup import site_limits  # noqa: PLC0415
        from pai_install.health.judge.catalogues import load_limits  # noqa: PLC0415

        return site_limits(load_limits(), site_dir)
    from pai_install.preflight.limits import LIMITS  # noqa: PLC0415

    return LIMITS
