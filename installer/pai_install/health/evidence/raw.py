"""The raw evidence of a machine as text for people: each command with its output, each file with its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pai_install.health.evidence.document import CommandResult, HealthEvidence, parse_evidence
from pai_install.system.files import write_atomic
from pai_install.system.words import spoken_time

_LONGEST_NAME = 200


def raw_name(machine: str) -> str:
    """Returns the file name of a machine. No machine name leads outside the folder, or is too long for a disk."""
    name = quote(machine, safe="")
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(machine.encode(errors='surrogatepass')).hexdigest()[:12]}"
    return f"{name}.txt"


def write_raw(folder: Path, machine: str, document: Mapping[str, Any]) -> Path:
    """Writes one machine's file, for its owner's eyes only: evidence names serial numbers, processes and mounts."""
    path = folder / raw_name(machine)
    write_atomic(path, "\n".join(_lines(parse_evidence(machine, document))) + "\n", mode=0o600)
    return path


def _lines(evidence: HealthEvidence) -> Iterator[str]:
    yield f"{evidence.machine}, {spoken_time(evidence.collected_at)}, collected in {evidence.duration_s:.1f} s"
    for name, result in evidence.commands.items():
        yield from ("", f"$ {name}: {_end(result)}")
        yield from _indented(result.stdout)
        if result.stderr.strip():
            yield from ("  on standard error:", *_indented(result.stderr))
    for path, text in evidence.files.items():
        yield from ("", path, *_indented(text))
    for name, value in evidence.facts.items():
        yield from ("", f"# {name}", *_indented(json.dumps(value, indent=1, ensure_ascii=False)))
    for name in sorted(evidence.broken):
        yield from ("", f"# {name}: this reader broke")


def _end(result: CommandResult) -> str:
    """How a command ended."""
    cut = ", its output was cut" if result.truncated else ""
    if result.missing:
        return "there is no such program"
    if result.refused:
        return f"the kernel did not start it: {result.refused}"
    if result.not_started:
        return "not started"
    if result.timed_out:
        return (
            f"no end within {result.duration_s:.0f} s, state {result.state or 'unknown'} {result.wchan}".rstrip() + cut
        )
    return f"ended with {result.rc} after {result.duration_s:.1f} s{cut}"


def _indented(text: str) -> Iterator[str]:
    yield from (f"  {line}" for line in text.splitlines())
