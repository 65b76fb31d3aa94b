"""Users as the cluster has them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.users.model import EXPIRES, GROUP, NAMESPACE, OWNER, User


@dataclass(frozen=True, slots=True)
class UserObjects:
    """All objects of users: accounts, marks of kubeconfigs, memberships, administrations."""

    accounts: Sequence[JsonObject] = ()
    marks: Sequence[JsonObject] = ()
    memberships: Sequence[JsonObject] = ()
    administrations: Sequence[JsonObject] = ()

    def of(self, user: str) -> UserObjects:
        """Those of one user."""
        kept = (
            [one for one in objects if user_of(one) == user]
            for objects in (self.accounts, self.marks, self.memberships, self.administrations)
        )
        return UserObjects(*kept)

    @property
    def users(self) -> tuple[User, ...]:
        """All users that have an account, by name."""
        return tuple(self.of(name).user(name) for name in sorted(map(user_of, self.accounts)))

    def user(self, name: str) -> User:
        """Returns the user with these objects."""
        return User(
            name,
            tuple(sorted(group_of(one) for one in self.memberships if effective(one, name))),
            any(effective(one, name) for one in self.administrations),
            tuple(sorted(until for one in self.marks if (until := expiry(one)) is not None)),
        )


def effective(binding: JsonObject, user: str) -> bool:
    """Whether the binding applies to the user's account and has no manual changes."""
    subjects = rows(binding.get("subjects"))
    return any((one.get("name"), one.get("namespace")) == (user, NAMESPACE) for one in subjects)


def user_of(item: JsonObject) -> str:
    """Returns the owner of an object."""
    return text(child(item, "metadata", "labels").get(OWNER))


def group_of(membership: JsonObject) -> str:
    """The group that a user is a member of, as the site wrote it."""
    return text(child(membership, "metadata", "annotations").get(GROUP))


def namespace_of(item: JsonObject) -> str:
    """Where it is."""
    return text(child(item, "metadata").get("namespace"))


def name_of(item: JsonObject) -> str:
    """How it is called."""
    return text(child(item, "metadata").get("name"))


def expiry(mark: JsonObject) -> datetime | None:
    """Returns the expiry of a kubeconfig, or None for an unfinished one or an invalid time."""
    return read_time(text(child(mark, "metadata", "annotations").get(EXPIRES)))


def read_time(word: str) -> datetime | None:
    """Returns a time in the format of Kubernetes, or None for any other text."""
    try:
        found = datetime.fromisoformat(word)
    except ValueError:
        return None
    # Times with and without a zone cannot be compared, and one bad annotation must not end a list.
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def over(marks: Sequence[JsonObject], now: datetime) -> Iterator[JsonObject]:
    """Yields marks of expired and of unfinished kubeconfigs."""
    for one in marks:
        until = expiry(one)
        if until is None or until <= now:
            yield one
