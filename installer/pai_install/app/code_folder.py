"""A folder of this host -> the code of a job. Ignore files count, and nothing outside the folder gets in."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from pai_install.documents.problem import printable
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.code import MAX_ARCHIVE, CodeArchive
from pai_install.jobs.code_archive import CodeFile, archive_of, leaves

MAX_FILES, MAX_CONTENT = 10_000, 64 * 1024 * 1024
_MAX_IGNORE = 256 * 1024
_DOCKER = ".dockerignore"
_ANYWHERE = (".gitignore", ".paiignore")
# never code, whatever the ignore files say
_LEFT_OUT = frozenset((".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints"))
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Rules:
    """Ignore files of a folder and its parents. base: the folder, relative to the code."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def within(self, base: str, folder: Path, *, top: bool) -> _Rules:
        """The rules with the ignore files of a folder."""
        lines = [line for name in _ANYWHERE for line in _lines(folder / name)]
        if top:
            lines = [*map(_from_docker, _lines(folder / _DOCKER)), *lines]
        return _Rules((*self.specs, (base, GitIgnoreSpec.from_lines(lines)))) if lines else self

    def ignores(self, path: str) -> bool:
        """Whether a path is left out. The last rule that names it counts. A folder ends with '/'."""
        for base, spec in reversed(self.specs):
            found = spec.check_file(path.removeprefix(base)).include
            if found is not None:
                return found
        return False


@dataclass
class _Packing:
    root: Path
    files: int = 0
    size: int = 0
    sizes: list[tuple[int, str]] = field(default_factory=list)

    def read(self, path: Path, name: str) -> CodeFile:
        """Reads a file or a link. Raises PaiError for a large folder, and for anything else."""
        self.files += 1
        if self.files > MAX_FILES:
            raise _refused(self.root, f"it has more than {MAX_FILES} files", _EXCLUDE)
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return CodeFile(name, link=_inside(self.root, path, name))
        if not stat.S_ISREG(found.st_mode):
            raise _refused(self.root, f"{printable(name)} is not a file", "remove it, or name it in .paiignore")
        return CodeFile(name, self._content(path, name), runs=bool(found.st_mode & 0o111))

    def _content(self, path: Path, name: str) -> bytes:
        with path.open("rb") as file:
            content = file.read(MAX_CONTENT - self.size + 1)
        self.size += len(content)
        self.sizes.append((len(content), name))
        if self.size > MAX_CONTENT:
            raise _refused(
                self.root, f"its files have more than {MAX_CONTENT // 1024**2} MiB", _EXCLUDE, self.largest()
            )
        return content

    def largest(self) -> str:
        """The largest files, for a person who has to leave some out."""
        found = sorted(self.sizes, reverse=True)[:_MOST_SHOWN]
        return "\n".join(f"{size // 1024} KiB {printable(name)}" for size, name in found)


_EXCLUDE = "name data in .paiignore, put it on a storage, and mount the storage"


def pack_folder(root: Path) -> CodeArchive:
    """The code in a folder. Raises PaiError for a folder that is too large, or has what cannot be packed."""
    if not root.is_dir():
        raise _refused(root, "it is no folder", "name the folder with your code")
    packing = _Packing(root)
    try:
        code = archive_of(packing.read(path, name) for path, name in _files(root, "", _Rules()))
    except OSError as error:
        raise _refused(root, error.strerror or str(error), "make its files readable") from error
    if not packing.files:
        raise _refused(root, "it has no files", "check its ignore files")
    size = len(code.content)
    if size > MAX_ARCHIVE:
        cause = f"its archive has {size // 1024} KiB, and {MAX_ARCHIVE // 1024} KiB are the most"
        raise _refused(root, cause, _EXCLUDE, packing.largest())
    return code


def _files(folder: Path, base: str, rules: _Rules) -> Iterator[tuple[Path, str]]:
    """Yields files and links with their names in the archive, in one order on every host."""
    rules = rules.within(base, folder, top=not base)
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        name = f"{base}{entry.name}"
        below = entry.is_dir(follow_symlinks=False)
        if entry.name in _LEFT_OUT or rules.ignores(f"{name}/" if below else name):
            continue
        if below:
            yield from _files(Path(entry.path), f"{name}/", rules)
        else:
            yield Path(entry.path), name


def _inside(root: Path, link: Path, name: str) -> str:
    """Where a link leads. Raises PaiError for a place outside of the folder."""
    target = str(link.readlink())
    if leaves(name, target):
        raise _refused(root, f"the link {printable(name)} leaves the folder", "remove it, or name it in .paiignore")
    return target


def _lines(path: Path) -> Sequence[str]:
    """The rules of an ignore file, without comments. None of a file that is a link."""
    if path.is_symlink() or not path.is_file():
        return ()
    with path.open("rb") as file:
        content = file.read(_MAX_IGNORE + 1)
    if len(content) > _MAX_IGNORE:
        raise _refused(path.parent, f"{path.name} has more than {_MAX_IGNORE // 1024} KiB", "write fewer rules")
    return [line for line in content.decode(errors="replace").splitlines() if line.strip() and line[0] != "#"]


def _from_docker(line: str) -> str:
    """A rule of Docker, whose paths begin at the folder, as one of git."""
    mark, rule = ("!", line[1:]) if line.startswith("!") else ("", line)
    return f"{mark}/{rule.strip().removeprefix('./').lstrip('/')}"


def _refused(root: Path, cause: str, remedy: str, details: str = "") -> PaiError:
    return PaiError(
        f"cannot pack {printable(str(root))}: {cause}",
        code="code-not-packed",
        remedy=remedy,
        details=details,
        exit_code=ExitCode.USAGE,
    )
