"""Explanations of checks, Xids, and SXids, as text or in the published form: `explain` and `health explain`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pai_install.checks.check import Check
from pai_install.checks.explain import explain, explain_data, find_check, list_checks
from pai_install.checks.limits import Limits
from pai_install.health.judge.catalogues import load_limits
from pai_install.health.judge.explain import Code, code_in, code_text, sxid_data, xid_data
from pai_install.schema_parts import closed_object, published

SCHEMA_VERSION = 1
Rooms = Mapping[str, Mapping[str, Check[Any]]]
_HEALTH = "pai-install health explain"


def health_rooms() -> Rooms:
    """The checks of `health` alone."""
    from pai_install.health.judge.rules import CHECKS  # noqa: PLC0415 - not needed for a code

    return {"health": CHECKS}


def all_rooms() -> Rooms:
    """Verb -> its checks."""
    from pai_install.health.cluster.checks import CONDITIONS, PROOFS  # noqa: PLC0415
    from pai_install.preflight.catalogue import CATALOGUE as PREFLIGHT  # noqa: PLC0415

    return {
        "preflight": PREFLIGHT,
        "verify": {check.id: check for check in PROOFS},
        "status and verify": {check.id: check for check in CONDITIONS},
        **health_rooms(),
    }


def explained(name: str | None, site_dir: Path, *, as_json: bool, health_only: bool = False) -> str:
    """Returns the explanation of a check, an Xid, or an SXid, or of all checks without a name.

    Raises PaiError for an unknown name.
    """
    code = code_in(name or "")
    rooms = {} if code else health_rooms() if health_only else all_rooms()
    if name is not None and code is None:
        rooms = _those_named(name, rooms, health_only=health_only)
    if as_json:
        return json.dumps(_data(rooms, code, site_dir), indent=2) + "\n"
    if code is not None:
        return code_text(code)
    parts = {verb: _room_text(checks, verb, site_dir, listed=name is None) for verb, checks in rooms.items()}
    if health_only:
        return parts["health"]
    colon = ":" if name is None else ""
    return "\n".join(f"{verb}{colon}\n{part}" for verb, part in parts.items())


def _room_text(checks: Mapping[str, Check[Any]], verb: str, site_dir: Path, *, listed: bool) -> str:
    if listed:
        return list_checks(checks.values())
    return "".join(explain(check, _limits(verb, site_dir)) for check in checks.values())


def _those_named(name: str, rooms: Rooms, *, health_only: bool) -> Rooms:
    """The checks of that name: two verbs may have one each. Raises PaiError where none has."""
    known = {identifier: item for checks in rooms.values() for identifier, item in checks.items()}
    find_check(name, known, **({"listing": _HEALTH} if health_only else {}))
    return {verb: {name: checks[name]} for verb, checks in rooms.items() if name in checks}


def _data(rooms: Rooms, code: Code | None, site_dir: Path) -> dict[str, Any]:
    """The published form: the checks that were asked for, or the Xid or SXid."""
    limits = {verb: _limits(verb, site_dir) for verb in rooms}
    return {
        "schema_version": SCHEMA_VERSION,
        "checks": [
            {"verb": verb, **explain_data(check, limits[verb])}
            for verb, checks in rooms.items()
            for check in checks.values()
        ],
        "xids": [xid_data(code.number)] if code is not None and not code.switch else [],
        "sxids": [sxid_data(code.number)] if code is not None and code.switch else [],
    }


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of the published form, as in docs/reference/explain.schema.json."""
    text = {"type": "string"}
    number = closed_object(name=text, value={"type": "number"}, applies_to=text, source=text)
    words = dict.fromkeys(("verb", "id", "title", "reads", "rule", "source", "remedy", "action"), text)
    check = closed_object(**words, numbers={"type": "array", "items": number})
    meaning = dict.fromkeys(("name", "kind", "verdict", "remedy", "action", "check"), text)
    xid = closed_object(number={"type": "integer"}, **meaning)
    switch = closed_object(number={"type": "integer"}, **{key: meaning[key] for key in meaning if key != "kind"})
    return published(
        "pai-install explain",
        SCHEMA_VERSION,
        checks={"type": "array", "items": check},
        xids={"type": "array", "items": xid},
        sxids={"type": "array", "items": switch},
    )


def _limits(room: str, site_dir: Path) -> Limits:
    if room == "health":
        from pai_install.health.checkup import site_limits  # noqa: PLC0415

        return site_limits(load_limits(), site_dir)
    from pai_install.preflight.limits import LIMITS  # noqa: PLC0415

    return LIMITS
