"""Which version of a role, and so of a part, this is: a digest of all that runs for it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pai_install.parts.addon import AddonPart
from pai_install.parts.part import Part
from pai_install.parts.registry import PARTS

_SHARED = ("library", "module_utils", "filter_plugins", "action_plugins")
# Documentation and tests of a role: machines never see them.
_NOT_RUN = {".pyc", ".md"}
_TESTS = {"molecule", "tests"}


def role_digests(content: Path) -> dict[str, str]:
    """Role -> a short digest of all that runs, modules and filters included; another one means another version."""
    shared = [content / "playbooks" / name for name in _SHARED]
    roles = sorted(path for path in (content / "roles").iterdir() if path.is_dir())
    return {role.name: _digest([role, *shared]) for role in roles}


def part_digests(content: Path) -> dict[str, str]:
    """Part -> a short digest of all that runs for it: its role, and for an add-on its folder, too."""
    roles = role_digests(content)
    return {part.name: _part_digest(part, roles[part.role], content / "addons") for part in PARTS}


def _part_digest(part: Part, role: str, addons: Path) -> str:
    if not isinstance(part, AddonPart):
        return role
    return hashlib.sha256(f"{role} {_digest([addons / part.addon])}".encode()).hexdigest()[:12]


def _digest(folders: Sequence[Path]) -> str:
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and _runs(path.relative_to(folder))):
            content = path.read_bytes()
            total.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode())
            total.update(content)
    return total.hexdigest()[:12]


def _runs(path: Path) -> bool:
    return path.suffix not in _NOT_RUN and path.parts[0] not in _TESTS
