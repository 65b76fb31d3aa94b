"""Where services-configuration.yaml says something else than config.yaml: which of them rules."""

from __future__ import annotations

from typing import Any

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath, dotted, short
from pai_install.site.services import Services
from pai_install.site.settings import Settings

# OpenPAI had these twice: where in services-configuration.yaml, and the setting of config.yaml
_TWICE: dict[YamlPath, str] = {
    ("docker-cache", "enabled"): "enable_docker_cache",
    ("docker-cache", "storage_backend"): "docker_cache_storage_backend",
    ("docker-cache", "remote_url"): "docker_cache_remote_url",
    ("docker-cache", "fs_mount_path"): "docker_cache_fs_mount_path",
    ("docker-cache", "azure_account_name"): "docker_cache_azure_account_name",
    ("docker-cache", "azure_container_name"): "docker_cache_azure_container_name",
    ("cluster", "common", "docker-data-root"): "docker_data_root",
}


def check_contradictions(source: Document, services: Services, settings: Settings) -> None:
    """Warns of each value that another one in config.yaml overrides. The summary describes the defaults."""
    for path, key in _TWICE.items():
        openpai, own = _value(services, path), getattr(settings, key)
        is_set = source.at(path) is not None and key in settings.model_fields_set
        if not is_set or openpai is None or openpai == own:
            continue
        message = f"does not count: {key} in config.yaml rules, which is {_shown(own)}"
        remedy = f"write {key}: {_shown(openpai)} into config.yaml, or remove {dotted(path)}"
        source.add(path, "site.overruled", message, remedy, severity="warning")


def _value(services: Services, path: YamlPath) -> Any:  # noqa: ANN401 - any field's
    value: Any = services
    for part in path:
        value = getattr(value, str(part).replace("-", "_"), None)
    return value


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else short(str(value))
