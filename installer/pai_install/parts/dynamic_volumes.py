"""Values of the add-on dynamic_volumes: the default StorageClass. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.parts.context import Context
from pai_install.site import Site


def has_dynamic_volumes(site: Site) -> bool:
    """Whether a claim that names no volume is to get one."""
    return site.services.dynamic_volumes is not None


def dynamic_volume_values(context: Context) -> dict[str, Any]:
    """path: the folder on every machine. reclaim_policy: of the class that is the default."""
    volumes = context.site.services.dynamic_volumes
    return volumes.model_dump(include={"path", "reclaim_policy"}) if volumes is not None else {}
