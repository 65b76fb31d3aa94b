"""Pods that use the storage of a rotation."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from pai_install.app.context import App
from pai_install.cluster.read import mounts
from pai_install.kube.model import Ref
from pai_install.report.storage import STORAGE_LABEL, Consumer, consumers_of, consumers_text
from pai_install.storage.compile import grants_of

_POLL_S = 3.0


def pods_of_old_generations(app: App, name: str, *, finished: bool = False) -> tuple[Consumer, ...]:
    """Returns pods of older generations, or of the newest if it is the only one. finished: ended pods instead."""
    site = app.reload()  # a group may have been granted it meanwhile
    state = site.rotations.get(name)
    old = {one.generation for one in state.older} if state and state.older else None
    grants = [grant for grant in grants_of(site) if grant.storage.name == name and grant.claimed]
    claims = [(grant.namespace, grant.claim) for grant in grants if old is None or grant.generation in old]
    found = mounts(app.cluster, [namespace for namespace, _claim in claims], f"{STORAGE_LABEL}={name}")
    return consumers_of(claims, found, finished=finished)


def notify_pods(app: App, pods: Collection[Consumer]) -> None:
    """Says which pods these are, and their nodes."""
    nodes = sorted({pod.node for pod in pods if pod.node})
    text = f"{consumers_text(pods)}on {', '.join(nodes) or 'no node yet'}" if pods else "no pod uses it now"
    app.notify(f"\n{text}\n")


def delete_pods(app: App, pods: Collection[Consumer]) -> None:
    """Deletes them one by one."""
    for pod in pods:
        app.cluster.delete([Ref("pod", pod.name, pod.namespace)])


def becomes_true(condition: Callable[[], bool], limit_s: float) -> bool:
    """Whether the condition holds before the time is over."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
