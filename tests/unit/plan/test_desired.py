"""Site + components -> variables: the parts that are easy to get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pai_install.components.model import ComponentSet
from pai_install.plan.desired import Desired
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import Inventory
from pai_install.site import Site

from .conftest import CONFIG, LAYOUT


def value(inventory: Inventory, host: str, name: str) -> Any:
    """A variable as the host sees it."""
    return inventory.host_vars[host].get(name, inventory.shared_vars.get(name))


def test_nvidia_runtime_only_where_the_sku_has_devices(inventory: Inventory) -> None:
    assert value(inventory, "worker1", "container_runtime_nvidia") is True
    for host in ("master", "worker2"):
        assert value(inventory, host, "container_runtime_nvidia") is False
        programs = [entry["name"] for entry in value(inventory, host, "container_runtime_artifacts")]
        assert "nvidia-container-toolkit" not in programs


def test_openpai_sites_get_nvidia_as_default_runtime(make_site: Callable[..., Site], components: ComponentSet) -> None:
    old = make_site(config=CONFIG + "docker_image_tag: v1.8.0\n")
    desired = Desired(old, components, Path("/s"))
    assert desired.runtime(old.machine("worker1")).default == "nvidia"
    assert desired.runtime(old.machine("worker2")).default == "runc"


def test_workers_take_time_from_the_control_plane_alone(inventory: Inventory) -> None:
    assert value(inventory, "worker1", "time_sync_servers") == ["10.0.0.1"]
    assert value(inventory, "worker1", "time_sync_exclusive") is True
    assert value(inventory, "master", "time_sync_servers") == []
    assert value(inventory, "master", "time_sync_allow") == ["10.0.0.1/32", "10.0.0.2/31"]


def test_job_ports_are_kept_free_on_workers(inventory: Inventory) -> None:
    name = "net.ipv4.ip_local_port_range"
    assert value(inventory, "worker1", "base_sysctl")[name] == "40000 65535"
    assert name not in value(inventory, "master", "base_sysctl")


def test_programs_come_by_their_digest_from_the_first_control_plane(inventory: Inventory) -> None:
    artifacts = value(inventory, "worker1", "kubernetes_node_artifacts")
    assert artifacts[0]["url"].startswith("http://10.0.0.1:5080/v2/files/kubeadm/blobs/sha256:")
    assert artifacts[0]["url"].endswith(artifacts[0]["sha256"])


def test_groups(inventory: Inventory) -> None:
    assert inventory.groups == {
        "control_plane": ("master",),
        "workers": ("worker1", "worker2"),
        "nvidia": ("worker1",),
        "component_store": ("master",),
    }


def test_mirrors_reach_docker_and_containerd(make_site: Callable[..., Site], components: ComponentSet) -> None:
    text = (
        "openpai_docker_registry_mirrors: [https://m.example]\nopenpai_docker_insecure_registries: [r.example:5000]\n"
    )
    site = make_site(config=CONFIG + text)
    runtime = Desired(site, components, Path("/s")).runtime(site.machine("worker1"))
    assert runtime.docker_mirrors == ("https://m.example",)
    assert runtime.registry_hosts["docker.io"] == ("https://m.example",)
    assert runtime.registry_hosts["r.example:5000"] == ("http://r.example:5000",)
    assert runtime.insecure_registries == ("r.example:5000", "10.0.0.1:5080")


def test_proxy_spares_the_cluster_itself(make_site: Callable[..., Site], components: ComponentSet) -> None:
    site = make_site(config=CONFIG + "https_proxy: http://proxy.example:3128\nno_proxy: .example.org\n")
    proxy = Desired(site, components, Path("/s")).runtime(site.machine("worker1")).proxy
    assert proxy["https"] == "http://proxy.example:3128"
    assert {".example.org", "10.0.0.1", "10.200.0.0/13", "localhost"} <= set(proxy["no_proxy"].split(","))


def test_password_is_given_to_ansible_and_is_no_setting(inventory: Inventory) -> None:
    assert value(inventory, "worker1", "ansible_password") == "planted-secret"
    assert "planted-secret" not in json.dumps(value(inventory, "worker1", "pai_settings"))


def test_common_values_are_given_once(inventory: Inventory) -> None:
    assert "base_hosts" in inventory.shared_vars
    assert all("base_hosts" not in values for values in inventory.host_vars.values())


def test_paths_of_the_dev_box_are_no_settings(site: Site, components: ComponentSet) -> None:
    moved = ComponentSet(
        tuple(replace(file, path=Path("/elsewhere")) for file in components.files),
        tuple(replace(image, layout=Path("/elsewhere")) for image in components.images),
        components.kubernetes_version,
    )
    here = build_inventory(Desired(site, components, Path("/here")), {})
    there = build_inventory(Desired(site, moved, Path("/there")), {})
    assert value(here, "master", "pai_settings") == value(there, "master", "pai_settings")


EXTRA = """\
  - {hostname: both, hostip: 10.0.0.4, machine-type: gpu, pai-master: "true", pai-worker: "true"}
  - {hostname: spare, hostip: 10.0.0.5, machine-type: cpu, pai-master: "true"}
  - {hostname: worker3, hostip: 10.0.0.6, machine-type: gpu, pai-worker: "true"}
