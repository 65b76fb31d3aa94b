"""Writes a site as YAML text with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from pai_install.site.document import Document
from pai_install.site.migrate.model import NewMachine, NewSite, NewSku, Note
from pai_install.site.problem import printable

_SAFE = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*|[0-9]+(\.[0-9]+){3}(/[0-9]+)?|[1-9][0-9]{0,8}([KMGT]i)?")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


def scalar(text: str) -> str:
    """The text as a YAML scalar, in quotes where it could be read as something else."""
    if _SAFE.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)


def comment(text: str, indent: int = 0) -> str:
    """The text as one line of comment."""
    return f"{' ' * indent}# {printable(text)}"


def layout_text(site: NewSite) -> str:
    """layout.yaml: a head with what was dropped, machine types, machines."""
    lines = [comment(f"Migrated from {site.origin} by pai-install migrate.")]
    if site.notes:
        lines += ["#", comment("Dropped or changed:"), *_notes(site.notes)]
    lines += ["", "machine-sku:"]
    for sku in site.skus:
        lines += _sku(sku)
    lines += ["", "machine-list:"]
    for machine in site.machines:
        lines += _machine(machine)
    return "\n".join(lines) + "\n"


def _notes(notes: tuple[Note, ...]) -> Iterator[str]:
    for note in notes:
        yield comment(f"- {note.what}: {note.why}")


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
    if machine.ssh or machine.password_variable:
        yield "    ssh:"
        yield from (f"      {key}: {scalar(value)}" for key, value in machine.ssh.items())
    if machine.password_variable:
        yield "      password-from:"
        yield f"        env: {machine.password_variable}"


def settings_text(settings: Mapping[str, tuple[str, str]]) -> str:
    """config.yaml from key -> (value, comment or "")."""
    lines: list[str] = []
    for key, (value, why) in settings.items():
        lines += [comment(why)] if why else []
        lines.append(f"{key}: {scalar(value)}")
    return "\n".join(lines) + "\n"


def without_keys(document: Document, dropped: Mapping[str, str]) -> str:
    """The file with the top-level entries named in `dropped` turned into comments: key -> why.

    Everything else, comments included, stays as it was written.
    """
    starts = sorted((document.marks[(key,)].line, key) for key in document.content)
    ends = [line for line, _ in starts[1:]] + [len(document.lines) + 1]
    lines = list(document.lines)
    for (start, key), end in zip(starts, ends, strict=True):
        if key not in dropped:
            continue
        body = range(start - 1, min(end - 1, len(lines)))
        used = [index for index in body if lines[index].strip() and not lines[index].lstrip().startswith("#")]
        for index in used:
            lines[index] = comment(lines[index])
        lines[start - 1] = comment(f"dropped: {dropped[key]}") + "\n" + lines[start - 1]
    return "\n".join(lines).rstrip("\n") + "\n"
