"""Verbs that test: they run without a question, and say what is well, too."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import click
from pydantic import ValidationError

from pai_install.checks.verdict import Verdict
from pai_install.cli._shared.act import How, SiteRequest, outcome_of
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.run.environment import Environment

Checked = TypeVar("Checked", bound=Operation)


def look(site_dir: Path, operation: Operation, environment: Environment, output_format: str) -> int:
    """Runs it and says what was found, also where all is well: that is what these verbs are asked for."""
    how = How(yes=True, as_json=output_format == "json")
    outcome = outcome_of(SiteRequest(site_dir, operation), environment, how)
    assert outcome is not None  # noqa: S101 - no one was asked
    if not how.as_json:
        for found in sorted(outcome.findings, key=lambda found: (found.subject, found.message)):
            if found.verdict is Verdict.PASS:
                click.echo(f"{found.subject}: {found.message}{f' ({found.value})' if found.value else ''}")
    return outcome.exit_code


def checked(operation: type[Checked], **arguments: object) -> Checked:
    """The operation. Raises PaiError for an argument that is none."""
    try:
        return operation.model_validate(arguments)
    except ValidationError as error:
        # where a value is refused in our words, pydantic's own words tell only what follows from that
        told = [detail for detail in error.errors() if detail["type"] == "value_error"] or error.errors()
        reasons = ", ".join(str(detail["msg"]).removeprefix("Value error, ") for detail in told)
        raise PaiError(reasons, code="argument-invalid", exit_code=ExitCode.USAGE) from None
