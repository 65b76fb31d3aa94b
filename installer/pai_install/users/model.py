"""Users and their names in the cluster. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from pai_install.site.groups import GROUP_LABEL, USER_LABEL

# where accounts of users are; a name beginning with pai- can be no group's
NAMESPACE = "pai-users"
# the user that a job, a pod or a ConfigMap belongs to
OWNER = USER_LABEL
# on a binding, as an annotation: the group, as the site writes it
GROUP = GROUP_LABEL
# on the mark of a kubeconfig: until when it lasts
EXPIRES = "pai-install/expires"
MEMBER, ADMIN = "pai-member", "pai-admin"
# group that `job submit` impersonates beside a user: it has the rights of members, and no one else is in it
SUBMITTERS = "pai-install:submitters"
ACCOUNT_PREFIX = f"system:serviceaccount:{NAMESPACE}:"

# of a user's name, for Python and for CEL
NAME_PATTERN = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAME = re.compile(NAME_PATTERN)
# what a label may hold, as the name is one
MAX_NAME = 63


@dataclass(frozen=True, slots=True)
class User:
    """A user in the cluster.

    groups: of the user, as the site writes them. admin: whether the user sees and stops all jobs.
    kubeconfigs: expiry of each issued and not revoked kubeconfig, in ascending order.
    """

    name: str
    groups: tuple[str, ...] = ()
    admin: bool = False
    kubeconfigs: tuple[datetime, ...] = ()

    def until(self, now: datetime) -> datetime | None:
        """Returns the end of the user's access, or None without access now."""
        last = max(self.kubeconfigs, default=None)
        return last if last is not None and last > now else None


def why_no_name(name: str) -> str:
    """Returns the reason why a user cannot have the name, or ""."""
    if len(name) > MAX_NAME:
        return f"has {len(name)} characters, and a name {MAX_NAME} at most"
    return "" if _NAME.fullmatch(name) else "has more than lower-case letters, digits, and '-' between them"


def user_name(word: str) -> str:
    """The name of a user of OpenPAI as accounts have it, without '_', '.', and upper-case letters, as with groups."""
    return word.lower().replace("_", "-").replace(".", "-")


def near_name(name: str) -> str:
    """Returns the most similar name, or ""."""
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_NAME].strip("-")
    return found if not why_no_name(found) else ""


def unknown_groups(names: Collection[str], known: Collection[str]) -> tuple[str, ...]:
    """Those names that are no group, each once, in their order."""
    return tuple(name for name in dict.fromkeys(names) if name not in known)
