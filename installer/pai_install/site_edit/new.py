"""Writes the files of a new site."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.site.load import CONFIG, SERVICES
from pai_install.system.files import write_atomic, write_secret

# both may hold passwords
_PRIVATE = frozenset({CONFIG, SERVICES})


def write_new_site(folder: Path, files: Mapping[str, str]) -> tuple[Path, ...]:
    """Returns the paths of the written files.

    Raises PaiError (usage) where one of them exists, or where the folder cannot be made.
    """
    # All files are checked before the first one is written, so that no half of a site remains.
    for name in files:
        if (folder / name).exists():
            raise _refused(
                "new-site-exists", f"cannot write {folder / name}: the file exists", "name an empty folder with --site"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refused(
            "new-site-folder-unwritable",
            f"cannot create the folder {folder}: {error.strerror}",
            "name a folder of a writable disk with --site",
        ) from error
    for name, content in files.items():
        (write_secret if name in _PRIVATE else write_atomic)(folder / name, content)
    return tuple(folder / name for name in files)


def _refused(code: str, message: str, remedy: str) -> PaiError:
    return PaiError(message, code=code, remedy=remedy, exit_code=ExitCode.USAGE)
