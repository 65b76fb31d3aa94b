"""The users of a cluster: as data, as text, and the schema of the data. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pai_install.json_schema import closed_object, published
from pai_install.report.storages import table
from pai_install.users.model import User

USERS_SCHEMA_VERSION = 1
_HEAD = ("NAME", "GROUPS", "ADMINISTRATOR", "ACCESS UNTIL", "KUBECONFIGS")
_NONE = "this cluster has no users: pai-install user add NAME --group GROUP\n"


def users_data(users: Sequence[User], now: datetime) -> dict[str, Any]:
    """The published form."""
    return {"schema_version": USERS_SCHEMA_VERSION, "users": [_row(user, now) for user in users]}


def _row(user: User, now: datetime) -> dict[str, Any]:
    until = user.until(now)
    return {
        "name": user.name,
        "groups": list(user.groups),
        "admin": user.admin,
        "until": time_text(until) if until is not None else None,
        "kubeconfigs": sum(last > now for last in user.kubeconfigs),
    }


def users_text(users: Sequence[User], now: datetime) -> str:
    """A table with a line for each user."""
    return table([_HEAD, *(_cells(user, now) for user in users)]) if users else _NONE


def _cells(user: User, now: datetime) -> tuple[str, ...]:
    row = _row(user, now)
    ended = f"ended {time_text(user.kubeconfigs[-1])}" if user.kubeconfigs else "no kubeconfig yet"
    groups = ", ".join(user.groups) or "none"
    return user.name, groups, "yes" if user.admin else "no", row["until"] or ended, str(row["kubeconfigs"])


def time_text(time: datetime) -> str:
    """A time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def schema() -> dict[str, Any]:
    """The JSON Schema of `users_data`."""
    text: dict[str, Any] = {"type": "string"}
    one = closed_object(
        name=text,
        groups={"type": "array", "items": text, "description": "as the site wrote them when the user was added"},
        admin={"type": "boolean", "description": "true: sees and stops the jobs of all"},
        until={
            "anyOf": [{**text, "format": "date-time"}, {"type": "null"}],
            "description": "when its last kubeconfig ends; null: it has none that lasts",
        },
        kubeconfigs={"type": "integer", "minimum": 0, "description": "how many it has that last"},
    )
    return published(
        "pai-install user list",
        USERS_SCHEMA_VERSION,
        users={"type": "array", "items": one},
    )
