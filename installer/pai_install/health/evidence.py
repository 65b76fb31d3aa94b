"""The evidence document of one machine as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_install.errors import ExitCode, PaiError

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What became of one command. rc is None when it did not end: missing, timed out or never started.

    state: the process state (D means stuck in the kernel) of one that timed out. lines: of a kernel log, how many it
    had before it was filtered; None when that was not collected.
    """

    rc: int | None = None
    stdout: str = ""
    stderr: str = ""
    duration_s: float = 0.0
    timed_out: bool = False
    missing: bool = False
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
class Evidence:
    """Everything that was collected on one machine.

    files: path -> content. facts: name -> value of the collector's readers that succeeded; `broken` names the others.
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


def parse_evidence(machine: str, document: Mapping[str, Any]) -> Evidence:
    """The typed form of the collector's JSON; unknown keys are ignored.

    Raises PaiError when it is not such a document or of a newer schema.
    """
    version = document.get("schema_version")
    if not isinstance(version, int) or not 1 <= version <= SCHEMA_VERSION:
        raise PaiError(
            f"{machine}: the evidence has schema_version {version!r}, this program reads up to {SCHEMA_VERSION}",
            remedy="collect again, or use a newer pai-install",
            exit_code=ExitCode.USAGE,
        )
    facts = document.get("facts") or {}
    return Evidence(
        machine=machine,
        collected_at=float(document.get("collected_at") or 0),
        boot_id=str(document.get("boot_id") or ""),
        uptime_s=float(document.get("uptime_s") or 0),
        duration_s=float(document.get("duration_s") or 0),
        redacted=bool(document.get("redacted")),
        commands={name: _command(raw) for name, raw in (document.get("commands") or {}).items()},
        files={str(path): str(text) for path, text in (document.get("files") or {}).items()},
        facts={name: raw.get("value") for name, raw in facts.items() if raw.get("ok")},
        broken=frozenset(name for name, raw in facts.items() if not raw.get("ok")),
    )


def _command(raw: Mapping[str, Any]) -> CommandResult:
    rc, lines = raw.get("rc"), raw.get("lines")
    return CommandResult(
        rc=rc if isinstance(rc, int) else None,
        stdout=str(raw.get("stdout") or ""),
        stderr=str(raw.get("stderr") or ""),
        duration_s=float(raw.get("duration_s") or 0),
        timed_out=bool(raw.get("timed_out")),
        missing=bool(raw.get("missing")),
        not_started=bool(raw.get("not_started")),
        truncated=bool(raw.get("truncated")),
        unkillable=bool(raw.get("unkillable")),
        lines=lines if isinstance(lines, int) else None,
        state=str(raw.get("state") or ""),
        wchan=str(raw.get("wchan") or ""),
    )
