"""The place of a storage in the form of a manual mount. Pure."""

from __future__ import annotations

from pai_install.site.services.storages import StorageEntry


def place(storage: StorageEntry) -> str:
    """Returns server:/path for nfs, //server/share for smb, account/share or account/container for Azure, machine:/path
    for local.

    A hostPath is the same path on every machine.
    """
    match storage.type:
        case "nfs":
            return f"{storage.server}:{storage.path}"
        case "smb":
            return f"//{storage.server}/{storage.share_name}"
        case "azureFile":
            return f"{storage.account_name}/{storage.share_name}"
        case "azureBlob":
            return f"{storage.account_name}/{storage.container_name}"
        case "local":
            return f"{storage.machine}:{storage.path}"
        case _:
            return f"{storage.path}"
