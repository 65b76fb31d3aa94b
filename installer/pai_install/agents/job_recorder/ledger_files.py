"""Files of the ledger: one per month of UTC, appended to and kept for some months within a bound of bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pai_install.agents.common.ledger import FILE, MAX_LINE, SUFFIX

# bytes of all files together; the oldest go first
MAX_BYTES = 2 * 1024 * 1024 * 1024


@dataclass
class LedgerFiles:
    """Files in a folder. keep_months: complete months to keep. last: the month of the last append, "" before it."""

    folder: Path
    keep_months: int
    max_bytes: int = MAX_BYTES
    last: str = field(default="", init=False)

    def begins(self, now: float) -> bool:
        """Whether the next append begins another month than the last one."""
        return self.last not in ("", _month(now))

    def append(self, lines: Sequence[str], now: float) -> None:
        """Appends the lines, and returns when they are on the disk. Raises OSError."""
        self.last = _month(now)
        path = self.folder / f"{FILE}{self.last}{SUFFIX}"
        new = not path.exists()
        if new:
            self.prune(now)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            content = "".join(f"{line}\n" for line in lines).encode()
            size = os.fstat(handle).st_size
            if size + len(content) > self.max_bytes:
                raise OSError(f"{path} has {size} bytes, and at most {self.max_bytes} are allowed")
            # A power cut may leave half a line. The next one must not grow onto it and be lost, too.
            if size and os.pread(handle, 1, size - 1) != b"\n":
                content = b"\n" + content  # the last line was torn
            while content:
                # write may take only a part, as on a disk that fills up.
                content = content[os.write(handle, content) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        if new:
            # A new file is safe from a power cut only once its folder is on the disk.
            _sync(self.folder)

    def prune(self, now: float) -> None:
        """Deletes months that are too old, and the oldest ones beyond the bound of bytes. Raises OSError."""
        year, month = map(int, _month(now).split("-"))
        oldest = year * 12 + month - 1 - self.keep_months
        left = sum(path.stat().st_size for path in self.files())
        for path in self.files():
            year, month = map(int, path.name[len(FILE) : -len(SUFFIX)].split("-"))
            if year * 12 + month - 1 >= oldest and left <= self.max_bytes:
                return
            left -= path.stat().st_size
            path.unlink()

    def files(self) -> list[Path]:
        """The files, the oldest first."""
        return sorted(self.folder.glob(f"{FILE}[0-9][0-9][0-9][0-9]-[0-9][0-9]{SUFFIX}"))

    def lines(self, months: int) -> Iterator[str]:
        """The lines of the last files. Raises OSError."""
        for path in self.files()[-months:]:
            with path.open(encoding="utf-8", errors="replace") as handle:
                while line := handle.readline(MAX_LINE):
                    yield line


def _month(now: float) -> str:
    return time.strftime("%Y-%m", time.gmtime(now))


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
