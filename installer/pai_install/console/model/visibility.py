"""Namespaces whose jobs a caller may list, as the API server says. Kept for a minute."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock

from pai_install.cluster.client import ClusterClient
from pai_install.console.caller import Caller, Clients
from pai_install.kube.objects import child
from pai_install.scheduling.job_kinds import JobKind

KEPT_S = 60.0
# of a new caller: rights of a new member may reach the API server after the console
FIRST_S = 5.0
_MOST = 10_000


def may(client: ClusterClient, verb: str, kind: JobKind, namespace: str = "") -> bool:
    """Whether the client's identity may do this in a namespace, "" for all."""
    attributes = {"verb": verb, "group": kind.group, "resource": kind.resource, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    (answer,) = client.create([review])
    return child(answer, "status").get("allowed") is True


@dataclass
class Visibility:
    """Answers of the API server, by caller."""

    clients: Clients
    clock: Callable[[], float] = time.monotonic
    _kept: dict[str, tuple[float, frozenset[str] | None]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def namespaces(self, caller: Caller, kind: JobKind, among: Iterable[str]) -> frozenset[str] | None:
        """Namespaces whose jobs of a kind the caller may list, None for all namespaces. Raises PaiError."""
        key, now = _key(caller), self.clock()
        with self._lock:
            until, found = self._kept.get(key, (0.0, None))
        if until > now:
            return found
        client = self.clients.of(caller)
        found = None if may(client, "list", kind) else frozenset(it for it in among if may(client, "list", kind, it))
        with self._lock:
            if len(self._kept) >= _MOST:
                self._kept.clear()
            self._kept[key] = (now + (KEPT_S if key in self._kept else FIRST_S), found)
        return found


def _key(caller: Caller) -> str:
    """Callers of one name may have other groups in another token. A caller who left a group is another one."""
    who = (caller.kind, caller.name, caller.uid, hashlib.sha256(caller.bearer.encode()).hexdigest())
    return "\n".join((*who, str(caller.admin), *caller.groups))
