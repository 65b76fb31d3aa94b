"""Filters for Docker's configuration: pure functions over data, so that no JSON is pasted together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def docker_patch(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the required settings of Docker's daemon.json.

    settings: data_root, log_max_size, log_max_file, live_restore, nvidia_path, default_runtime.
    facts: `ansible_facts.pai` of the machine.
    The admin's log driver stays with its options, because it would refuse ours.
    """
    patch: dict[str, Any] = {
        "data-root": settings["data_root"],
        "exec-opts": [f"native.cgroupdriver={facts['cgroup_driver']}"],
        "live-restore": settings["live_restore"],
        # an empty list takes the component store out, which earlier versions reached without TLS; Docker that is
        # reloaded keeps what it had of a key that is missing
        "insecure-registries": [],
    }
    docker = facts.get("docker", {})
    if not docker.get("version") or docker.get("own_images"):
        # a new Docker 29 would keep images with containerd, on the disk of that; one that is there keeps what it has
        patch["features"] = {"containerd-snapshotter": False}
    if docker.get("log_driver", "json-file") == "json-file":
        patch["log-driver"] = "json-file"
        patch["log-opts"] = {"max-size": settings["log_max_size"], "max-file": str(settings["log_max_file"])}
    if facts["sys_resource"]:
        # containerd 2.1.5 and newer start containers with 1024 open files, too few for data loaders;
        # RDMA registers the memory of a job, and 8 MiB are not enough for it
        patch["default-ulimits"] = {
            "nofile": {"Name": "nofile", "Soft": 1048576, "Hard": 1048576},
            "memlock": {"Name": "memlock", "Soft": -1, "Hard": -1},
        }
    if settings["nvidia_path"]:
        patch["runtimes"] = {"nvidia": {"path": settings["nvidia_path"], "args": []}}
        patch["default-runtime"] = settings["default_runtime"]
        # off by default in Docker 25 to 28; others pass over the word
        patch["features"] = {**patch.get("features", {}), "cdi": True}
    return patch


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Any]:
        """Filter name -> function."""
        return {"docker_patch": docker_patch}
