"""Writes a site as YAML text with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from pai_install.documents.document import Document, Text
from pai_install.documents.problem import printable
from pai_install.migrate.model import NewMachine, NewMachines, NewSku
from pai_install.system.plain import TURNING, escaped

_SAFE = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*|[0-9]+(\.[0-9]+){3}(/[0-9]+)?|[1-9][0-9]{0,8}([KMGT]i)?")
_PLAIN = re.compile(r"[A-Za-z0-9/][A-Za-z0-9_./+-]*")
_ESCAPED = re.compile(f"[\x7f-\x9f{TURNING}]")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


def scalar(text: str) -> str:
    """The text as a YAML scalar, in quotes where it could be read as something else."""
    # Quotes wherever YAML could read something else: `no` is false, and 010 is an octal number.
    if _SAFE.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    """Returns a double-quoted text. Line ends of YAML, and invalid or hidden characters, are escaped."""
    # JSON's strings are also YAML's, except for these characters, which YAML refuses or readers do not see.
    return _ESCAPED.sub(lambda found: escaped(found[0]), json.dumps(text, ensure_ascii=False))


def flow(value: object) -> str:
    """A value on one line of YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if not isinstance(value, Text):
        return "null"
    if value.vault:
        return f"!vault {_quoted(value)}"
    return str(value) if value.plain and _PLAIN.fullmatch(value) else _quoted(value)


def comment(text: str, indent: int = 0) -> str:
    """The text as one line of comment."""
    return f"{' ' * indent}# {printable(text)}"


def layout_text(machines: NewMachines, notes: Iterable[tuple[str, str]]) -> str:
    """Returns layout.yaml: a head with replaced and dropped entries, machine types, machines."""
    lines = [comment(f"Migrated from {machines.origin} by pai-install migrate; migrated.txt accounts for everything.")]
    comments = [comment(f"- {what}: {why}") for what, why in notes]
    lines += ["#", comment("Dropped or changed:"), *comments] if comments else []
    if machines.layout is not None:
        return "\n".join(lines) + "\n\n" + machines.layout
    lines += ["", "machine-sku:"]
    for sku in machines.skus:
        lines += _sku(sku)
    lines += ["", "machine-list:"]
    for machine in machines.machines:
        lines += _machine(machine)
    return "\n".join(lines) + "\n"


def _sku(sku: NewSku) -> Iterator[str]:
    yield f"  {scalar(sku.name)}:"
    if sku.comment:
        yield comment(sku.comment, 4)
    if sku.device is not None:
        yield "    computing-device:"
        yield f"      type: {scalar(sku.device.type)}"
        yield f"      model: {scalar(sku.device.model)}"
        yield f"      count: {scalar(sku.device.count)}"
    yield f"    mem: {scalar(sku.mem)}"
    yield "    cpu:"
    yield f"      vcore: {scalar(sku.vcore)}"


def _machine(machine: NewMachine) -> Iterator[str]:
    yield f"  - hostname: {scalar(machine.hostname)}"
    if machine.comment:
        yield comment(machine.comment, 4)
    yield f"    hostip: {scalar(machine.hostip)}"
    yield f"    machine-type: {scalar(machine.sku)}"
    if machine.control_plane:
        yield '    pai-master: "true"'
    if machine.worker:
        yield '    pai-worker: "true"'
    if machine.storage:
        yield '    pai-storage: "true"'
    if machine.ssh or machine.password_variable:
        yield "    ssh:"
        yield from (f"      {key}: {scalar(value)}" for key, value in machine.ssh.items())
    if machine.password_variable:
        yield "      password-from:"
        yield f"        env: {machine.password_variable}"


def without_keys(document: Document, dropped: Mapping[str, str]) -> str:
    """The file with the top-level entries named in `dropped` turned into comments: key -> why.

    Everything else, comments included, stays as it was written.
    """
    # OpenPAI took the last of two equal keys. pai-install refuses the second one, so the first becomes a comment.
    again = {mark.line: f"given again in line {by.line}" for path, mark, by in document.overruled if len(path) == 1}
    starts = [(document.marks[(key,)].line, key) for key in document.content]
    starts = sorted([*starts, *((line, "") for line in again)])
    ends = [line for line, _ in starts[1:]] + [len(document.lines) + 1]
    lines = list(document.lines)
    if not starts:
        return "\n".join(lines).rstrip("\n") + "\n"
    for (start, key), end in zip(starts, ends, strict=True):
        why = dropped.get(key) if key else again[start]
        if why is None:
            continue
        body = range(start - 1, min(end - 1, len(lines)))
        used = [index for index in body if lines[index].strip() and not lines[index].lstrip().startswith("#")]
        for index in used:
            lines[index] = comment(lines[index])
        lines[start - 1] = comment(f"dropped: {why}") + "\n" + lines[start - 1]
    return "\n".join(lines).rstrip("\n") + "\n"
