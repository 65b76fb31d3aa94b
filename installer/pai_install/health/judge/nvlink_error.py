"""Xid 74: the failed link of a GPU and, from its register bits, the remedy (NVIDIA's WORKFLOW_NVLINK_ERR)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pai_install.checks.verdict import Action, Verdict
from pai_install.health.judge.meaning import XidMeaning

_LINE = re.compile(r"\blink\s+(\d{1,3})\s*(?:\(((?:0x[0-9a-fA-F]{1,8},\s*)+0x[0-9a-fA-F]{1,8})\))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LinkFault:
    """The fault in the registers of one line. returns: remedy if the link shows the fault repeatedly."""

    link: str
    cause: str
    returns: Action


_ECC = ("parity or ECC of the link", "reset all linked GPUs; replace the card when it returns on this link")
_CONTACT = ("the connection of the link", "reset all linked GPUs; reseat card, bridge or board when it returns")
_RARE = ("an error of the link that should be rare", "reset all linked GPUs; ask the vendor when it returns")
_SECOND = ("comes after another error", "resolve the other Xids and SXids first; reset all linked GPUs")
# register (from 0), its bits, what they are and what to do, from the gravest to the mildest
_GRAVE = (
    (0, (8, 9, 12, 16, 17, 21, 22, 24, 28), _CONTACT),
    (0, (4, 5), _ECC),
    (2, (0, 1, 2, 6), _ECC),
    (4, (18, 19, 21, 22, 24, 25, 27, 28), _ECC),
    (0, (27, 29), _RARE),
    (2, (13, 16, 17, 18, 19), _RARE),
    (0, (1, 20), _SECOND),
    (3, (16, 17, 18), _SECOND),
)
_RETURNS = {_ECC[0]: Action.RMA, _CONTACT[0]: Action.DRAIN, _RARE[0]: Action.DRAIN}
_THRESHOLD = {(4, bit) for bit in (20, 23, 26, 29)}
_IGNORED = {(0, bit) for bit in (0, 23, 30)}


def with_link(known: XidMeaning, text: str) -> XidMeaning:
    """Returns the row of Xid 74 with the link and the fault in its registers, unchanged if they show no known fault."""
    if not (match := _LINE.search(text)):
        return known
    named = replace(known, name=f"{known.name}, link {match.group(1)}")
    bits = set(_bits(match.group(2) or ""))
    if (grave := _gravest(bits)) is not None:
        return replace(named, name=f"{named.name}: {grave[0]}", remedy=grave[1])
    if not bits or bits - _THRESHOLD - _IGNORED:
        return named
    if bits & _THRESHOLD:
        message, remedy = "many corrected errors, no other", "run the vendor's diagnostics at the next idle moment"
        return replace(named, name=f"{named.name}: {message}", verdict=Verdict.WARN, action=Action.NONE, remedy=remedy)
    return replace(named, name=f"{named.name}: to be ignored", verdict=Verdict.PASS, action=Action.NONE, remedy="")


def link_faults(texts: Iterable[str]) -> Iterator[LinkFault]:
    """Of lines of Xid 74 those in which the fault is the link's own: not corrected, and not after another error."""
    for text in texts:
        match = _LINE.search(text)
        grave = _gravest(set(_bits(match.group(2) or ""))) if match else None
        if match and grave and grave[0] in _RETURNS:
            yield LinkFault(match.group(1), grave[0], _RETURNS[grave[0]])


def _gravest(bits: set[tuple[int, int]]) -> tuple[str, str] | None:
    """Returns (cause, remedy) of the worst known bit that is set, or None."""
    return next((message for register, which, message in _GRAVE if any((register, bit) in bits for bit in which)), None)


def _bits(registers: str) -> Iterator[tuple[int, int]]:
    """(register, bit) of every bit that is set."""
    for register, word in enumerate(filter(None, registers.split(","))):
        value = int(word, 16)
        yield from ((register, bit) for bit in range(32) if value >> bit & 1)
