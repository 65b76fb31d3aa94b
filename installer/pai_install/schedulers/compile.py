"""The desired state of a site's virtual clusters, whatever scheduler keeps them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_install.schedulers.last_applied import kept_object
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.job_size import size_policies
from pai_install.scheduling.model import SKU_LABEL, Scheduling

Object = dict[str, Any]


def objects_of(scheduling: Scheduling) -> tuple[Object, ...]:
    """All objects of a site's virtual clusters, those that others name before them, and the value they come from."""
    own = backend_of(scheduling.backend).desired(scheduling).objects
    return (*own, *size_policies(scheduling), kept_object(scheduling))


def remarks(scheduling: Scheduling) -> tuple[str, ...]:
    """Properties of the site that its scheduler cannot keep, a sentence each."""
    return backend_of(scheduling.backend).desired(scheduling).unsupported


def labels_of(scheduling: Scheduling) -> Mapping[str, Mapping[str, str]]:
    """Machine -> labels of its node."""
    labels = backend_of(scheduling.backend).desired(scheduling).node_labels
    return {machine: {SKU_LABEL: sku, **labels.get(machine, {})} for machine, sku in scheduling.skus.items()}
