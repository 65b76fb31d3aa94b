"""The state of virtual clusters in the cluster, as local work of a run, and the file of those to restore."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.cluster.client import ClusterClient
from pai_install.kube.model import Ref
from pai_install.run.actions import LocalWorker
from pai_install.schedulers.compile import objects_of
from pai_install.schedulers.last_applied import kept_in_text, kept_of, kept_text
from pai_install.schedulers.queue_status import ObjectStatus, findings, name_of, object_statuses, unsure
from pai_install.scheduling.model import Scheduling
from pai_install.system.files import write_atomic
from pai_install.system.state_file import MISSING, reading

_POLL_S = 1.0


def object_status_worker(cluster: ClusterClient, sleep: Callable[[float], None] = time.sleep) -> LocalWorker:
    """Returns the worker. It waits until the scheduler has reported every queue. sleep: for tests."""

    def work(hosts: Sequence[str], arguments: Mapping[str, Any]) -> tuple[Finding, ...]:
        del hosts
        scheduling = kept_of(arguments["kept"])
        assert scheduling is not None  # noqa: S101 - the operation has made it
        left = float(arguments["wait_s"])
        while unsure(found := read_object_statuses(cluster, scheduling)) and left > 0:
            sleep(_POLL_S)
            left -= _POLL_S
        return findings(found)

    return work


def read_object_statuses(cluster: ClusterClient, scheduling: Scheduling) -> tuple[ObjectStatus, ...]:
    """Returns the state of each object now. Raises NoClusterError and ApiError."""
    wanted = objects_of(scheduling)
    return object_statuses(wanted, cluster.get([Ref(*name_of(entry)) for entry in wanted]))


def read_good(path: Path) -> Scheduling | None:
    """Returns the virtual clusters in the file, or None if it is missing. Raises PaiError for a damaged one."""
    try:
        with reading(path, "remove it, then run pai-install vc apply"):
            found = kept_in_text(path.read_text(encoding="utf-8"))
            if found is None:
                raise ValueError
            return found
    except MISSING:
        return None


def write_good(path: Path, scheduling: Scheduling) -> None:
    """Writes the file, for the owner only."""
    write_atomic(path, kept_text(scheduling), mode=0o600)
