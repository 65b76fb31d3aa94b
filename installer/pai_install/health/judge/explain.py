"""Everything that is known of one Xid or one health check, as text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pai_install.checks.explain import explain as explain_check
from pai_install.checks.explain import find_check
from pai_install.checks.limits import Limits
from pai_install.checks.verdict import Action
from pai_install.errors import ExitCode, PaiError
from pai_install.health.judge.rules import CHECKS
from pai_install.health.judge.xid import XidMeaning

_XID = re.compile(r"(?:xid[ -]?)?(\d+)", re.IGNORECASE)


def explain(name: str, limits: Limits, catalogue: Mapping[int, XidMeaning]) -> str:
    """What a check reads, its rule, its numbers on this site, whose they are, and what to do; or what an Xid means.

    Raises PaiError for what is neither.
    """
    if match := _XID.fullmatch(name.strip()):
        return _explain_xid(int(match.group(1)), catalogue)
    return explain_check(find_check(name, CHECKS, listing="pai-install health explain"), limits)


def _explain_xid(number: int, catalogue: Mapping[int, XidMeaning]) -> str:
    meaning = catalogue.get(number)
    if meaning is None:
        raise PaiError(
            f"Xid {number} is not in the catalogue of this program",
            remedy="look it up in NVIDIA's Xid catalogue; `health` WARNs of it",
            exit_code=ExitCode.USAGE,
        )
    lines = [f"Xid {number}: {meaning.name}", f"kind:       {meaning.kind}", f"verdict:    {meaning.verdict.value}"]
    if remedy := meaning.remedy or (CHECKS["gpu-xid"].remedy if meaning.action is not Action.NONE else ""):
        lines.append(f"what to do: {remedy}")
    if meaning.action is not Action.NONE:
        lines.append(f"action:     {meaning.action.value}")
    return "\n".join([*lines, "check:      gpu-xid (`pai-install health explain gpu-xid`)"]) + "\n"
