"""Reads a file to a Document. An unreadable file adds a problem and never raises."""

from __future__ import annotations

from pathlib import Path

from pai_install.documents.document import Document, Mark
from pai_install.documents.parse import parse_document, split_lines
from pai_install.documents.problem import printable

MAX_BYTES = 16 * 1024 * 1024
# the files that only sites of these versions of OpenPAI have
_OLD_SITES = {"v1.0 to v1.4": ("master.csv", "worker.csv"), "v0.x": ("cluster-configuration.yaml", "quick-start.yaml")}


def read_document(path: Path, *, top: str = "a mapping", last_wins: bool = False) -> Document:
    """Reads a YAML file. `top` describes the content of the file for messages.

    last_wins: the last of duplicate keys wins, as in OpenPAI, without an error. See Document.overruled.

    A missing, irregular, or too large file, or one that is not UTF-8 or YAML, leaves `root` None and adds a problem.
    """
    document = Document(printable(str(path)), path.parent)
    text = read_text_file(path, document)
    if text is not None:
        parse_document(text, document, top=top, last_wins=last_wins)
    return document


def read_text_file(path: Path, document: Document) -> str | None:
    """Returns the text of a regular file of limited size, or None with a problem for any other file."""
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "does not exist"
            document.add((), "site.no-file", what, _missing_remedy(path) if document.of == "site" else "")
            return None
        if path.stat().st_size > MAX_BYTES:
            message = f"is larger than {MAX_BYTES // 1024 // 1024} MiB, the limit for a file of a {document.of}"
            document.add((), "site.file-size", message, "is it the right file?")
            return None
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        document.add((), "site.no-file", f"cannot be read: {reason}")
        return None
    return _decode(data, document)


def _missing_remedy(path: Path) -> str:
    """Suggests an existing alternative: another spelling, or an old site of OpenPAI."""
    other = path.with_suffix(".yml")
    if other.is_file():
        return f"rename {other.name} to {path.name}"
    for version, names in _OLD_SITES.items():
        if any((path.parent / name).is_file() for name in names):
            return f"run pai-install migrate OLD --site NEW to convert this site of OpenPAI {version}"
    return "run pai-install init to create a site, or name the folder of your site with --site"


def _decode(data: bytes, document: Document) -> str | None:
    try:
        # Editors on Windows write a byte order mark first. YAML's parser would take it for a part of the first key.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Editors on Windows also write UTF-16. Its mark allows a precise remedy instead of "not UTF-8".
        wide = data[:2] in {b"\xff\xfe", b"\xfe\xff"}
        document.lines = split_lines(data.decode(errors="replace"))
        before = split_lines(data[: error.start].decode(errors="replace"))
        mark = Mark(len(before), len(before[-1]) + 1)
        document.add(
            (),
            "site.encoding",
            f"is not UTF-8 text (byte 0x{data[error.start]:02x})",
            f"save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 {document.file}" if wide else "save it as UTF-8",
            mark=mark,
        )
        return None
