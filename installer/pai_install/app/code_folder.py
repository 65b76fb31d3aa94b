"""A folder of this host -> the code of a job. Ignore files count, and nothing outside the folder gets in."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from pathspec import GitIgnoreSpec

from pai_install.documents.problem import printable
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.code_archive import CodeFile, PackedCode, leaves, pack

MAX_FILES = 100_000
_DEEPEST = 100
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
    max_mib: int
    files: int = 0
    size: int = 0
    sizes: list[tuple[int, str]] = field(default_factory=list)

    def read(self, path: Path, name: str) -> CodeFile:
        """Reads a file or a link. Raises PaiError for a large folder, and for anything else."""
        self.files += 1
        if self.files > MAX_FILES:
            raise _refused(self.root, f"it has more than {MAX_FILES} files", _EXCLUDE)
        # A link is packed as a link, so no content from outside of the folder gets in.
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return CodeFile(name, link=_inside(self.root, path, name))
        if not stat.S_ISREG(found.st_mode):
            raise _refused(self.root, f"{printable(name)} is not a file", "remove it, or name it in .paiignore")
        source, size = self._opened(path, name)
        return CodeFile(name, runs=bool(found.st_mode & 0o111), source=source, size=size)

    def _opened(self, path: Path, name: str) -> tuple[IO[bytes], int]:
        """A file and its size. Whoever reads it closes it."""
        source = path.open("rb")
        size = os.fstat(source.fileno()).st_size
        self.size += size
        self.sizes.append((size, name))
        if self.size > self.max_mib * 1024**2:
            source.close()
            raise _refused(self.root, f"its files have more than {self.max_mib} MiB", _EXCLUDE, self.largest())
        return source, size

    def largest(self) -> str:
        """The largest files, for a person who has to leave some out."""
        found = sorted(self.sizes, reverse=True)[:_MOST_SHOWN]
        return "\n".join(f"{size // 1024} KiB {printable(name)}" for size, name in found)


_EXCLUDE = "name data in .paiignore, put it on a storage, and mount the storage"


@contextmanager
def packed_folder(root: Path, max_mib: int) -> Iterator[PackedCode]:
    """Yields the code in a folder. Raises PaiError for a folder that is too large, or has what cannot be packed."""
    if not root.is_dir():
        raise _refused(root, "it is no folder", "name the folder with your code")
    packing = _Packing(root, max_mib)
    with tempfile.TemporaryFile(prefix="pai-code-") as file:
        try:
            packed = pack(file, (packing.read(path, name) for path, name in _files(root, "", _Rules())))
        except OSError as error:
            raise _refused(root, error.strerror or str(error), "make its files readable") from error
        if not packing.files:
            raise _refused(root, "it has no files", "check its ignore files")
        yield replace(packed, largest=packing.largest())


def _files(folder: Path, base: str, rules: _Rules) -> Iterator[tuple[Path, str]]:
    """Yields files and links with their names in the archive, in one order on every host."""
    if base.count("/") > _DEEPEST:
        # the folder is a part of the root: its name would fill the terminal
        raise _refused(folder.parents[_DEEPEST], f"it has folders deeper than {_DEEPEST}", _EXCLUDE)
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
