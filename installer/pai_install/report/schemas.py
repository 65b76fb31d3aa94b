"""JSON Schemas of the --format json outputs of `plan` and `status`."""

from __future__ import annotations

from typing import Any

from pai_install.checks.finding import finding_schema
from pai_install.errors import ExitCode
from pai_install.report.planned import PLAN_SCHEMA_VERSION
from pai_install.report.standing import STATUS_SCHEMA_VERSION
from pai_install.schema_parts import DIALECT, closed_object

NAMES = ("plan", "status")

_Schema = dict[str, Any]
_TEXT: _Schema = {"type": "string"}
_YES: _Schema = {"type": "boolean"}
_COUNT: _Schema = {"type": "integer", "minimum": 0}
_SECONDS: _Schema = {"type": "number", "minimum": 0, "description": "seconds"}
_EXIT: _Schema = {"enum": [int(code) for code in ExitCode]}


def schema(name: str) -> _Schema:
    """The schema called `name`, one of NAMES. Raises KeyError."""
    made = {"plan": _plan, "status": _status}[name]()
    return {"$schema": DIALECT, "title": f"pai-install {name}", **made}


def _list(items: _Schema) -> _Schema:
    return {"type": "array", "items": items}


def _by_host(values: _Schema) -> _Schema:
    return {"type": "object", "additionalProperties": values}


def _or_null(one: _Schema) -> _Schema:
    return {"anyOf": [one, {"type": "null"}]}


def _action(**more: _Schema) -> _Schema:
    anything: _Schema = {"type": "object"}
    call = closed_object(host=_TEXT, title=_TEXT, verb=_TEXT, arguments=anything)
    return {
        "anyOf": [
            closed_object(kind={"const": "playbook"}, playbook=_TEXT, variables=anything, **more),
            closed_object(kind={"const": "cluster-calls"}, calls=_list(call), **more),
            closed_object(kind={"const": "local-work"}, name=_TEXT, arguments=anything, **more),
        ]
    }


def _plan() -> _Schema:
    step = closed_object(host=_TEXT, reasons=_list(_TEXT), effects=_list(_TEXT), remarks=_list(_TEXT))
    phase = closed_object(
        name=_TEXT,
        title=_TEXT,
        action=_action(),
        undo=_or_null(_action(command=_TEXT)),
        needs=_list(_TEXT),
        hosts=_list(step),
    )
    return closed_object(
        schema_version={"const": PLAN_SCHEMA_VERSION},
        operation=_TEXT,
        arguments={"type": "object"},
        empty=_YES,
        phases=_list(phase),
        unreachable=_by_host(_TEXT),
        refused=_by_host(_TEXT),
        findings=_list(finding_schema()),
        inventory_digest=_TEXT,
        previewed=_YES,
        changes=_list(closed_object(phase=_TEXT, host=_TEXT, task=_TEXT, diff=_TEXT, digest=_TEXT)),
    )


def _status() -> _Schema:
    machine = closed_object(
        name=_TEXT, address=_TEXT, roles=_list(_TEXT), absent=_YES, state=_TEXT, versions=_by_host(_TEXT),
        drift=_list(_TEXT),
    )  # fmt: skip
    alert = closed_object(
        name=_TEXT, severity=_TEXT, subject=_TEXT, summary=_TEXT, action=_TEXT, since=_TEXT, labels=_by_host(_TEXT)
    )
    last = closed_object(name=_TEXT, exit_code=_EXIT, duration_s=_SECONDS, left=_by_host(_list(_TEXT)))
    return closed_object(
        schema_version={"const": STATUS_SCHEMA_VERSION},
        ok=_YES,
        exit_code=_EXIT,
        looked=_YES,
        compared=_YES,
        machines=_list(machine),
        findings=_list(finding_schema()),
        unproven=_by_host(_TEXT),
        console=_or_null(closed_object(addresses=_list(_TEXT), fingerprint=_TEXT)),
        alerts=_or_null(_list(alert)),
        last_run=_or_null(last),
        running=_TEXT,
        interrupted=_TEXT,
    )
