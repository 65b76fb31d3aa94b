"""Output to a reader that closes early, such as `head` behind a pipe, or a terminal."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

# A pipe without a reader returns EPIPE, and a closed terminal EIO.
_LOST = (errno.EPIPE, errno.EIO)


class _Losing(io.FileIO):
    """Writes to a file descriptor until its reader is gone, and from then on nowhere."""

    def write(self, data: object) -> int:
        try:
            return super().write(data) or 0  # type: ignore[arg-type]  # whatever the buffer hands over
        except OSError as error:
            if not lost(error):
                raise
            return len(memoryview(data))  # type: ignore[arg-type]


@contextmanager
def output_may_be_lost() -> Iterator[None]:
    """Inside the block, output to a closed reader is discarded without an error.

    For work that must finish with or without a reader. Streams that are not files stay unchanged.
    """
    before = sys.stdout, sys.stderr
    made = [_enduring(stream) for stream in before]
    sys.stdout, sys.stderr = (new or old for new, old in zip(made, before, strict=True))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in made:
            if stream is not None:
                stream.flush()


def forget(stream: TextIO) -> None:
    """Lets everything that is written to a stream without a reader, now and at the end, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def lost(error: OSError) -> bool:
    """Whether the error says that the reader of the output is gone."""
    return error.errno in _LOST and error.filename is None  # a file's EIO is a broken disk


def _enduring(stream: TextIO) -> TextIO | None:
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):  # a test's, or closed
        return None
    try:
        stream.flush()
    except OSError as error:
        if not lost(error):
            raise
        forget(stream)
    raw = io.BufferedWriter(_Losing(descriptor, "wb", closefd=False))
    return io.TextIOWrapper(raw, encoding=stream.encoding, errors=stream.errors, line_buffering=True)
