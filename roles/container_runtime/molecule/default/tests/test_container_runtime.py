"""Docker on the containerd of the cluster, both with the admin's own settings and the NVIDIA runtime."""

from __future__ import annotations

import json
from typing import Any

from testinfra.host import Host


def docker_info(host: Host) -> dict[str, Any]:
    """What the daemon says of itself."""
    found: dict[str, Any] = json.loads(host.check_output("docker info --format '{{json .}}'"))
    return found


def test_the_services_run(host: Host) -> None:
    for name in ("containerd", "docker"):
        assert host.service(name).is_running
        assert host.service(name).is_enabled


def test_the_plugin_of_kubernetes_is_loaded(host: Host) -> None:
    assert host.check_output("ctr plugins list id==cri").rstrip().endswith("ok")


def test_keys_of_the_admin_are_kept(host: Host) -> None:
    daemon = json.loads(host.file("/etc/docker/daemon.json").content_string)
    assert (daemon["bip"], daemon["labels"]) == ("172.31.200.1/24", ["rack=b7"])
    assert docker_info(host)["Labels"] == ["rack=b7"]
    containerd = host.check_output("containerd config dump")
    assert "oom_score = -500" in containerd
    assert "33554432" in containerd


def test_keys_of_the_cluster_have_the_last_word(host: Host) -> None:
    info = docker_info(host)
    assert info["LiveRestoreEnabled"] is True
    assert "nvidia" in info["Runtimes"]
    assert "nvidia" in host.check_output("containerd config dump")


def test_gpus_are_for_containers_that_asked_for_them(host: Host) -> None:
    toolkit = host.file("/etc/nvidia-container-runtime/config.toml").content_string
    assert "accept-nvidia-visible-devices-envvar-when-unprivileged = false" in toolkit
    assert "accept-nvidia-visible-devices-as-volume-mounts = true" in toolkit


def test_the_old_files_lie_beside_the_new_ones(host: Host) -> None:
    copies = host.check_output("cat /etc/docker/daemon.json.*.pai-backup /etc/containerd/config.toml.*.pai-backup")
    assert '"log-driver": "journald"' in copies
    assert 'disabled_plugins = ["cri"]' in copies


def test_images_come_from_the_store(host: Host) -> None:
    image = host.ansible.get_variables()["container_runtime_sandbox_image"]
    host.check_output(f"ctr --namespace k8s.io images pull --hosts-dir /etc/containerd/certs.d {image}")


def test_docker_knows_the_store_by_its_authority_alone(host: Host) -> None:
    variables = host.ansible.get_variables()
    store, host_of_images = (variables[f"container_runtime_{word}"] for word in ("store", "store_host"))
    host.check_output(
        f"docker pull --quiet {variables['container_runtime_sandbox_image'].replace(host_of_images, store)}"
    )
    indexes = docker_info(host)["RegistryConfig"]["IndexConfigs"]
    assert store not in {name for name, index in indexes.items() if not index["Secure"]}


def test_upgrades_of_the_system_leave_docker_at_its_version(host: Host) -> None:
    policy = host.check_output("apt-cache policy docker.io")
    versions = dict(line.strip().split(": ", 1) for line in policy.splitlines() if ": " in line)
    assert versions["Candidate"] == versions["Installed"]
    offered = [line for line in policy.splitlines() if line.strip().startswith("50 ")]
    assert offered, "what the archive offers may be installed once, and never over another version"
