"""Everything that is known of one Xid or SXid."""

from __future__ import annotations

import re
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class SxidExplanation:
    """The meaning of an SXid. verdict: for lines without a severity."""

    number: int
    name: str
    verdict: Verdict
    remedy: str
    action: str
    check: str

    def __str__(self) -> str:
        verdict = f"{self.verdict.value}. FAIL where the line says Fatal"
        return _text(f"SXid {self.number}", self, ("verdict", verdict))


@dataclass(frozen=True, slots=True)
class XidExplanation:
    """The meaning of an Xid."""

    number: int
    name: str
    kind: str
    verdict: Verdict
    remedy: str
    action: str
    check: str

    def __str__(self) -> str:
        return _text(f"Xid {self.number}", self, ("kind", self.kind), ("verdict", self.verdict.value))


def _text(code: str, explanation: XidExplanation | SxidExplanation, *more: tuple[str, str]) -> str:
    lines = [(f"{label}:", text) for label, text in more]
    lines += [
        (label, text) for label, text in (("what to do:", explanation.remedy), ("action:", explanation.action)) if text
    ]
    lines.append(("check:", f"{explanation.check} (`pai-install health explain {explanation.check}`)"))
    return "\n".join([f"{code}: {explanation.name}", *(f"{label:<11} {text}" for label, text in lines)]) + "\n"


def explain_xid(number: int) -> XidExplanation:
    """The meaning of an Xid. Raises PaiError for unknown Xids."""
    if (meaning := load_catalogue().get(number)) is None:
        raise _unknown(f"Xid {number}", "look it up in NVIDIA's Xid catalogue. `health` WARNs of it")
    return XidExplanation(
        number=meaning.number,
        name=meaning.name,
        kind=meaning.kind,
        verdict=meaning.verdict,
        remedy=_remedy(meaning),
        action=_action(meaning.action),
        check="gpu-xid",
    )


def explain_sxid(number: int) -> SxidExplanation:
    """The meaning of an SXid. Raises PaiError for unknown SXids."""
    if (known := load_sxids().get(number)) is None:
        remedy = "look it up in NVIDIA's fabric manager guide. `health` uses the word Fatal or Non-fatal of the line"
        raise _unknown(f"SXid {number}", remedy)
    check = CHECKS["nvswitch-sxid"]
    return SxidExplanation(
        number=number,
        name=known.name,
        verdict=known.verdict,
        remedy=check.remedy if known.verdict is not Verdict.PASS else "",
        action=_action(check.action) if known.verdict is Verdict.FAIL else "",
        check=check.id,
    )


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
