"""Programs that a test starts beside itself."""

from __future__ import annotations


def ends_with_us(*words: str) -> list[str]:
    """A command that ends when the process that starts it does, also where that is killed."""
    return ["setpriv", "--pdeathsig", "KILL", *words]
