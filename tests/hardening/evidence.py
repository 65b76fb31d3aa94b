"""Runs on a machine, as root: what the checks of controls.yml need to see there, as JSON.

Standard library only. Standard input: lists of file patterns (`files`), of paths to read (`texts`), of names of running
programs (`programs`), and of paths to ask the API server for (`anonymous`).
"""

from __future__ import annotations

import json
import ssl
import stat
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


def matching(pattern: str) -> list[Path]:
    """The files and folders of an absolute pattern."""
    return sorted(Path("/").glob(pattern.lstrip("/")))


def seen(path: Path) -> dict[str, str]:
    """Path, mode and owner of a file or folder; of a symbolic link, those of what it leads to."""
    mode = f"{stat.S_IMODE(path.stat().st_mode):o}"
    return {"path": str(path), "mode": mode, "owner": f"{path.owner()}:{path.group()}"}


def text_of(path: Path) -> str:
    """A file's text; empty when there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def arguments(program: str) -> list[str]:
    """The command line of the process of that name, without the name; empty when none runs."""
    for path in matching("/proc/[0-9]*/cmdline"):
        words = text_of(path).split("\0")
        if Path(words[0]).name == program:
            return words[1:]
    return []


def answer(path: str) -> int:
    """The status with which this machine's API server answers a request without credentials."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen("https://127.0.0.1:6443" + path, context=context, timeout=10) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def main() -> None:
    """Prints the evidence."""
    wanted: dict[str, Any] = json.load(sys.stdin)
    evidence = {
        "files": {pattern: [seen(path) for path in matching(pattern)] for pattern in wanted["files"]},
        "texts": {path: text_of(Path(path)) for path in wanted["texts"]},
        "programs": {program: arguments(program) for program in wanted["programs"]},
        "anonymous": {path: answer(path) for path in wanted["anonymous"]},
    }
    json.dump(evidence, sys.stdout)


if __name__ == "__main__":
    main()
