"""Storages and groups in OpenPAI's API. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pai_install.profile.model import ClusterProfile, ProfileGroup, ProfileStorage

Object = dict[str, Any]
_TYPES: Mapping[str, str] = {"nfs": "nfs", "smb": "samba", "azureFile": "azureFile", "azureBlob": "azureBlob"}


def storages_of(profile: ClusterProfile, groups: Collection[str]) -> list[ProfileStorage]:
    """Storages that jobs of these groups may mount."""
    granted = {it.storage for it in profile.grants if it.group in groups and it.current and it.claimed}
    return [one for one in profile.storages if one.name in granted]


def storage_item(storage: ProfileStorage) -> Object:
    """The item of a list."""
    return {"name": storage.name, "share": storage.shared, "volumeName": storage.name, "default": False}


def storage_details(storage: ProfileStorage) -> Object:
    """One storage. OpenPAI's answers had keys and passwords. This one has none."""
    data = {"server": storage.server, "path": storage.path}
    if storage.type == "smb":
        data["address"] = f"//{storage.server}/{storage.path}"
    elif storage.type == "azureFile":
        data["shareName"] = storage.path
    elif storage.type == "azureBlob":
        data["containerName"] = storage.path
    return {
        **storage_item(storage),
        # the portal fails for the type "other", which OpenPAI's API has, too
        "type": _TYPES.get(storage.type, "unknown"),
        "data": data,
        "readOnly": storage.read_only,
        "mountOptions": list(storage.mount_options),
    }


def group_details(profile: ClusterProfile, group: ProfileGroup) -> Object:
    """One group with its rights."""
    clusters = profile.scheduling.clusters if profile.scheduling is not None else ()
    return {
        "groupname": group.name,
        "description": group.description,
        "externalName": group.external_name,
        "extension": {
            "acls": {
                "admin": group.administrators,
                "virtualClusters": [one.name for one in clusters if not one.groups or group.name in one.groups],
                "storageConfigs": [one.name for one in storages_of(profile, {group.name})],
            }
        },
    }
