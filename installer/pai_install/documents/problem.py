"""Problems of a site with their places: one value per finding with file:line:column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pai_install.errors import ExitCode, PaiError

Severity = Literal["error", "warning"]
# How a value is addressed inside a file: keys are str, positions in a list are int (from 0).
YamlPath = tuple[str | int, ...]
_WORD = re.compile(r"\S+")
_IMAGE_DIGEST = "sha256:"


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding. line and column count from 1. path: such as "machine-list[3].hostip" ("" for the file)."""

    file: str
    line: int
    column: int
    path: str
    severity: Severity
    code: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}: "
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"

    @property
    def is_error(self) -> bool:
        """Whether the site cannot be used with it."""
        return self.severity == "error"

    def as_json(self) -> dict[str, Any]:
        """The published JSON form: one key per field."""
        return asdict(self)


_CORRECT = "correct the lines above. Run `pai-install validate --annotate` to show them in the files"


class SiteInvalid(PaiError):  # noqa: N818 - reads as what it is; other rooms catch it by this name
    """The site is invalid. `problems`: every error and warning of all its files, in file order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        errors = [problem for problem in problems if problem.is_error]
        count = "an error" if len(errors) == 1 else f"{len(errors)} errors"
        super().__init__(
            f"the site has {count}",
            code="site-invalid",
            details="\n".join(text_lines(errors)),
            # a missing file has no line to correct, and its own remedy stands above
            remedy="" if all(problem.code == "site.no-file" for problem in errors) else _CORRECT,
            exit_code=ExitCode.SITE_INVALID,
        )
        self.problems = tuple(problems)


def text_lines(problems: Iterable[Problem]) -> Iterable[str]:
    """Yields each problem as one line, followed by its remedy on a line of its own."""
    for problem in problems:
        yield str(problem) if problem.is_error else f"{problem} (warning)"
        if problem.remedy:
            yield f"    {problem.remedy}"


def dotted(path: YamlPath) -> str:
    """("machine-list", 3, "hostip") -> "machine-list[3].hostip"."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{short(part)}" if text else short(part)
    return text


def printable(text: str) -> str:
    """The text as it may be shown: control and half characters as '?', logins in web addresses as stars."""
    if "@" in text:
        text = _WORD.sub(lambda match: without_login(match[0]), text)
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def without_login(value: str) -> str:
    """Returns a value with stars in place of possible credentials before its '@', also without http:// in front.

    A mail address (no ':' before the '@') and the digest of an image are no credentials.
    """
    head, at, tail = value.rpartition("@")
    if not at or ":" not in head or tail.startswith(_IMAGE_DIGEST):
        return value
    scheme, slashes, _ = head.partition("//")
    opening = head[: len(head) - len(head.lstrip("\"'([{<"))]
    return f"{scheme}//********@{tail}" if slashes else f"{opening}********@{tail}"


def short(text: str) -> str:
    """The text as it is named in a message: on one line, 60 characters at most."""
    shown = printable(without_login(text)[:500])
    return shown if len(shown) <= 60 else shown[:57] + "..."
