"""The one error type that reaches the user, and the exit codes it maps to."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit status of the process, documented in docs/reference/exit-codes.md."""

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
    """An error that the user can resolve.

    message: the failure, with the object and its value.
    code: name of the cause, stable across changes of the message. docs/reference/errors.md lists all codes.
    details: evidence, for example a tool's own output. It may have several lines.
    remedy: the next step.
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


def argument_error(message: str, remedy: str) -> PaiError:
    """The error of an argument that a verb cannot use."""
    return PaiError(message, code="argument-invalid", remedy=remedy, exit_code=ExitCode.USAGE)