"""


def test_machines_of_one_kind_share_what_they_have_in_common(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    site = make_site(LAYOUT + EXTRA)
    desired = Desired(site, components, Path("/s"))
    roles = {host: {role.role: role for role in found} for host, found in desired.roles().items()}
    assert roles["worker1"]["base"] is roles["worker3"]["base"]
    for machine in site.present_machines:  # and sharing changes no value
        found = roles[machine.hostname]
        assert found["base"] == desired.base(machine)
        assert found["time_sync"] == desired.time(machine)
        assert found["container_runtime"] == desired.runtime(machine)
        assert found["kubernetes_node"] == desired.node(machine)
        assert found["cluster_verify"] == desired.verify(machine)


def test_every_machine_has_the_roles_of_its_kind(make_site: Callable[..., Site], components: ComponentSet) -> None:
    roles = Desired(make_site(LAYOUT + EXTRA), components, Path("/s")).roles()
    everywhere = {"base", "time_sync", "container_runtime", "kubernetes_node", "api_proxy", "cluster_verify"}
    own = {host: {role.role for role in found} - everywhere for host, found in roles.items()}
    assert own == {
        "master": {"component_store", "control_plane", "pod_network", "device_plugin"},
        "both": {"control_plane", "node_labels"},
        "spare": {"control_plane"},
        "worker1": {"worker", "node_labels"},
        "worker2": {"worker"},
        "worker3": {"worker", "node_labels"},
    }


def test_machines_with_nvidia_devices_are_labelled_for_the_device_plugin(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    rack = LAYOUT.replace("machine-type: gpu,", "machine-type: gpu, labels: {rack: r1},")
    inventory = build_inventory(Desired(make_site(rack), components, Path("/s")), {})
    assert value(inventory, "worker1", "node_labels_labels") == {"nvidia.com/gpu.present": "true", "rack": "r1"}
    assert value(inventory, "worker2", "node_labels_labels") is None
    plugin = {"offered": True, "image": "k8s-device-plugin:v0.19.0", "watcher_image": "busybox:1.37"}
    host = "registry.pai.internal/"
    found = {name: value(inventory, "master", f"device_plugin_{name}") for name in plugin}
    assert found == {name: host + word if isinstance(word, str) else word for name, word in plugin.items()}


def test_without_the_device_plugin_its_label_and_its_role_are_gone(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    sites = (
        make_site(config=CONFIG + "nvidia_device_plugin: false\n"),
        make_site(LAYOUT.replace("nvidia.com/gpu", "amd.com/gpu")),
    )
    for site in sites:
        roles = {role.role for found in Desired(site, components, Path("/s")).roles().values() for role in found}
        assert not roles & {"device_plugin", "node_labels"}
