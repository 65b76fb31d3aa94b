"""Where the playbooks and roles are: in the checkout, or inside the installed package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pai_install
from pai_install.engine.uses import ACTIONS, FILTERS, LIBRARY, UTILS, files_of_role, read_plugins
from pai_install.errors import ExitCode, PaiError


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
    """Role -> a short digest of all it runs with: its files, and the modules and filters that its tasks use.

    Another digest means another version of the role.
    """
    contents = dict(_contents(content))
    texts = {path: data.decode(errors="replace") for path, data in contents.items()}
    plugins = read_plugins(texts)
    roles = sorted(path.name for path in (content / "roles").iterdir() if path.is_dir())
    return {role: digest({path: contents[path] for path in files_of_role(role, texts, plugins)}) for role in roles}


def digest(contents: Mapping[str, bytes]) -> str:
    """Twelve hexadecimal digits for files (path -> content)."""
    total = hashlib.sha256()
    for path, content in sorted(contents.items()):
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
