"""The one error type that reaches the user, and the exit codes it maps to."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process returns; documented in docs/reference/exit-codes.md."""

    OK = 0
    USAGE = 2
    SITE_INVALID = 3
    PREFLIGHT_FAILED = 4
    UNREACHABLE = 5
    STEP_FAILED = 6
    VERIFICATION_FAILED = 7
    INTERNAL = 70
    INTERRUPTED = 130


class PaiError(Exception):
    """Something the user can act on.

    message: what went wrong, naming the thing and the value seen.
    code: the name of the cause, which stays when the message is reworded; docs/reference/errors.md lists all.
    details: evidence, for example the tool's own output; may span lines.
    remedy: what to do next.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        details: str = "",
        remedy: str = "",
        exit_code: ExitCode = ExitCode.STEP_FAILED,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.details = details
        self.remedy = remedy
        self.exit_code = exit_code
