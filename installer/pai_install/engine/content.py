"""Where the playbooks and roles are: in the checkout, or inside the installed package."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pai_install
from pai_install.errors import ExitCode, PaiError

_SHARED = ("library", "module_utils", "filter_plugins", "action_plugins")
# Documentation and tests of a role: machines never see them.
_NOT_RUN = {".pyc", ".md"}
_TESTS = "molecule"


def content_dir() -> Path:
    """The folder with playbooks/, roles/ and ansible.cfg.

    Raises PaiError when the installation is incomplete.
    """
    package = Path(pai_install.__file__).resolve().parent
    for candidate in (package / "content", package.parent.parent):
        if (candidate / "playbooks").is_dir() and (candidate / "ansible.cfg").is_file():
            return candidate
    raise PaiError(
        f"the playbooks are missing beside {package}",
        remedy="install pai-install again",
        exit_code=ExitCode.INTERNAL,
    )


def role_digests(content: Path) -> dict[str, str]:
    """Role -> a short digest of all that runs, modules and filters included; another one means another version."""
    shared = [content / "playbooks" / name for name in _SHARED]
    roles = sorted(path for path in (content / "roles").iterdir() if path.is_dir())
    return {role.name: _digest([role, *shared]) for role in roles}


def _digest(folders: Sequence[Path]) -> str:
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and _runs(path.relative_to(folder))):
            content = path.read_bytes()
            total.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode())
            total.update(content)
    return total.hexdigest()[:12]


def _runs(path: Path) -> bool:
    return path.suffix not in _NOT_RUN and path.parts[0] != _TESTS
