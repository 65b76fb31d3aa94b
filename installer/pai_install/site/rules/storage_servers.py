"""Rules between the storage servers of layout.yaml and the storages that name them."""

from __future__ import annotations

from collections.abc import Iterable

from pai_install.documents.document import Document
from pai_install.site.layout_file import MachineEntry
from pai_install.site.services.model import Services
from pai_install.site.services.storage import FOLDERS, StorageManager
from pai_install.site.services.storages import StorageEntry


def check_storage_server(source: Document, services: Services, machines: Iterable[MachineEntry]) -> None:
    """Adds storages with a folder that the site's own server does not export."""
    servers = {name for machine in machines if machine.pai_storage for name in (machine.hostname, machine.hostip)}
    for number, entry in enumerate(services.storages or ()):
        if entry.type == "nfs" and entry.server in servers:
            _check_path(source, number, entry, services.file_server)


def _check_path(source: Document, number: int, entry: StorageEntry, server: StorageManager) -> None:
    path, exports = entry.path, server.exports
    if path is None or any(path == export or path.startswith(f"{export}/") for export in exports):
        return
    # OpenPAI's clients named them without the folder above
    reserved = path.split("/")[1] in FOLDERS
    remedy = f"write {server.localpath.rstrip('/')}{path}" if reserved else "write a folder in one of them"
    message = f"{entry.server} does not serve {path}, but {' and '.join(exports)}"
    source.add(("storages", number, "path"), "site.not-served", message, remedy)
