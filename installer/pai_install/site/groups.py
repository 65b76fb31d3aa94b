"""Groups of people and the namespaces that are theirs in the cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pai_install.documents.problem import YamlPath
from pai_install.site.services.authentication import Group, GroupManager
from pai_install.site.services.model import Services

_MANAGER: YamlPath = ("authentication", "group-manager")
# where a group would be among the system's own pods
_SYSTEM = ("kube-", "pai-")
_MAX_LENGTH = 63
# it is every cluster's, and its users are everyone
DEFAULT = "default"
# labels of what belongs to a user, and to a group as the site writes it
USER_LABEL = "pai-install/user"
GROUP_LABEL = "pai-install/group"
# label of a ConfigMap that says what became of a job; no user writes one
RECORD_LABEL = "pai-install/record"
# label of a ConfigMap that is a template of jobs, and the namespace of templates that all groups see
TEMPLATE_LABEL, TEMPLATES_NAMESPACE = "pai-install/template", "pai-templates"
# annotation of a job: who ended it, written before it is deleted
STOPPED_BY = "pai-install/stopped-by"


@dataclass(frozen=True, slots=True)
class PlacedGroup:
    """A group with a name, and where it stands in services-configuration.yaml."""

    name: str
    group: Group
    path: YamlPath

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return namespace_of(self.name)

    @property
    def storages(self) -> tuple[str, ...]:
        """Names of the storages that it may mount, each once, in the order of the file."""
        return tuple(dict.fromkeys(self.group.extension.acls.storage_configs))


def groups_of(services: Services) -> tuple[PlacedGroup, ...]:
    """Returns all named groups of a site: the administrators, everyone, the others in order, without duplicates."""
    authentication = services.authentication
    manager = authentication.group_manager if authentication is not None else None
    found: dict[str, PlacedGroup] = {}
    for path, group in _placed(manager) if manager is not None else ():
        if group.groupname:
            found.setdefault(group.groupname, PlacedGroup(group.groupname, group, (*_MANAGER, *path)))
    return tuple(found.values())


def administrates(group: PlacedGroup) -> bool:
    """Whether its members are administrators, who may submit to every virtual cluster."""
    return group.path == (*_MANAGER, "admin-group") or group.group.extension.acls.admin


def _placed(manager: GroupManager) -> Iterator[tuple[YamlPath, Group]]:
    if manager.admin_group is not None:
        yield ("admin-group",), manager.admin_group
    if manager.default_group is not None:
        yield ("default-group",), manager.default_group
    for number, group in enumerate(manager.grouplist):
        yield ("grouplist", number), group


def namespace_of(group: str) -> str:
    """A group's namespace: its name as Kubernetes takes it. OpenPAI's names have '_' and upper-case letters."""
    return group.lower().replace("_", "-").strip("-")


def unfit(namespace: str) -> str:
    """Returns why a namespace cannot belong to a group, or ""."""
    if not namespace:
        return "has neither a letter nor a digit"
    if len(namespace) > _MAX_LENGTH:
        return f"has {len(namespace)} characters, and a namespace {_MAX_LENGTH} at most"
    return "is a namespace of the system" if namespace.startswith(_SYSTEM) else ""
