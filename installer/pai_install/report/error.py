"""An error as a result. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import WithJsonSchema

from pai_install.errors import ExitCode, PaiError
from pai_install.json_schema import Report, ReportObject

_ExitStatus = Annotated[int, WithJsonSchema({"enum": [int(code) for code in ExitCode if code is not ExitCode.OK]})]


class ErrorEntry(ReportObject):
    """The cause and the remedy."""

    code: str
    message: str
    details: str
    remedy: str


class ErrorReport(Report, title="pai-install VERB --format json, when the verb could not do its work"):
    """An error."""

    ok: Literal[False] = False
    exit_code: _ExitStatus
    error: ErrorEntry


def error_report(error: PaiError) -> ErrorReport:
    """Returns an error as a result."""
    return ErrorReport(exit_code=error.exit_code, error=ErrorEntry.model_validate(error))
