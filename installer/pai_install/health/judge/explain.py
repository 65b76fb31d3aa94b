"""Everything that is known of one Xid, SXid or health check, as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pai_install.checks.explain import explain as explain_check
from pai_install.checks.explain import find_check
from pai_install.checks.limits import Limits
from pai_install.checks.verdict import Action, Verdict
from pai_install.errors import ExitCode, PaiError
from pai_install.health.judge.catalogues import load_sxids
from pai_install.health.judge.meaning import XidMeaning
from pai_install.health.judge.rules import CHECKS

_SXID = re.compile(r"sxid[ -]?(\d+)", re.IGNORECASE)
_XID = re.compile(r"(?:xid[ -]?)?(\d+)", re.IGNORECASE)


def explain(name: str, limits: Limits, catalogue: Mapping[int, XidMeaning]) -> str:
    """What a check reads, its rule, its numbers on this site, and what to do; or what an Xid or SXid means.

    Raises PaiError for what is none of them.
    """
    if match := _SXID.fullmatch(name.strip()):
        return _explain_sxid(int(match.group(1)))
    if (number := xid_number(name)) is not None:
        return _explain_xid(number, catalogue)
    return explain_check(find_check(name, CHECKS, listing="pai-install health explain"), limits)


def xid_number(name: str) -> int | None:
    """The number that "79" or "xid-79" names; None for what names no Xid."""
    match = _XID.fullmatch(name.strip())
    return int(match.group(1)) if match else None


def xid_data(number: int, catalogue: Mapping[int, XidMeaning]) -> dict[str, Any]:
    """The published form of what an Xid means. Raises PaiError for one that the catalogue lacks."""
    meaning = _meaning(number, catalogue)
    return {
        **{name: getattr(meaning, name) for name in ("number", "name", "kind")},
        "verdict": meaning.verdict.value,
        "remedy": _remedy(meaning),
        "action": "" if meaning.action is Action.NONE else meaning.action.value,
        "check": "gpu-xid",
    }


def _explain_xid(number: int, catalogue: Mapping[int, XidMeaning]) -> str:
    told = xid_data(number, catalogue)
    lines = [f"Xid {number}: {told['name']}", f"kind:       {told['kind']}", f"verdict:    {told['verdict']}"]
    lines += [
        f"{label:<11} {told[name]}" for name, label in (("remedy", "what to do:"), ("action", "action:")) if told[name]
    ]
    return "\n".join([*lines, f"check:      {told['check']} (`pai-install health explain {told['check']}`)"]) + "\n"


def _explain_sxid(number: int) -> str:
    if (known := load_sxids().get(number)) is None:
        raise PaiError(
            f"SXid {number} is not in the catalogue of this program",
            remedy="look it up in NVIDIA's fabric manager guide; `health` goes by the line's word, Fatal or not",
            exit_code=ExitCode.USAGE,
        )
    check = CHECKS["nvswitch-sxid"]
    lines = [f"SXid {number}: {known.name}", f"verdict:    {known.verdict.value}; FAIL where the line says Fatal"]
    lines += [f"what to do: {check.remedy}"] if known.verdict is not Verdict.PASS else []
    return "\n".join([*lines, f"check:      {check.id} (`pai-install health explain {check.id}`)"]) + "\n"


def _meaning(number: int, catalogue: Mapping[int, XidMeaning]) -> XidMeaning:
    if number not in catalogue:
        raise PaiError(
            f"Xid {number} is not in the catalogue of this program",
            remedy="look it up in NVIDIA's Xid catalogue; `health` WARNs of it",
            exit_code=ExitCode.USAGE,
        )
    return catalogue[number]


def _remedy(meaning: XidMeaning) -> str:
    return meaning.remedy or (CHECKS["gpu-xid"].remedy if meaning.action is not Action.NONE else "")
