"""Kubernetes quantities of memory, e.g. 220Gi."""

from __future__ import annotations

import re
from decimal import Decimal

from pai_install.documents.problem import short

_UNITS = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip
_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:([a-zA-Z]*)|[eE]([0-9]{1,2}))")


class QuantityError(ValueError):
    """The text is no quantity. `remedy` contains the probable intention."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def parse_bytes(text: str) -> int:
    """Converts "220Gi" to 236223201280. Fractions of a byte are cut off.

    Raises QuantityError for any text that Kubernetes would reject as an amount of memory.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise QuantityError(f"{short(text)} is not an amount of memory", "write it as Kubernetes does, e.g. 220Gi")
    number, unit, exponent = match.groups()
    if exponent is not None:
        return int(Decimal(number) * 10 ** int(exponent))
    if unit in _UNITS:
        return int(Decimal(number) * _UNITS[unit])
    raise QuantityError(f"{short(text)} has the unit {unit}, which Kubernetes does not know", _suggest(number, unit))


def _suggest(number: str, unit: str) -> str:
    letter = unit[0].upper()
    if letter not in "KMGTPE":
        return f"write it as Kubernetes does, e.g. {number}Gi"
    decimal = "k" if letter == "K" else letter
    return f"write {number}{decimal} (powers of 1000) or {number}{letter}i (powers of 1024)"


def format_bytes(amount: int) -> str:
    """236223201280 -> "220Gi": the largest binary unit that divides it, else bytes."""
    for unit in ("Pi", "Ti", "Gi", "Mi", "Ki"):
        if amount and amount % _UNITS[unit] == 0:
            return f"{amount // _UNITS[unit]}{unit}"
    return str(amount)
