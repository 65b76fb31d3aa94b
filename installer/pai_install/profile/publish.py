"""The ConfigMap that keeps the profile in the cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pai_install.kube.objects import child, text
from pai_install.profile.model import ClusterProfile, PublishedProfile
from pai_install.scheduling.model import Scheduling

PROFILE, PROFILE_NAMESPACE = "pai-install-profile", "kube-system"
_KEY = "profile.json"


def profile_object(profile: ClusterProfile) -> dict[str, Any]:
    """The ConfigMap. The virtual clusters are in another one, which a rollback restores."""
    content = profile.model_dump_json(exclude={"scheduling"})
    metadata = {"name": PROFILE, "namespace": PROFILE_NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: content}}


def published_profile(found: Mapping[str, Any] | None, scheduling: Scheduling | None) -> ClusterProfile | None:
    """The profile in the ConfigMap, with the virtual clusters that the cluster was given last.

    None for a missing or invalid ConfigMap.
    """
    try:
        published = PublishedProfile.model_validate_json(text(child(found or {}, "data").get(_KEY)))
    except ValidationError:
        return None
    fields = {name: getattr(published, name) for name in PublishedProfile.model_fields}
    return ClusterProfile(scheduling=scheduling, **fields)
