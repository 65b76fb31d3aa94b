"""Rules of scheduler.topology: each level once, and a label that tells machines apart."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.documents.problem import YamlPath
from pai_install.site.model import Site
from pai_install.site.rules.problems import Wrong
from pai_install.site.services.virtual_clusters import LevelEntry, Scheduler
from pai_install.system.words import plural, shortened

# every site has this level: the machine itself
HOST_LABEL = "kubernetes.io/hostname"
_HOST_NAMES = ("machine", "host", "node")


def of_topology(site: Site, scheduler: Scheduler) -> Iterator[Wrong]:
    """Yields problems of the levels."""
    first: dict[str, int] = {}
    for number, level in enumerate(scheduler.topology):
        path: YamlPath = ("scheduler", "topology", number)
        yield from _twice(path, level, number, first)
        if level.label == HOST_LABEL or level.name in _HOST_NAMES:
            key = "label" if level.label == HOST_LABEL else "name"
            message = f"{level.label if key == 'label' else level.name} is the machine itself, always the last level"
            yield Wrong((*path, key), "topology-host", message, "remove this level")
        else:
            yield from _lacking(site, (*path, "label"), level)
    if scheduler.topology and scheduler.type == "default":
        message = "has no effect: Kubernetes' own scheduler knows no topology of jobs"
        yield Wrong(("scheduler", "topology"), "no-effect", message, "remove it, or choose kueue", "warning")


def _twice(path: YamlPath, level: LevelEntry, number: int, first: dict[str, int]) -> Iterator[Wrong]:
    for key, value in (("name", level.name), ("label", level.label)):
        earlier = first.setdefault(f"{key} {value}", number)
        if earlier != number:
            remedy = f"remove one of them: the first is scheduler.topology[{earlier}]"
            yield Wrong((*path, key), "twice", f"{value} is a level already", remedy)


def _lacking(site: Site, path: YamlPath, level: LevelEntry) -> Iterator[Wrong]:
    workers = [machine for machine in site.machines if machine.worker]
    lacking = [machine.hostname for machine in workers if not machine.labels.get(level.label)]
    if not workers or not lacking:
        return
    remedy = f"add labels: {{{level.label}: ...}} to machines of layout.yaml, unless something else labels the nodes"
    if len(lacking) == len(workers):
        yield Wrong(path, "topology-label", f"no worker of layout.yaml has the label {level.label}", remedy, "warning")
        return
    message = f"{plural(len(lacking), 'worker')} lack the label {level.label} in layout.yaml: {shortened(lacking, 3)}"
    yield Wrong(path, "topology-label", message, remedy, "warning")
