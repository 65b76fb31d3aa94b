"""Waits for a control plane that restarts: a run that was killed leaves kubeadm at work there."""

from __future__ import annotations

import time
from collections.abc import Callable

from pai_install.cluster.client import ApiError, ClusterClient, NoClusterError

_TIMEOUT_S, _POLL_S = 180.0, 5.0


def await_cluster(cluster: ClusterClient, say: Callable[[str], None], *, timeout_s: float = _TIMEOUT_S) -> None:
    """Returns once a control plane is ready, or after timeout_s seconds: the next question then says what is wrong."""
    deadline, told = time.monotonic() + timeout_s, False
    while not _ready(cluster) and time.monotonic() < deadline:
        if not told:
            say("no control plane is ready yet: what the interrupted run began may still restart one; waiting")
            told = True
        time.sleep(_POLL_S)


def _ready(cluster: ClusterClient) -> bool:
    try:
        cluster.raw("/readyz")
    except (NoClusterError, ApiError):
        return False
    return True
