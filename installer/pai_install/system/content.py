"""Where the playbooks, roles and add-ons are: in the checkout, or inside the installed package."""

from __future__ import annotations

from pathlib import Path

import pai_install
from pai_install.errors import ExitCode, PaiError


def content_dir() -> Path:
    """The folder with playbooks/, roles/, addons/ and ansible.cfg.

    Raises PaiError when the installation is incomplete.
    """
    package = Path(pai_install.__file__).resolve().parent
    for candidate in (package / "content", package.parent.parent):
        if (candidate / "playbooks").is_dir() and (candidate / "ansible.cfg").is_file():
            return candidate
    raise PaiError(
        f"cannot find the playbooks beside {package}",
        code="content-missing",
        remedy="reinstall pai-install",
        exit_code=ExitCode.INTERNAL,
    )


def program() -> str:
    """The command as a user types it: the script of the checkout, or the installed program."""
    return "./pai-install" if in_checkout() else "pai-install"


def in_checkout() -> bool:
    """Whether the program runs from the repository. An installed package is read-only."""
    return (content_dir() / "pyproject.toml").is_file()
