"""What a job's objects are called, checked before anything is made. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.names import kubernetes_name
from pai_install.scheduling.job_queue import CLUSTER_LABEL
from pai_install.site.groups import GROUP_LABEL, USER_LABEL
from pai_install.site.groups import STOPPED_BY as STOPPED_BY_NOTE

if TYPE_CHECKING:  # verbs that read take the names alone
    from pai_install.jobs.model import Job, Role

# those of a directory have a '.', and the owner of `job submit` may be anybody
_MEMBER = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
# a label of DNS, a host's name among them
MOST = 63
_DOMAIN = "svc.cluster.local"

JOB = "pai-install/job"
ROLE = "pai-install/role"
USER = USER_LABEL
GROUP = GROUP_LABEL
CLUSTER = CLUSTER_LABEL
# annotations: names as the user wrote them
JOB_NAME = "pai-install/job-name"
ROLES = "pai-install/roles"
PRIORITY = "pai-install/priority"
# annotations: who ended a job, and why; written before it is deleted
STOPPED_BY = STOPPED_BY_NOTE
STOPPED_WHY = "pai-install/stopped-why"
# annotation: the digest of the code
CODE = "pai-install/code"
# annotation: the storage with the code, and its size
CODE_PLACE = "pai-install/code-place"
# annotation: words of users about a job, {"tags": [WORD]}
TAGS = "pai-install/tags"


@dataclass(frozen=True, slots=True)
class JobNames:
    """A job's and its roles' names as Kubernetes has them. roles: by the name that the user gave.

    host: a pattern of `job`, `role` and `index`, which is what the pods are called and found by.
    """

    job: str
    roles: Mapping[str, str]
    namespace: str
    host: str

    def host_of(self, role: Role, index: int) -> str:
        """The full name by which the others find an instance, whether it runs already or not."""
        short = self.host.format(job=self.job, role=self.roles[role.name], index=index)
        return f"{short}.{self.job}.{self.namespace}.{_DOMAIN}"

    def secret(self, role: Role, owner: str, use: str) -> str:
        """The name of a Secret of a role. Policies permit members Secrets whose names begin with their own."""
        name = f"{self.job}-{self.roles[role.name]}-{use}"
        return f"{owner}.{name}" if _MEMBER.fullmatch(owner) else name


def names_of(job: Job, namespace: str, host: str, suffix: int) -> JobNames:
    """The names of a job. suffix: characters that a controller adds to a pod's name after the host's.

    Raises PaiError for names that Kubernetes cannot take, with how long the job's may be.
    """
    roles = {role.name: kubernetes_name(role.name) for role in job.roles}
    for name, count in Counter(roles.values()).items():
        if count > 1:
            same = " and ".join(own for own, made in roles.items() if made == name)
            raise _invalid(
                "role-names-collide",
                f"cannot name the pods: roles {same} have the same name in Kubernetes: {name}",
                "rename one of them",
            )
    names = JobNames(kubernetes_name(job.name), roles, namespace, host)
    rest = max(_rest(names, role, suffix) for role in job.roles)
    if not names.job or len(names.job) + rest > MOST:
        role = max(job.roles, key=lambda one: _rest(names, one, suffix))
        raise _invalid(
            "job-name-too-long",
            f"cannot name the pods of {job.name!r}: the name has {len(names.job)} characters, and "
            f"with role {role.name} at most {max(MOST - rest, 0)} are possible",
            "shorten the name of the job or of the role",
        )
    return names


def _rest(names: JobNames, role: Role, suffix: int) -> int:
    longest = names.host.format(job="", role=names.roles[role.name], index=max(role.instances - 1, 0))
    return len(longest) + suffix


def _invalid(code: str, message: str, remedy: str) -> PaiError:
    return PaiError(message, code=code, remedy=remedy, exit_code=ExitCode.SITE_INVALID)
