"""Rules that hold for a job in each of OpenPAI's protocols. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath, short
from pai_install.documents.validate import did_you_mean
from pai_install.jobs.model import Job, Role
from pai_install.jobs.names import kubernetes_name, too_long, unfit_job_name, unfit_role_name
from pai_install.jobs.variable_names import own_variables, variable_names
from pai_install.system.words import plural

# more pods than a cluster of thousands of machines starts at once
MAX_INSTANCES = 10_000
MAX_ROLES = 100
# a name that ends with _ goes on with another variable's value
_VARIABLE = re.compile(r"\$\{?(PAI_[A-Za-z0-9_]*[A-Za-z0-9])(?![A-Za-z0-9_])")


def check_names(document: Document, path: YamlPath, name: str, roles: Mapping[str, YamlPath]) -> None:
    """Adds what Kubernetes does not take: names that no object may have, and two that would become one."""
    instead = unfit_job_name(name)
    if instead:
        message = f"{short(name)} is no name for Kubernetes, which wants a letter first and no sign last"
        document.add(path, "site.kubernetes-name", message, f"write {short(instead)}")
    taken: dict[str, str] = {}
    for role, place in roles.items():
        instead = unfit_role_name(role)
        if instead:
            message = f"{short(role)} is no name for Kubernetes, which wants a letter or digit first and last"
            document.add(place, "site.kubernetes-name", message, f"write {short(instead)}")
        other = taken.setdefault(kubernetes_name(role), role)
        if other != role:
            message = f"Kubernetes sees no difference to {other}: both are {kubernetes_name(role)} there"
            document.add(place, "site.kubernetes-name", message, "give it another name")


def check_roles(document: Document, path: YamlPath, name: str, roles: Sequence[Role]) -> None:
    """Adds what is wrong with all roles together."""
    if len(roles) > MAX_ROLES:
        document.add(path, "site.count", f"the job has {len(roles)} roles, and {MAX_ROLES} are the most", "")
    count = sum(role.instances for role in roles)
    if count > MAX_INSTANCES:
        document.add(path, "site.count", f"the job has {count} instances, and {MAX_INSTANCES} are the most", "")
    instead = too_long(name, [(role.name, role.instances) for role in roles])
    if instead == "-":
        message = "the names of its roles are too long: names of pods have 63 characters at most"
        document.add(path, "site.kubernetes-name", message, "shorten the roles' names")
    elif instead:
        message = "is too long: with a role's name behind it, names of pods have more than 63 characters"
        document.add(path, "site.kubernetes-name", message, f"write {instead}, or shorten the roles' names")


def check_endings(document: Document, path: YamlPath, instances: int, **endings: int | None) -> None:
    """Warns of more instances than there are. OpenPAI accepts such files: then all instances count."""
    for key, count in endings.items():
        if count is not None and count > instances:
            message = f"{count} is more than the {plural(instances, 'instance')} there are: all of them count"
            remedy = f"write {instances} at most"
            document.add((*path, key), "site.contradiction", message, remedy, severity="warning")


def failed_ending(count: int | None, instances: int) -> int | None:
    """Failed instances that end a role; None where none do, as with more than there are."""
    return count if count is not None and count <= instances else None


def succeeded_ending(count: int | None, instances: int) -> int:
    """Succeeded instances that end a role: all, unless the file says fewer."""
    return min(count or instances, instances)


def check_variables(document: Document, job: Job, roles: Mapping[str, YamlPath]) -> None:
    """Warns of variables of OpenPAI's in commands that no container will see. roles: where each has its commands."""
    known = set(variable_names(job))
    for role in job.roles:
        own = known | set(own_variables(role))
        for name in dict.fromkeys(_VARIABLE.findall(role.command)):
            if name not in own and not re.search(rf"(?<![A-Za-z0-9_]){name}=", role.command):
                message = f"{short(name)} will have no value"
                usual = [one for one in own if not one[-1].isdigit()]
                remedy = did_you_mean(name, usual) or "`pai-install job validate` lists those that have one"
                document.add(roles[role.name], "site.variable", message, remedy, severity="warning")
