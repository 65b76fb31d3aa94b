"""Names of jobs and roles as Kubernetes takes them, and why one cannot be taken. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

# the longest label of a host name
MAX_LABEL = 63
# what is added to a role's name for the name of a pod: -0-INDEX-abcde
_POD_SUFFIX = len("-0-") + len("-abcde")
_JOB = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_ROLE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def kubernetes_name(name: str) -> str:
    """The name of the objects of a job or role: lower case, with '-' for '_', '.' and '~'."""
    return re.sub(r"[_.~]", "-", name.lower())


def unfit_job_name(name: str) -> str:
    """A name that would do in place of a job's; empty where the name itself does."""
    return "" if _JOB.fullmatch(kubernetes_name(name)) else _fitting(name, "job")


def unfit_role_name(name: str) -> str:
    """A name that would do in place of a role's; empty where the name itself does."""
    return "" if _ROLE.fullmatch(kubernetes_name(name)) else _fitting(name, "role").replace("-", "_")


def _fitting(name: str, otherwise: str) -> str:
    """The nearest name that begins with a letter and ends with a letter or digit."""
    word = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not word:
        return otherwise
    return word if word[0].isalpha() else f"{otherwise}-{word}"


def too_long(job: str, roles: Iterable[tuple[str, int]]) -> str:
    """The job's name as short as the name of every pod fits; empty where it does. roles: name and instances."""
    longest = max((len(role) + len(str(max(0, count - 1))) for role, count in roles), default=0)
    # The name of a pod becomes the name of its host, which is one label of DNS.
    room = MAX_LABEL - len("-") - longest - _POD_SUFFIX
    name = kubernetes_name(job)
    return "" if len(name) <= room else name[: max(room, 0)].rstrip("-") or "-"
