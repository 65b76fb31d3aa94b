"""The result of a check function: a verdict without check and subject."""

from __future__ import annotations

from typing import NamedTuple

from pai_install.checks.verdict import Action, Verdict


class Result(NamedTuple):  # a tuple, as Finding
    """The conclusion of a check about its subject.

    device: a bus id, port, disk ... where it is not the device that was asked about. value, expected: as text.
    message: of a PASS, where it says more than the check's title. action and remedy: where they differ from the
    check's own. UNKNOWN and SKIP carry their reason in `message`.
    """

    verdict: Verdict
    message: str
    value: str = ""
    expected: str = ""
    device: str = ""
    action: Action | None = None
    remedy: str = ""


def passed(value: object = "", expected: object = "", *, device: str = "", message: str = "") -> Result:
    """Returns a PASS. It becomes UNKNOWN or SKIP if any value that the check has read was missing."""
    return Result(Verdict.PASS, message, str(value), str(expected), device)


def warned(
    message: str,
    value: object = "",
    expected: object = "",
    *,
    device: str = "",
    action: Action | None = None,
    remedy: str = "",
) -> Result:
    """A WARN: works, but needs attention."""
    return Result(Verdict.WARN, message, str(value), str(expected), device, action or Action.NONE, remedy)


def failed(
    message: str,
    value: object = "",
    expected: object = "",
    *,
    device: str = "",
    action: Action | None = None,
    remedy: str = "",
) -> Result:
    """A FAIL with the check's own action, or another one."""
    return Result(Verdict.FAIL, message, str(value), str(expected), device, action, remedy)


def skipped(reason: str, *, device: str = "") -> Result:
    """The check does not apply here, and why."""
    return Result(Verdict.SKIP, reason, device=device)


def unknown(reason: str, value: object = "", *, device: str = "", remedy: str = "") -> Result:
    """The check could not be made, and why."""
    return Result(Verdict.UNKNOWN, reason, str(value), device=device, remedy=remedy)
