"""The virtual clusters that the cluster was given last."""

from __future__ import annotations

from pai_install.cluster.client import ClusterClient
from pai_install.kube.model import Ref
from pai_install.schedulers.last_applied import KEPT, KEPT_IN, kept_of
from pai_install.scheduling.model import Scheduling


def last_applied(cluster: ClusterClient) -> Scheduling | None:
    """Returns the last applied virtual clusters, or None. Raises NoClusterError and ApiError."""
    (found,) = cluster.get([Ref("configmap", KEPT, KEPT_IN)])
    return kept_of(found)
