"""Rules between the folder of dynamic volumes and other folders of the machines."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.documents.document import Document
from pai_install.site.services.model import Services
from pai_install.site.settings import Settings


def check_dynamic_volumes(source: Document, services: Services, settings: Settings | None) -> None:
    """Adds an error for each folder that lies in that of dynamic volumes, or around it. settings: None: unknown."""
    volumes = services.dynamic_volumes
    if volumes is None:
        return
    for what, folder in (*_storages(services), *(_settings(settings) if settings is not None else ())):
        if _touch(volumes.path, folder):
            message = f"{volumes.path} and {what}, {folder}, lie in each other: who uses one reaches the other"
            source.add(("dynamic-volumes", "path"), "site.same-place", message, "give volumes a folder of their own")


def _storages(services: Services) -> Iterator[tuple[str, str]]:
    for storage in services.storages or ():
        if storage.type in ("hostPath", "local") and storage.path is not None:
            yield f"the storage {storage.name}", storage.path


def _settings(settings: Settings) -> Iterator[tuple[str, str]]:
    yield "docker_data_root", settings.docker_data_root
    if settings.containerd_data_root is not None:
        yield "containerd_data_root", settings.containerd_data_root
    if settings.enable_docker_cache and settings.docker_cache_storage_backend == "filesystem":
        yield "docker_cache_fs_mount_path", settings.docker_cache_fs_mount_path


def _touch(first: str, second: str) -> bool:
    """Whether one is the other or lies below it."""
    return f"{first}/".startswith(f"{second}/") or f"{second}/".startswith(f"{first}/")
