"""A saved plan: `--plan FILE` applies this one or nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pai_install.errors import ExitCode, PaiError
from pai_install.plan.model import Plan
from pai_install.report.diffs import FileChange, other_changes
from pai_install.report.plan import PlanDocument
from pai_install.report.planned import plan_changes
from pai_install.system.files import read_bounded

_LARGEST = 256 << 20
_ANEW = "create a plan with pai-install plan --format json > FILE"

_SCHEMA_VERSION = PlanDocument.model_fields["schema_version"].default


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan in the published form, from a file."""

    path: Path
    data: dict[str, Any]

    @property
    def previewed(self) -> bool:
        """Whether the plan contains the changes on the machines (made without --no-diff)."""
        return bool(self.data["previewed"])

    def require_unmoved(self, plan: Plan) -> None:
        """Raises PaiError with each difference if the plan is not the saved one."""
        try:
            self._require_operation(plan)
            self._refuse(plan_changes(self.data, plan))
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            # Any JSON may be in the file, so a wrong type is no crash.
            raise _no_plan(self.path, error) from error

    def require_same(self, changes: tuple[FileChange, ...]) -> None:
        """Raises PaiError when the changes on the machines differ from the saved ones."""
        try:
            self._refuse(other_changes(self.data["changes"], changes))
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise _no_plan(self.path, error) from error

    def _require_operation(self, plan: Plan) -> None:
        content = {"operation": plan.operation, "arguments": plan.redactor.mapping(plan.arguments)}
        kept = {name: self.data[name] for name in content}
        if kept != content:
            raise PaiError(
                f"cannot apply {self.path}: it is a plan of {_in_words(kept)}, not of {_in_words(content)}",
                code="plan-file-of-other-command",
                remedy="repeat the command and the options of the plan",
                exit_code=ExitCode.USAGE,
            )

    def _refuse(self, differences: tuple[str, ...]) -> None:
        if differences:
            raise PaiError(
                f"cannot apply {self.path}: the machines or the site have changed since",
                code="plan-file-outdated",
                details="\n".join(differences),
                remedy="create and review a new plan",
                exit_code=ExitCode.PREFLIGHT_FAILED,
            )


def read_plan(path: Path) -> SavedPlan:
    """Reads a plan. Raises PaiError when the file holds none, or one in the form of another release."""
    try:
        data = json.loads(read_bounded(path, _LARGEST))
        version = data["schema_version"]
        saved = SavedPlan(path, data)
        if version == _SCHEMA_VERSION:
            # Raises for JSON without the keys of a plan.
            _ = saved.previewed
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _no_plan(path, error) from error
    if version != _SCHEMA_VERSION:
        raise PaiError(
            (f"cannot read {path}: its schema version is {version}, and this release reads {_SCHEMA_VERSION}"),
            code="plan-file-schema-version",
            remedy=_ANEW,
            exit_code=ExitCode.USAGE,
        )
    return saved


def _in_words(command: dict[str, Any]) -> str:
    given = [f"{name}={value}" for name, value in command["arguments"].items() if value]
    return " ".join([str(command["operation"]), *given])


def _no_plan(path: Path, error: Exception) -> PaiError:
    details = f"{type(error).__name__}: {error}"
    return PaiError(
        f"cannot read {path}: it is not a plan",
        code="plan-file-invalid",
        details=details,
        remedy=_ANEW,
        exit_code=ExitCode.USAGE,
    )
