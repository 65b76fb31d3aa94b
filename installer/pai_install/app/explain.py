"""Explanations of checks, Xids, and SXids: `explain` and `health explain`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pai_install.checks.check import Check
from pai_install.checks.explain import CheckExplanation, find_check, list_checks
from pai_install.checks.explain import explain as explain_check
from pai_install.checks.limits import Limits
from pai_install.health.judge.catalogues import load_limits
from pai_install.health.judge.explain import SxidExplanation, XidExplanation, code_in, explain_sxid, explain_xid
from pai_install.json_schema import Report

Rooms = Mapping[str, Mapping[str, Check[Any]]]
_HEALTH = "pai-install health explain"


class ExplainReport(Report, title="pai-install explain"):
    """The requested checks, or the Xid or SXid."""

    checks: tuple[CheckExplanation, ...]
    xids: tuple[XidExplanation, ...]
    sxids: tuple[SxidExplanation, ...]


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


def explain(name: str | None, site_dir: Path, *, health_only: bool = False) -> ExplainReport:
    """Explains a check, an Xid, or an SXid, or all checks without a name. Raises PaiError for an unknown name."""
    if code := code_in(name or ""):
        return ExplainReport(
            checks=(),
            xids=() if code.switch else (explain_xid(code.number),),
            sxids=(explain_sxid(code.number),) if code.switch else (),
        )
    rooms = health_rooms() if health_only else all_rooms()
    if name is not None:
        rooms = _those_named(name, rooms, health_only=health_only)
    found = (
        explain_check(check, verb, limits)
        for verb, checks in rooms.items()
        for limits in [_limits(verb, site_dir)]
        for check in checks.values()
    )
    return ExplainReport(checks=tuple(found), xids=(), sxids=())


def explanation_text(report: ExplainReport, *, health_only: bool = False) -> str:
    """The same for people. health_only: without the name of the verb."""
    if report.xids or report.sxids:
        return "".join(map(str, (*report.xids, *report.sxids)))
    return "\n".join(f"{check}" if health_only else f"{check.verb}\n{check}" for check in report.checks)


def listing(*, health_only: bool = False) -> str:
    """A line for each check of all verbs, or of `health` alone."""
    if health_only:
        return list_checks(health_rooms()["health"].values())
    return "\n".join(f"{verb}:\n{list_checks(checks.values())}" for verb, checks in all_rooms().items())


def _those_named(name: str, rooms: Rooms, *, health_only: bool) -> Rooms:
    """The checks of that name: two verbs may have one each. Raises PaiError where none has."""
    known = {identifier: item for checks in rooms.values() for identifier, item in checks.items()}
    find_check(name, known, **({"listing": _HEALTH} if health_only else {}))
    return {verb: {name: checks[name]} for verb, checks in rooms.items() if name in checks}


def _limits(room: str, site_dir: Path) -> Limits:
    if room == "health":
        from pai_install.health.checkup import site_limits  # noqa: PLC0415

        return site_limits(load_limits(), site_dir)
    from pai_install.preflight.limits import LIMITS  # noqa: PLC0415

    return LIMITS
