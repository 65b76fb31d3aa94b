"""Guarantees for which machines are missing now, as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pai_install.scheduling.usage.health import Unmet


def unmet_text(unmet: Sequence[Unmet]) -> str:
    """Empty where all guarantees can be met."""
    return "\nguaranteed, and not there now:\n" + "".join(f"  {one}\n" for one in unmet) if unmet else ""
