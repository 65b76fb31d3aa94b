"""Digests of roles and parts: over everything that runs for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pai_install.engine.uses import (
    ACTIONS,
    AGENTS,
    FILTERS,
    LIBRARY,
    UTILS,
    files_of_agents,
    files_of_role,
    read_plugins,
)
from pai_install.parts.addon import AddonPart
from pai_install.parts.part import Part
from pai_install.parts.registry import PARTS

SHARED = "shared"  # folder beside the add-ons


def role_digests(content: Path) -> dict[str, str]:
    """Role -> a short digest of all it runs with: its files, and the modules and filters that its tasks use.

    Another digest means another version of the role.
    """
    contents = dict(_contents(content))
    texts = _texts(contents)
    plugins = read_plugins(texts)
    roles = sorted(path.name for path in (content / "roles").iterdir() if path.is_dir())
    return {role: digest({path: contents[path] for path in files_of_role(role, texts, plugins)}) for role in roles}


def part_digests(content: Path) -> dict[str, str]:
    """Part -> a short digest of all that runs for it: its role, and for an add-on its folder, too."""
    roles, agents = role_digests(content), dict(_agents(content))
    return {part.name: _part_digest(part, roles[part.role], content / "addons", agents) for part in PARTS}


def _part_digest(part: Part, role: str, addons: Path, agents: Mapping[str, bytes]) -> str:
    if not isinstance(part, AddonPart):
        return role
    folder = addons / part.addon
    # Tests of an add-on never reach a machine, so they do not make it another version.
    paths = (path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0] != "tests")
    contents = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    contents |= _shared(_texts(contents).values(), addons)
    code = {path: agents[path] for path in files_of_agents(_texts(contents).values(), agents)}
    return digest({**contents, **code, "role": role.encode()})


def _shared(texts: Iterable[str], addons: Path) -> dict[str, bytes]:
    """Returns the shared templates in texts, including indirect ones."""
    templates = {f"{SHARED}/{path.name}": path.read_bytes() for path in (addons / SHARED).glob("*")}
    found: dict[str, bytes] = {}
    waiting = list(texts)
    while waiting:
        text = waiting.pop()
        new = {name: data for name, data in templates.items() if name in text and name not in found}
        found |= new
        waiting += _texts(new).values()
    return found


def _texts(contents: Mapping[str, bytes]) -> dict[str, str]:
    return {path: data.decode(errors="replace") for path, data in contents.items()}


def digest(contents: Mapping[str, bytes]) -> str:
    """Twelve hexadecimal digits for files (path -> content)."""
    total = hashlib.sha256()
    for path, content in sorted(contents.items()):
        # With its length, so that no content can pass for the name of the next file.
        total.update(f"{path}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()[:12]


def _contents(content: Path) -> Iterator[tuple[str, bytes]]:
    """Path below the folder -> bytes, of roles and plugins."""
    start = len(str(content)) + 1
    for folder in ("roles", LIBRARY, ACTIONS, FILTERS, UTILS):
        for path in (content / folder).rglob("*"):
            if path.suffix != ".pyc" and path.is_file():
                yield str(path)[start:], path.read_bytes()
    yield from _agents(content)


def _agents(content: Path) -> Iterator[tuple[str, bytes]]:
    """Path -> bytes, of agents: beside the content in a checkout, above it in an installed package."""
    for folder in (content / "installer" / "pai_install" / "agents", content.parent / "agents"):
        for path in folder.rglob("*.py"):
            yield f"{AGENTS}{path.relative_to(folder)}", path.read_bytes()
