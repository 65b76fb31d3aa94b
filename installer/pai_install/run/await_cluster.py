"""Waits for a control plane that restarts: a run that was killed leaves kubeadm at work there."""

from __future__ import annotations

import time
from collections.abc import Callable

from pai_install.cluster.client import ApiError, ClusterClient, NoClusterError

_TIMEOUT_S, _POLL_S = 180.0, 5.0


def await_cluster(cluster: ClusterClient, notify: Callable[[str], None], *, timeout_s: float = _TIMEOUT_S) -> None:
    """Waits until a control-plane node is ready, for at most timeout_s seconds. The next request reports the error."""
    deadline, notified = time.monotonic() + timeout_s, False
    while not _ready(cluster) and time.monotonic() < deadline:
        if not notified:
            notify("no control plane is ready yet: what the interrupted run began may still restart one; waiting")
            notified = True
        time.sleep(_POLL_S)


def _ready(cluster: ClusterClient) -> bool:
    try:
        cluster.raw("/readyz")
    except (NoClusterError, ApiError):
        return False
    return True
