"""Rules between the settings of config.yaml: contradictions, dependencies, settings without effect."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pai_install.documents.document import Document, Entries
from pai_install.site.rules.kubelet import check_kubelet
from pai_install.site.rules.ports import KUBERNETES_PORTS
from pai_install.site.rules.raw_machines import drafts
from pai_install.site.secret import MissingSecret
from pai_install.site.settings import NO_EFFECT, Settings

_NODE_PORTS = range(30000, 32768)
_USED_PORTS = frozenset({*KUBERNETES_PORTS, *_NODE_PORTS})


@dataclass(frozen=True, slots=True)
class Conflict:
    """Contradicting settings. keys: all of them. The problem is placed at the first."""

    keys: tuple[str, ...]
    code: str
    message: str
    remedy: str


def check_settings(config: Document, settings: Settings) -> None:
    """Adds problems between settings. `settings` may lack invalid ones."""
    wrong = wrong_keys(config)
    for conflict in _conflicts(settings):
        if not wrong.intersection(conflict.keys):
            config.add((conflict.keys[0],), f"site.{conflict.code}", conflict.message, conflict.remedy)
    for key, why in NO_EFFECT.items():
        if config.content.get(key) is not None:
            config.add((key,), "site.no-effect", f"has no effect: {why}", "remove it", severity="warning")
    if config.content.get("docker_cache_htpasswd") is not None:
        message = "takes effect (OpenPAI ignored it)"
        remedy = "remove it to keep the cache open to everyone"
        config.add(("docker_cache_htpasswd",), "site.meaning", message, remedy, severity="warning")
    if settings.component_mirror_username and (settings.component_mirror_url or "").startswith("http:"):
        message = "the login goes there without encryption"
        config.add(("component_mirror_url",), "site.plain-http", message, "use https://", severity="warning")
    _check_htpasswd(config, settings)
    check_kubelet(config)


def wrong_keys(config: Document) -> frozenset[str]:
    """The top-level keys that have an error of their own."""
    return frozenset(
        problem.path.partition(".")[0].partition("[")[0] for problem in config.problems if problem.is_error
    )


def check_login(layout: Document, config: Document, settings: Settings) -> None:
    """Adds an error when there is a machine that has no login."""
    if settings.password is not None or settings.ssh_key_file_path is not None:
        return
    if wrong_keys(config) & {"password", "ssh_key_file_path"}:
        return
    for machine in drafts(layout):
        ssh = machine.entry.get("ssh")
        if not isinstance(ssh, Entries) or not (ssh.get("key-file") or ssh.get("password-from")):
            remedy = "add ssh_key_file_path: PATH, or password"
            config.add(("password",), "site.no-login", "is required where there is no ssh_key_file_path", remedy)
            return


def _conflicts(settings: Settings) -> Iterator[Conflict]:
    for source, key in (("mirror", "component_mirror_url"), ("bundle", "component_bundle")):
        if settings.component_source == source and getattr(settings, key) is None:
            yield Conflict(("component_source", key), "missing", f"{source} needs {key}", f"add {key}")
    if settings.host_daemon_port_start >= settings.host_daemon_port_end:
        keys = ("host_daemon_port_start", "host_daemon_port_end")
        yield Conflict(keys, "port-range", "is not below host_daemon_port_end", "choose a smaller one")
    if settings.component_store_port in _USED_PORTS or settings.component_store_port < 1024:
        message = f"{settings.component_store_port} is another program's on the control plane"
        yield Conflict(("component_store_port",), "port", message, "choose a free one from 1024, e.g. 5080")
    if settings.containerd_data_root and _touch(settings.containerd_data_root, settings.docker_data_root):
        message = (
            f"{settings.containerd_data_root} and docker_data_root, {settings.docker_data_root}, lie in each other"
        )
        remedy = "give each a folder of its own, e.g. /mnt/containerd and /mnt/docker"
        yield Conflict(("containerd_data_root", "docker_data_root"), "same-place", message, remedy)
    for account in ("docker_registry", "component_mirror"):
        login = (f"{account}_username", f"{account}_password")
        missing = [key for key in login if getattr(settings, key) is None]
        if len(missing) == 1:
            given = login[1 - login.index(missing[0])]
            yield Conflict((given, missing[0]), "missing", f"needs {missing[0]}", "give both or neither")
    yield from _cache_conflicts(settings)


def _touch(first: str, second: str) -> bool:
    """Whether one is the other or lies below it."""
    return f"{first}/".startswith(f"{second}/") or f"{second}/".startswith(f"{first}/")


def _cache_conflicts(settings: Settings) -> Iterator[Conflict]:
    if not settings.enable_docker_cache or settings.docker_cache_storage_backend != "azure":
        return
    for key in ("docker_cache_azure_account_name", "docker_cache_azure_account_key"):
        if getattr(settings, key) is None:
            keys = ("enable_docker_cache", "docker_cache_storage_backend", key)
            remedy = f"add {key}, or docker_cache_storage_backend: filesystem"
            yield Conflict(keys, "missing", f"a cache on Azure needs {key}", remedy)


def _check_htpasswd(config: Document, settings: Settings) -> None:
    secret = settings.cache_htpasswd
    if secret is None or isinstance(secret, MissingSecret):
        return
    key = "docker_cache_htpasswd" if settings.docker_cache_htpasswd else "docker_cache_registry_htpasswd"
    try:
        lines = base64.b64decode(secret.get_secret_value(), validate=True).decode().split()
    except ValueError:
        lines = []
    if not lines or not all(re.fullmatch(r"[^:]+:\$2[aby]\$.{56}", line) for line in lines):
        message = "is not the base64 of an htpasswd file with bcrypt passwords"
        config.add((key,), "site.htpasswd", message, "make it with: htpasswd -nbB USER PASSWORD | base64 -w0")
