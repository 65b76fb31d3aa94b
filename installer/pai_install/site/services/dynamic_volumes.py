"""dynamic-volumes: the storage of claims without a volume name. An extension."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from pai_install.site.names import read_volumes_folder
from pai_install.site.services.section import KebabSection, choice

VolumesFolder = Annotated[str, BeforeValidator(read_volumes_folder), WithJsonSchema({"type": "string"})]


class DynamicVolumes(KebabSection):
    """dynamic-volumes: the default StorageClass of the cluster."""

    type: Annotated[Literal["local-path"], choice("local-path")]
    """local-path: a folder on the node of the first pod."""
    path: VolumesFolder = "/var/lib/pai-volumes"
    """Parent folder of the volumes on every machine. Existing volumes do not move."""
    reclaim_policy: Annotated[Literal["Delete", "Retain"], choice("Delete", "Retain")] = "Delete"
    """Treatment of the data of a deleted claim: Delete or Retain."""
