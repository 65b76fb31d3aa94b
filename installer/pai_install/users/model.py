"""Users and their names in the cluster. Pure."""

from __future__ import annotations

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


def unknown_groups(names: Collection[str], known: Collection[str]) -> tuple[str, ...]:
    """Those names that are no group, each once, in their order."""
    return tuple(name for name in dict.fromkeys(names) if name not in known)
