"""What a name means for `logs`: a node, a service, a pod, or a job.

Names of the site count first, then the system's pods, then those of members. So no member can hide a log of the site
behind a job of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from pai_install.app.context import App
from pai_install.app.jobs import open_job_directory, recorded_output
from pai_install.app.log_sources import (
    SERVICES,
    UNITS,
    LogService,
    LogSource,
    Window,
    machines_of,
    pod_source,
    service_source,
)
from pai_install.app.stored_logs import has_store, stored_logs, stored_source
from pai_install.cluster.client import Select
from pai_install.cluster.read import WORKLOADS
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.state import PODS
from pai_install.kube.model import Pod, Ref
from pai_install.kube.objects import JsonObject, child, rows, text, words
from pai_install.kube.workloads import Selector
from pai_install.monitoring.log_store import StoredLog
from pai_install.site.groups import USER_LABEL, groups_of

KINDS = ("node", "service", "pod", "job")
_ADDON = "pai-install/addon"
_CONTAINERS = ("initContainers", "containers")


def sources_of(app: App, target: str, hosts: Sequence[str], window: Window) -> tuple[LogSource, ...]:
    """The logs that the target means. hosts: only of these machines, all if empty.

    Raises PaiError for an unknown or ambiguous target, and as the cluster client.
    """
    kind, slash, name = target.partition("/")
    if not slash or kind not in KINDS:
        kind, name = "", target
    found = _of_site(app, kind, name, hosts, window)
    if not found and kind in ("", "service", "pod"):
        found = _of_pods(app, kind, name, hosts, window)
    if not found and kind in ("", "job") and app.profile.scheduling is not None:
        try:
            return _of_job(app, name, window)
        except PaiError as error:
            # A pod that is gone may still have lines in the store.
            if error.code != "unknown-job":
                raise
    if not found and kind in ("", "pod") and has_store(app):
        found = _of_gone_pods(app, name, window)
    if not found:
        known = [*SERVICES, *(machine.hostname for machine in app.site.machines)]
        raise PaiError(
            f"cannot find a node, service, pod, or job {name}",
            code="unknown-log-target",
            remedy=did_you_mean(name, known),
            exit_code=ExitCode.USAGE,
        )
    return found


def _of_site(app: App, kind: str, name: str, hosts: Sequence[str], window: Window) -> tuple[LogSource, ...]:
    node = next((it for it in app.site.present_machines if it.hostname == name), None)
    service = SERVICES.get(name)
    if node is not None and service is not None and not kind:
        raise ambiguous(name, (f"node/{name}", f"service/{name}"))
    if node is not None and kind in ("", "node"):
        return (service_source(app.machines, name, LogService("all", UNITS), window),)
    if service is None or kind not in ("", "service"):
        return ()
    chosen = [it.hostname for it in machines_of(app.site, service.where) if not hosts or it.hostname in hosts]
    return tuple(service_source(app.machines, host, service, window) for host in chosen)


def _of_pods(app: App, kind: str, name: str, hosts: Sequence[str], window: Window) -> tuple[LogSource, ...]:
    items, workloads = app.cluster.list(Select((PODS,)), Select(WORKLOADS, labels=_ADDON))
    groups = {group.namespace for group in groups_of(app.site.services)}
    of_cluster = [it for it in items if _space(it) not in groups and USER_LABEL not in _labels(it)]
    if kind != "pod":
        selected = _pods_of_workloads(name, of_cluster, workloads)
        if selected:
            return _sources(app, selected, hosts, window)
    if kind != "service":
        for pods in (of_cluster, [it for it in items if it not in of_cluster]):
            named = [it for it in pods if name in (_name(it), f"{_space(it)}/{_name(it)}")]
            if len(named) > 1:
                raise ambiguous(name, [f"pod/{_space(it)}/{_name(it)}" for it in named])
            # Without a namespace, a name never means the pod of a member.
            if named and (kind == "pod" or pods is of_cluster or "/" in name):
                return _sources(app, named, hosts, window)
    return ()


def _pods_of_workloads(
    name: str, pods: Iterable[JsonObject], workloads: Iterable[JsonObject]
) -> tuple[JsonObject, ...]:
    """The pods of an add-on, or of one of its Deployments, DaemonSets, and StatefulSets."""
    same = name.replace("-", "_")
    matching = [it for it in workloads if name == _name(it) or same == _labels(it).get(_ADDON, "").replace("-", "_")]
    selectors = [(_space(it), Selector.parse(child(it, "spec", "selector"))) for it in matching]
    return tuple(
        pod
        for pod in pods
        if any(
            _space(pod) == space and selector.labels and selector.matches(_labels(pod)) for space, selector in selectors
        )
    )


def _sources(app: App, items: Iterable[JsonObject], hosts: Sequence[str], window: Window) -> tuple[LogSource, ...]:
    """A log per container."""
    found = []
    for item in items:
        pod, containers = Pod.parse(item), [it for kind in _CONTAINERS for it in rows(child(item, "spec").get(kind))]
        names = [text(it.get("name")) for it in containers]
        for name in names if not hosts or pod.node in hosts else ():
            label = pod.name if len(names) == 1 else f"{pod.name}/{name}"
            found.append(pod_source(app.cluster, pod.ref, window, label, name))
    return tuple(found)


def _of_gone_pods(app: App, name: str, window: Window) -> tuple[LogSource, ...]:
    """The logs of pods that the store has, one per container. Raises PaiError for pods of several namespaces."""
    found = stored_logs(app, name)
    spaces = list(dict.fromkeys(it.namespace for it in found))
    if len(spaces) > 1:
        raise ambiguous(name, [f"pod/{space}/{found[0].pod}" for space in spaces])
    several = len({it.container for it in found}) > 1
    return tuple(stored_source(app, it, window, f"{it.pod}/{it.container}" if several else it.pod) for it in found)


def _of_job(app: App, name: str, window: Window) -> tuple[LogSource, ...]:
    """The instances of a job, deleted ones with their recorded lines. Raises PaiError for no job and for several."""
    jobs = open_job_directory(app)
    group, slash, own = name.partition("/")
    known = {it.name for it in app.profile.groups}
    job, record = jobs.find(own, group) if slash and group in known else jobs.find(name, "")
    kept = recorded_output(jobs.client, record) if record is not None and any(it.gone for it in job.instances) else {}

    def recorded(pod: str) -> Sequence[str]:
        lines = kept.get(pod, "").splitlines()
        return lines[-window.lines :] if window.lines else lines

    def source(pod: str, label: str, *, gone: bool) -> LogSource:
        if gone and has_store(app):
            return stored_source(app, StoredLog(job.namespace, pod), window, label, partial(recorded, pod))
        if gone:
            return LogSource(label, lambda: iter(recorded(pod)))
        return pod_source(jobs.client, Ref("pod", pod, job.namespace), window, label)

    if not job.instances:
        app.notify(f"{job.name} has no pods: {job.state}{f', {job.why}' if job.why else ''}")
    return tuple(source(it.pod, f"{it.role}-{it.index}", gone=it.gone) for it in job.instances)


def ambiguous(name: str, choices: Sequence[str]) -> PaiError:
    """The error for a name with several meanings."""
    return PaiError(
        f"cannot choose a target: {name} means {', '.join(choices)}",
        code="ambiguous-log-target",
        remedy=f"name one of them, for example {choices[0]}",
        exit_code=ExitCode.USAGE,
    )


def _name(item: JsonObject) -> str:
    return text(child(item, "metadata").get("name"))


def _space(item: JsonObject) -> str:
    return text(child(item, "metadata").get("namespace"))


def _labels(item: JsonObject) -> dict[str, str]:
    return dict(words(child(item, "metadata").get("labels")))
