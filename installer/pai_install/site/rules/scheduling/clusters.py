"""Rules of virtual-clusters but for quotas: names, groups, pinned machines, priorities."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pai_install.documents.problem import YamlPath
from pai_install.documents.validate import did_you_mean, nearest
from pai_install.site.groups import groups_of
from pai_install.site.model import Machine, Site
from pai_install.site.rules.problems import Wrong
from pai_install.site.services.virtual_clusters import PRIORITY_NAMES, Scheduler, VirtualClusterEntry

_CLUSTERS = "virtual-clusters"
# queues that a scheduler has of its own
_TAKEN = {"volcano": ("root",)}


def of_clusters(site: Site, scheduler: Scheduler, clusters: tuple[VirtualClusterEntry, ...]) -> Iterator[Wrong]:
    """Yields problems of the virtual clusters."""
    yield from _names(scheduler, clusters)
    yield from _groups(site, clusters)
    yield from of_acls(site, [cluster.name for cluster in clusters])
    yield from _pins(site, clusters)
    yield from _priorities(clusters)
    for number, cluster in enumerate(clusters):
        if not cluster.quota and not cluster.pinned:
            message = f"{cluster.name} is guaranteed nothing: its jobs only run on what others leave idle"
            yield Wrong((_CLUSTERS, number, "name"), "no-quota", message, "add quota, or leave it so", "warning")


def of_acls(site: Site, names: Collection[str]) -> Iterator[Wrong]:
    """Yields missing virtual clusters in the grants of groups. OpenPAI accepted any name."""
    for group in groups_of(site.services):
        for number, name in enumerate(group.group.extension.acls.virtual_clusters):
            if name not in names:
                path = (*group.path, "extension", "acls", "virtualClusters", number)
                message = f"{name} is no virtual cluster of this site"
                yield Wrong(path, "unknown-cluster", message, did_you_mean(name, names) or "remove it", "warning")


def _names(scheduler: Scheduler, clusters: tuple[VirtualClusterEntry, ...]) -> Iterator[Wrong]:
    first: dict[str, int] = {}
    for number, cluster in enumerate(clusters):
        path: YamlPath = (_CLUSTERS, number, "name")
        earlier = first.setdefault(cluster.name, number)
        if earlier != number:
            remedy = f"rename it: {_CLUSTERS}[{earlier}] has the same name"
            yield Wrong(path, "twice", f"{cluster.name} is here a second time", remedy)
        if cluster.name in _TAKEN.get(scheduler.type, ()):
            message = f"{cluster.name} is a queue that {scheduler.type} has of its own"
            yield Wrong(path, "cluster-name", message, "give it another name")


def _groups(site: Site, clusters: tuple[VirtualClusterEntry, ...]) -> Iterator[Wrong]:
    known = frozenset(group.name for group in groups_of(site.services))
    for number, cluster in enumerate(clusters):
        for place, name in enumerate(cluster.groups):
            path = (_CLUSTERS, number, "groups", place)
            if name not in known:
                remedy = did_you_mean(name, known) if known else ""
                remedy = remedy or "define it in authentication.group-manager.grouplist"
                yield Wrong(path, "unknown-group", f"{name} is no group of this site", remedy)
            elif name in cluster.groups[:place]:
                yield Wrong(path, "twice", f"{name} is here a second time", "remove it", "warning")


def _pins(site: Site, clusters: tuple[VirtualClusterEntry, ...]) -> Iterator[Wrong]:
    machines = {machine.hostname: machine for machine in site.machines}
    holder: dict[str, str] = {}
    for number, cluster in enumerate(clusters):
        for place, name in enumerate(cluster.pinned):
            path = (_CLUSTERS, number, "pinned", place)
            yield from of_machine(path, name, machines.get(name), machines)
            earlier = holder.setdefault(name, cluster.name)
            if name in cluster.pinned[:place] or earlier != cluster.name:
                message = f"{name} is pinned to {earlier} already"
                yield Wrong(path, "pinned-twice", message, "pin it to one virtual cluster, once")


def of_machine(path: YamlPath, name: str, machine: Machine | None, known: Collection[str]) -> Iterator[Wrong]:
    """Yields problems of a machine for jobs. machine: None if the layout has no such name."""
    if machine is None:
        remedy = f"did you mean {near}?" if (near := nearest(name, known)) else "name a machine of layout.yaml"
        yield Wrong(path, "unknown-machine", f"{name} is no machine of layout.yaml", remedy)
    elif not machine.worker:
        message = f"{name} runs no jobs: it is no worker in layout.yaml"
        yield Wrong(path, "no-worker", message, "name a machine with pai-worker: true")
    elif machine.absent:
        message = f"{name} is absent: until it is back, there is that much less"
        yield Wrong(path, "absent-machine", message, "remove absent: true from layout.yaml when it is back", "warning")


def _priorities(clusters: tuple[VirtualClusterEntry, ...]) -> Iterator[Wrong]:
    for number, cluster in enumerate(clusters):
        usual, highest = cluster.priorities.usual, cluster.priorities.highest
        if usual is not None and PRIORITY_NAMES.index(usual) < PRIORITY_NAMES.index(highest):
            message = f"{usual} is above {highest}, the highest that its jobs may have"
            remedy = f"the order is {' > '.join(PRIORITY_NAMES)}"
            yield Wrong((_CLUSTERS, number, "priorities", "usual"), "priority", message, remedy)
