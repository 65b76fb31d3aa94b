"""The profile of the site, as `apply` published it in the cluster."""

from __future__ import annotations

from pai_install.cluster.client import ClusterClient
from pai_install.kube.model import Ref
from pai_install.profile.model import ClusterProfile
from pai_install.profile.publish import PROFILE, PROFILE_NAMESPACE, published_profile
from pai_install.schedulers.last_applied import KEPT, KEPT_IN, kept_of

REFS = (Ref("configmap", PROFILE, PROFILE_NAMESPACE), Ref("configmap", KEPT, KEPT_IN))


def read_profile(client: ClusterClient) -> ClusterProfile | None:
    """The published profile, None without one. Raises PaiError."""
    published, division = client.get(REFS)
    return published_profile(published, kept_of(division))
