"""The users of a cluster, as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field, WithJsonSchema

from pai_install.json_schema import Count, Report, ReportObject
from pai_install.report.table import table
from pai_install.users.model import User

_HEAD = ("NAME", "GROUPS", "ADMINISTRATOR", "ACCESS UNTIL", "KUBECONFIGS")
_NONE = "this cluster has no users: pai-install user add NAME --group GROUP\n"
_Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


class UserRow(ReportObject):
    """A user."""

    name: str
    groups: tuple[str, ...] = Field(description="Groups as the site named them when the user was added.")
    admin: bool = Field(description="Whether the user sees and stops the jobs of all users.")
    until: _Time | None = Field(description="End of the last valid kubeconfig. null: no valid kubeconfig.")
    kubeconfigs: Count = Field(description="Number of valid kubeconfigs.")
    ended: _Time | None = Field(exclude=True)


class UsersReport(Report, title="pai-install user list"):
    """The users of the cluster."""

    users: tuple[UserRow, ...]


def users_report(users: Sequence[User], now: datetime) -> UsersReport:
    """The users at a time."""
    return UsersReport(users=tuple(_row(user, now) for user in users))


def _row(user: User, now: datetime) -> UserRow:
    until = user.until(now)
    return UserRow(
        name=user.name,
        groups=user.groups,
        admin=user.admin,
        until=time_text(until) if until else None,
        kubeconfigs=sum(last > now for last in user.kubeconfigs),
        ended=time_text(user.kubeconfigs[-1]) if user.kubeconfigs else None,
    )


def users_text(report: UsersReport) -> str:
    """A table with a line for each user."""
    return table([_HEAD, *map(_cells, report.users)]) if report.users else _NONE


def _cells(user: UserRow) -> tuple[str, ...]:
    until = user.until or (f"ended {user.ended}" if user.ended else "no kubeconfig yet")
    groups = ", ".join(user.groups) or "none"
    return user.name, groups, "yes" if user.admin else "no", until, str(user.kubeconfigs)


def time_text(time: datetime) -> str:
    """A time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
