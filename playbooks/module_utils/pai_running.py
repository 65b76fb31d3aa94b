"""Services and Docker containers that an installation would restart or stop."""

from __future__ import annotations

import glob
import json
import re
from typing import Any

from ansible.module_utils.pai_machine import command, read
from ansible.module_utils.pai_managed import unit_states

DAEMON_JSON = "/etc/docker/daemon.json"
DOCKER_NAMESPACE = "moby"
DOCKER_HOST = "://download.docker.com/"
OURS = "# Managed by pai-install"
# where the inventory does not say: what our roles restart, and the time services that one of them stops
WATCHED = (
    *("containerd.service", "docker.service", "kubelet.service", "chrony.service"),
    *("nfs-server.service", "nfs-ganesha.service"),
    *("nvidia-persistenced.service", "nvidia-fabricmanager.service"),
    *("systemd-timesyncd.service", "ntp.service", "ntpsec.service", "openntpd.service"),
)


def services(names: list[str]) -> list[str]:
    """Those of the units that are active."""
    states = unit_states(names)
    return [name for name in names if states.get(name, {}).get("ActiveState") == "active"]


def docker() -> dict[str, Any]:
    """Returns version (of dockerd, or ""), containers (number of running ones), data_root, and log_driver (of
    daemon.json).

    own_images: daemon.json stores images outside containerd. repository: apt source file of Docker's repository, or "".
    """
    settings = daemon_settings()
    features = settings.get("features")
    return {
        "version": docker_version(),
        "containers": containers(),
        "data_root": str(settings.get("data-root") or "/var/lib/docker"),
        "log_driver": str(settings.get("log-driver") or "json-file"),
        "own_images": isinstance(features, dict) and features.get("containerd-snapshotter") is False,
        "repository": docker_repository(),
    }


def docker_repository(apt: str = "/etc/apt") -> str:
    """The file that names Docker's own package repository and is not ours: a second one may have another key.

    apt then refuses to read any source ("Conflicting values set for option Signed-By").
    """
    for path in [apt + "/sources.list", *sorted(glob.glob(apt + "/sources.list.d/*"))]:
        text = read(path) if path.endswith((".list", ".sources")) else ""
        active = [line for line in text.splitlines() if DOCKER_HOST in line and not line.lstrip().startswith("#")]
        # The first line of our file says that it is ours, so it never stands in its own way.
        if active and not text.startswith(OURS):
            return path
    return ""


def docker_version() -> str:
    """Returns the version of the installed dockerd, such as 20.10.24, or "" if it is missing or does not start."""
    # docker version would ask the daemon, and start a stopped one by its socket.
    output = command(["dockerd", "--version"], timeout_s=10)[1]
    found = re.search(r"version (\d+(?:\.\d+)*)", output)
    return found.group(1) if found else ""


def daemon_settings() -> dict[str, Any]:
    """Returns daemon.json as an object, or {} if it is missing or unreadable."""
    try:
        with open(DAEMON_JSON, encoding="utf-8") as handle:
            settings = json.load(handle)
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}


def containers(pattern: str = "/proc/[0-9]*/cmdline") -> int:
    """Running containers of Docker: each has one shim of containerd, also while neither daemon answers."""
    count = 0
    for path in glob.glob(pattern):
        try:
            with open(path, "rb") as handle:
                words = handle.read().decode(errors="replace").split("\0")
        except OSError:
            continue  # it has just ended
        # A shim outlives its daemons. That is how containers live on during a restart.
        shim = "containerd-shim" in words[0]
        if shim and "-namespace" in words and words[words.index("-namespace") + 1] == DOCKER_NAMESPACE:
            count += 1
    return count
