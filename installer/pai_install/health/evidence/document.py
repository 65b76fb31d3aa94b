"""The evidence document of one machine as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_install.errors import ExitCode, PaiError

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of one command. rc is None if it did not end: missing, timed out, or never started.

    refused: why the kernel did not start it. exhausted: the machine had no process, memory, or descriptor left. state:
    process state of a timed out command (D: stuck in the kernel). lines: number of lines in a kernel log before
    filtering, None if not collected.
    """

    rc: int | None = None
    stdout: str = ""
    stderr: str = ""
    duration_s: float = 0.0
    timed_out: bool = False
    missing: bool = False
    refused: str = ""
    exhausted: bool = False
    not_started: bool = False
    truncated: bool = False
    unkillable: bool = False
    lines: int | None = None
    state: str = ""
    wchan: str = ""

    @property
    def text(self) -> str:
        """Both streams, for searching."""
        return f"{self.stdout}\n{self.stderr}".strip()


@dataclass(frozen=True, slots=True)
class HealthEvidence:
    """All evidence of one machine.

    files: path -> content. facts: name -> value of the collector's successful readers. `broken` names the failed
    readers.
    """

    machine: str
    collected_at: float
    boot_id: str = ""
    uptime_s: float = 0.0
    duration_s: float = 0.0
    redacted: bool = False
    commands: Mapping[str, CommandResult] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()

    @property
    def exhausted(self) -> str:
        """Returns the kernel's message if it could start no further process, or ''."""
        return next((item.refused for item in self.commands.values() if item.exhausted), "")


def parse_evidence(machine: str, document: Mapping[str, Any]) -> HealthEvidence:
    """Parses the collector's JSON and ignores unknown keys.

    A reader's value with a wrong form counts as broken. Raises PaiError if it is no such document or has a newer
    schema.
    """
    try:
        return _evidence(machine, document)
    except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PaiError(
            f"cannot read the evidence of {machine}: {error}",
            code="evidence-damaged",
            remedy="collect it again",
            exit_code=ExitCode.USAGE,
        ) from error


def _evidence(machine: str, document: Mapping[str, Any]) -> HealthEvidence:
    version = document.get("schema_version")
    if not isinstance(version, int) or not 1 <= version <= SCHEMA_VERSION:
        raise PaiError(
            (f"cannot read the evidence of {machine}: schema_version is {version!r}, supported up to {SCHEMA_VERSION}"),
            code="evidence-schema-version",
            remedy="collect it again, or install a newer pai-install",
            exit_code=ExitCode.USAGE,
        )
    facts = document.get("facts") or {}
    read = {
        name: raw.get("value") for name, raw in facts.items() if raw.get("ok") and _has_form(name, raw.get("value"))
    }
    return HealthEvidence(
        machine=machine,
        collected_at=_finite(document.get("collected_at")),
        boot_id=str(document.get("boot_id") or ""),
        uptime_s=_finite(document.get("uptime_s")),
        duration_s=_finite(document.get("duration_s")),
        redacted=bool(document.get("redacted")),
        commands={name: _command(raw) for name, raw in (document.get("commands") or {}).items()},
        files={str(path): str(text) for path, text in (document.get("files") or {}).items()},
        facts=read,
        broken=frozenset(facts) - read.keys(),
    )


def _finite(raw: Any) -> float:  # noqa: ANN401 - whatever a file holds
    number = float(raw or 0)
    if not 0 <= number < 1e11:  # the year 5138
        raise ValueError(f"{number} is no time")
    return number


def _has_form(name: str, value: object) -> bool:
    """Returns whether a reader's value has the form that the checks expect."""
    if not isinstance(value, dict):
        return False
    if name == "disks":
        return all(_four_numbers(item) for item in value.values())
    if name == "gpu_processes":
        return all(isinstance(item, dict) for item in value.values())
    if name == "kernel":
        return isinstance(value.get("nvml", []), list) and all(isinstance(item, str) for item in value.get("nvml", []))
    return True


def _four_numbers(value: object) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(isinstance(item, (int, float)) for item in value)


def _command(raw: Mapping[str, Any]) -> CommandResult:
    rc, lines = raw.get("rc"), raw.get("lines")
    return CommandResult(
        rc=rc if isinstance(rc, int) else None,
        stdout=str(raw.get("stdout") or ""),
        stderr=str(raw.get("stderr") or ""),
        duration_s=_finite(raw.get("duration_s")),
        timed_out=bool(raw.get("timed_out")),
        missing=bool(raw.get("missing")),
        refused=str(raw.get("refused") or ""),
        exhausted=bool(raw.get("exhausted")),
        not_started=bool(raw.get("not_started")),
        truncated=bool(raw.get("truncated")),
        unkillable=bool(raw.get("unkillable")),
        lines=lines if isinstance(lines, int) else None,
        state=str(raw.get("state") or ""),
        wchan=str(raw.get("wchan") or ""),
    )
