"""A file of users: CSV of a directory, or JSON of OpenPAI's API. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from pai_install.agents.common.values import InvalidJsonError, parse
from pai_install.errors import ExitCode, PaiError
from pai_install.site.user_names import user_name, why_no_name
from pai_install.system.plain import plain_text

MAX_BYTES, MAX_USERS = 4 << 20, 10_000
# columns of CSV, and keys of OpenPAI's `GET /api/v2/users`
_NAME, _GROUPS = ("name", "username"), ("groups", "grouplist")


class ImportedUser(BaseModel):
    """A user of the file. groups: names as in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    groups: tuple[str, ...]


def parse_users(content: bytes) -> tuple[ImportedUser, ...]:
    """The users of a file, each once with all groups. Names get the form of accounts: `Team_A.lee` is `team-a-lee`.

    CSV has the header `name,groups`, with spaces or semicolons between groups. JSON is a list of objects with
    `username` and `grouplist`. Raises PaiError with all unusable rows.
    """
    if len(content) > MAX_BYTES:
        raise _unusable(f"it has more than {MAX_BYTES >> 20} MiB")
    text = _decoded(content)
    rows = list(_json_rows(content) if text.lstrip()[:1] == "[" else _csv_rows(text))
    if not rows:
        raise _unusable("it has no users")
    if len(rows) > MAX_USERS:
        raise _unusable(f"it has more than {MAX_USERS} users")
    found: dict[str, tuple[str, ...]] = {}
    problems = []
    for place, name, groups in rows:
        account = user_name(name)
        if why := why_no_name(account) or ("" if groups else "has no groups"):
            # All bad rows are told at once, so that an administrator corrects them together.
            problems.append(f"{place}: {plain_text(name)!r} {why}")
        found[account] = tuple(dict.fromkeys((*found.get(account, ()), *groups)))
    if problems:
        raise _unusable(f"{len(problems)} of {len(rows)} rows are invalid", "\n".join(problems[:50]))
    return tuple(ImportedUser(name=name, groups=groups) for name, groups in found.items())


_Row = tuple[str, str, tuple[str, ...]]


def _csv_rows(text: str) -> Iterator[_Row]:
    """Yields place, name, and groups of each row."""
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    try:
        columns = {str(one).strip().lower(): one for one in reader.fieldnames or ()}
        name, groups = (next((columns[key] for key in keys if key in columns), None) for keys in (_NAME, _GROUPS))
        if name is None or groups is None:
            raise _unusable("its first line does not name the columns `name` and `groups`")
        for row in reader:
            if any(value for value in row.values()):
                words = (row[groups] or "").replace(";", " ").split()
                yield f"line {reader.line_num}", (row[name] or "").strip(), tuple(words)
    except csv.Error as error:
        raise _unusable(f"line {reader.line_num}: {error}") from error


def _json_rows(content: bytes) -> Iterator[_Row]:
    try:
        document = parse(content, max_size=MAX_BYTES)
    except InvalidJsonError as error:
        raise _unusable(str(error)) from error
    for index, entry in enumerate(document if isinstance(document, list) else (), start=1):
        values: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
        name, groups = (next((values[key] for key in keys if key in values), None) for keys in (_NAME, _GROUPS))
        words = groups if isinstance(groups, list) else ()
        yield (
            f"user {index}",
            name if isinstance(name, str) else "",
            tuple(one for one in words if isinstance(one, str)),
        )


def _decoded(content: bytes) -> str:
    try:
        # Excel writes a byte order mark, which would become a part of the first column's name.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable("it is not UTF-8") from error


def _unusable(why: str, details: str = "") -> PaiError:
    return PaiError(
        f"cannot read the users: {why}",
        code="user-file-invalid",
        details=details,
        remedy="write CSV with the header `name,groups`, or export the users of OpenPAI's API as JSON",
        exit_code=ExitCode.USAGE,
    )
