"""Everything that is known of one Xid or SXid, as text or in the published form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pai_install.checks.verdict import Action, Verdict
from pai_install.errors import ExitCode, PaiError
from pai_install.health.judge.catalogues import load_catalogue, load_sxids
from pai_install.health.judge.meaning import XidMeaning
from pai_install.health.judge.rules import CHECKS

_CODE = re.compile(r"(s?xid[ -]?)?(\d{1,9})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Code:
    """The number of an Xid, or of an SXid (switch)."""

    number: int
    switch: bool = False


def code_in(name: str) -> Code | None:
    """Returns the code for "79", "xid-79", or "sxid-12020", or None."""
    match = _CODE.fullmatch(name.strip())
    return Code(int(match.group(2)), (match.group(1) or "").lower().startswith("s")) if match else None


def code_text(code: Code) -> str:
    """Returns the meaning of an Xid or SXid as text. Raises PaiError for unknown codes."""
    told = sxid_data(code.number) if code.switch else xid_data(code.number)
    more = "; FAIL where the line says Fatal" if code.switch else ""
    lines = [f"{'SXid' if code.switch else 'Xid'} {told['number']}: {told['name']}"]
    lines += [f"kind:       {told['kind']}"] if "kind" in told else []
    lines += [f"verdict:    {told['verdict']}{more}"]
    lines += [
        f"{label:<11} {told[name]}" for name, label in (("remedy", "what to do:"), ("action", "action:")) if told[name]
    ]
    return "\n".join([*lines, f"check:      {told['check']} (`pai-install health explain {told['check']}`)"]) + "\n"


def xid_data(number: int) -> dict[str, Any]:
    """Returns the published form of an Xid's meaning. Raises PaiError for unknown Xids."""
    if (meaning := load_catalogue().get(number)) is None:
        raise _unknown(f"Xid {number}", "look it up in NVIDIA's Xid catalogue. `health` WARNs of it")
    return {
        **{name: getattr(meaning, name) for name in ("number", "name", "kind")},
        "verdict": meaning.verdict.value,
        "remedy": _remedy(meaning),
        "action": _action(meaning.action),
        "check": "gpu-xid",
    }


def sxid_data(number: int) -> dict[str, Any]:
    """Returns the published form of an SXid's meaning. Its verdict is for lines without a severity.

    Raises PaiError for unknown SXids.
    """
    if (known := load_sxids().get(number)) is None:
        remedy = "look it up in NVIDIA's fabric manager guide; `health` goes by the line's word, Fatal or not"
        raise _unknown(f"SXid {number}", remedy)
    check = CHECKS["nvswitch-sxid"]
    return {
        "number": number,
        "name": known.name,
        "verdict": known.verdict.value,
        "remedy": check.remedy if known.verdict is not Verdict.PASS else "",
        "action": _action(check.action) if known.verdict is Verdict.FAIL else "",
        "check": check.id,
    }


def _unknown(what: str, remedy: str) -> PaiError:
    return PaiError(
        f"cannot explain {what}: it is not in the catalogue of this version",
        code="health-check-not-in-catalogue",
        remedy=remedy,
        exit_code=ExitCode.USAGE,
    )


def _action(action: Action) -> str:
    return "" if action is Action.NONE else action.value


def _remedy(meaning: XidMeaning) -> str:
    return meaning.remedy or (CHECKS["gpu-xid"].remedy if meaning.action is not Action.NONE else "")
