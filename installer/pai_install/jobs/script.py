"""A role's commands and what runs around them -> one shell script. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pai_install.jobs.openpai_extras import Wrapped


def script(commands: Sequence[str], around: Sequence[Wrapped] = ()) -> str:
    """The commands one after the other, as OpenPAI runs them; what is around them ends the script where it fails.

    around: what begins first comes first, and ends last. Each part is a shell of its own: variables that it sets are
    no other's.
    """
    plain = "\n".join(command.strip() for command in commands)
    before = [_part(one.before, strict=one.strict) for one in around if one.before]
    after = [_part(one.after, strict=one.strict) for one in reversed(around) if one.after]
    # Without a later part, the commands need no shell of their own, and their exit code is the script's.
    if not after:
        return "\n".join([*before, plain])
    return "\n".join([*before, _ended(f"(\n{plain}\n)"), *after])


def _part(commands: Sequence[str], *, strict: bool) -> str:
    """Commands as a shell of their own. strict: the first that fails ends the script."""
    lines = "\n".join(command.strip() for command in commands)
    return _ended(f"(\nset -e\n{lines}\n)") if strict else f"(\n{lines}\n)"


def _ended(part: str) -> str:
    # behind `||` the shell would ignore `set -e`
    return f'{part}\npai_status=$?\n[ "$pai_status" -eq 0 ] || exit "$pai_status"'
