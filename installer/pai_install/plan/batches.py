"""Machines in batches: how many may be out of service at a time, and who comes after whom. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pai_install.errors import ExitCode, PaiError
from pai_install.plan.model import Step

_NUMBER = re.compile(r"([1-9][0-9]{0,5})(%?)")


def width(text: str, total: int) -> int:
    """Returns how many of `total` machines may be out of service at a time: "2", or "10%" rounded down, at least one.

    Raises PaiError (usage) unless the text is a positive number or a percentage up to 100.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None or (found[2] and int(found[1]) > 100):
        raise PaiError(
            f"cannot read --max-unavailable {text!r}: it is neither a number nor a percentage",
            code="max-unavailable-invalid",
            remedy="write for example 2, or 10%",
            exit_code=ExitCode.USAGE,
        )
    number = int(found[1])
    return max(1, min(total, total * number // 100 if found[2] else number))


def batches(names: Sequence[str], size: int) -> tuple[tuple[str, ...], ...]:
    """Returns batches of `size` names in order, without duplicates."""
    once = tuple(dict.fromkeys(names))
    return tuple(once[start : start + size] for start in range(0, len(once), size))


def one_after_another(groups: Sequence[Sequence[Step]]) -> tuple[Step, ...]:
    """The steps of all groups. A group starts only when every step of the one before succeeded on all its machines.

    So the first bad batch is the last one. The names of all steps must differ.
    """
    found: list[Step] = []
    before: tuple[str, ...] = ()
    for group in groups:
        found += [replace(step, after_all=(*step.after_all, *before)) for step in group]
        before = tuple(step.name for step in group) or before
    return tuple(found)
