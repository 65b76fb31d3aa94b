"""Filters for the Docker cache: its registries' files as data, and words of HAProxy's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleError

MANAGED = "# Managed by pai-install: changes are overwritten.\n"
# where the pod has the folder of the configuration, and that of the content
CONFIGURATION = "/config"
CONTENT = "/data"


def haproxy_word(text: str) -> str:
    """The text as one word of HAProxy's configuration, in strong quotes: nothing in it means anything.

    Raises AnsibleError for characters that no quotes can hold, the end of a line among them.
    """
    if not all(character.isprintable() for character in text):
        raise AnsibleError("a name or password of the Docker cache holds a character that cannot be printed")
    # As in a shell, strong quotes end, one escaped quote follows, and they begin again.
    return "'" + text.replace("'", "'\\''") + "'"


def upstream_files(upstream: Mapping[str, Any], settings: Mapping[str, Any], folder: str) -> list[dict[str, Any]]:
    """Items of pai_files for the registry of one upstream. settings: azure, keep_days."""
    name = upstream["name"]
    # JSON is YAML in which no value can become anything but itself
    text = MANAGED + json.dumps(_registry(upstream, settings), indent=2) + "\n"
    found = [
        {"path": f"{folder}/registry-{name}.yml", "content": text, "mode": "0600", "secret": True},
        {"path": f"{folder}/login-{name}", "content": _login(upstream), "mode": "0700", "secret": True},
    ]
    if upstream["ca"]:
        found.append({"path": f"{folder}/ca/{name}/ca.pem", "content": upstream["ca"], "mode": "0600"})
    return found


def _registry(upstream: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Configuration of CNCF distribution 3.1, read when it starts."""
    return {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            # No `cache` of what is there: what docker-cache-gc.py drops beside the running registry would seem to be
            # there still. Without one each request asks the disk, and what is gone is fetched and written again,
            # manifests and layers alike.
            **_storage(upstream["name"], settings["azure"]),
            "delete": {"enabled": True},  # what has expired in Azure
            # machines have to reach the cache alone, not where it keeps its content
            "redirect": {"disable": True},
        },
        "http": {
            "addr": f"127.0.0.1:{upstream['port']}",
            "relativeurls": True,
            "debug": {"addr": f"127.0.0.1:{upstream['debug_port']}", "prometheus": {"enabled": True}},
        },
        "health": {"storagedriver": {"enabled": True}},
        "proxy": {
            "remoteurl": upstream["remote"].rstrip("/"),
            # Asked for when it is needed: another login needs no restart. With one that stands here, or none, the
            # registry would ask the upstream when it starts, and not start without it to serve what it has.
            "exec": {"command": f"{CONFIGURATION}/login-{upstream['name']}", "lifetime": "1m"},
            # Counted from the time of fetching, used or not, as Azure tells no time of use; 0: never. From a folder
            # docker-cache-gc.py drops what is unused.
            "ttl": f"{settings['keep_days'] * 24}h" if settings["azure"] else "0s",
            "cachewritetimeout": "12h",  # layers of many GB over a slow line
        },
    }


def _storage(name: str, azure: Mapping[str, str]) -> dict[str, Any]:
    if not azure:
        return {"filesystem": {"rootdirectory": f"{CONTENT}/{name}"}}
    other = {"serviceurl": azure["endpoint"]} if azure["endpoint"] else {}
    return {
        "azure": {
            "accountname": azure["account"],
            "accountkey": azure["access_key"],
            "container": azure["container"],
            "credentials": {"type": "shared_key"},
            "rootdirectory": f"/{name}",
            **other,
        }
    }


def _login(upstream: Mapping[str, Any]) -> str:
    """A program that says the login, as the credential helpers of Docker do."""
    login = json.dumps({"Username": upstream["username"], "Secret": upstream["password"]})
    # A quoted END lets the shell expand nothing in a password.
    return f"#!/bin/sh\n{MANAGED}cat <<'END'\n{login}\nEND\n"


def content_note(azure: Mapping[str, str], folder: str) -> str:
    """Where the content is, for the record: JSON of a folder or of an Azure container, without its key."""
    named = {name: azure[name] for name in ("account", "container", "endpoint") if azure.get(name)}
    return json.dumps(named or {"folder": folder}, sort_keys=True)


def but_for(found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns items of pai_files that delete unwanted files. found: result of ansible.builtin.find."""
    paths = {entry["path"] for entry in wanted}
    left = sorted(entry["path"] for entry in found if not entry["isdir"] and entry["path"] not in paths)
    return [{"path": path, "state": "absent", "secret": True} for path in left]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Any]:
        """Filter name -> function."""
        return {
            "haproxy_word": haproxy_word,
            "upstream_files": upstream_files,
            "content_note": content_note,
            "but_for": but_for,
        }
