"""Evidence on its way and on disk: the collector's packed output, and one JSON line per machine in a file."""

from __future__ import annotations

import base64
import binascii
import errno
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pai_install.errors import ExitCode, PaiError
from pai_install.health.evidence.document import parse_evidence
from pai_install.system.files import require_regular, write_atomic
from pai_install.system.plain import plain_json

LONGEST = 64 << 20  # bytes of one machine's document; real ones have up to 2 MB
MOST_LINES = 100_000


def unpack(text: str) -> dict[str, Any]:
    """The document in the collector's output, packed or plain.

    Raises PaiError when it is neither.
    """
    body = text.strip()
    try:
        if not body.startswith("{"):
            body = _inflated(base64.b64decode(body, validate=True)).decode()
        document = plain_json(body)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise PaiError(
            "cannot read the output of the collector", code="collector-output-unreadable", details=text[:400]
        ) from error
    if not isinstance(document, dict):
        raise PaiError(
            "cannot read the output of the collector: it is not a document",
            code="collector-output-not-a-document",
            details=text[:400],
        )
    return document


def _inflated(data: bytes) -> bytes:
    """Decompresses gzip data. Raises ValueError if it is truncated or longer than any collector's output."""
    packed = zlib.decompressobj(wbits=31)
    found = packed.decompress(data, LONGEST)
    if not packed.eof:
        raise ValueError("cut off, or too long")
    return found


def save(path: Path, documents: Iterable[tuple[str, Mapping[str, Any]]]) -> int:
    """Writes one JSON line per machine, compressed if the name ends with .gz. Returns the number of machines.

    Only the owner can read the file: evidence has serial numbers, processes, and mounts.
    """
    lines = [json.dumps({"machine": machine, "evidence": document}) for machine, document in documents]
    content = ("\n".join(lines) + "\n").encode()
    write_atomic(path, gzip.compress(content, 6) if path.suffix == ".gz" else content, mode=0o600)
    return len(lines)


def load(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (machine, document) of a file from `save`, or of one collector's output.

    Raises PaiError if the file is unreadable or a line is no such record.
    """
    try:
        for number, line in _lines(path):
            yield _record(f"{path}:{number}", line)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise PaiError(f"cannot read {path}: {error}", code="evidence-unreadable", exit_code=ExitCode.USAGE) from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields number and text of each line. Raises OSError for a file that is no evidence by its kind or size."""
    require_regular(path)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as handle:
        for number in range(1, MOST_LINES + 1):
            # A compressed file of a few bytes can be one endless line.
            line = handle.readline(LONGEST + 1)
            if len(line) > LONGEST:
                raise OSError(errno.EFBIG, f"line {number} is longer than {LONGEST >> 20} MiB")
            if not line:
                return
            if line.strip():
                yield number, line
    raise OSError(errno.EFBIG, f"it has more than {MOST_LINES} lines")


def _record(where: str, line: str) -> tuple[str, dict[str, Any]]:
    try:
        raw = plain_json(line)
        machine, document = (raw["machine"], raw["evidence"]) if "evidence" in raw else (raw["hostname"], raw)
        parse_evidence(str(machine), document)
        return str(machine), document
    except PaiError as error:
        raise PaiError(
            f"{where}: {error.message}", code=error.code, remedy=error.remedy, exit_code=ExitCode.USAGE
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PaiError(
            f"cannot read {where}: it is not a line of evidence",
            code="evidence-line-invalid",
            remedy="use a file of pai-install health --save",
            exit_code=ExitCode.USAGE,
        ) from error
