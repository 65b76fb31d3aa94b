"""Site + components -> variables: the parts that are easy to get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.catalogue import load_catalogue
from pai_install.components.model import ComponentSet
from pai_install.parts.api_proxy import seconds_between_checks
from pai_install.parts.base import hosts
from pai_install.parts.container_runtime import ContainerRuntime
from pai_install.parts.part import RoleVariables
from pai_install.parts.registry import PARTS, make_context, needed_components, part_named
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import Inventory
from pai_install.site import Site
from tests.unit.plan.conftest import CONFIG, LAYOUT


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
    inventory = build_inventory(make_context(old, components, Path("/s")), {})
    assert value(inventory, "worker1", "container_runtime_default") == "nvidia"
    assert value(inventory, "worker2", "container_runtime_default") == "runc"


def test_gpus_are_for_containers_that_asked_for_them(
    inventory: Inventory, make_site: Callable[..., Site], components: ComponentSet
) -> None:
    assert value(inventory, "worker1", "container_runtime_gpu_visible_to_all") is False
    site = make_site(config=CONFIG + "gpu_visible_to_all_containers: true\n")
    open_to_all = build_inventory(make_context(site, components, Path("/s")), {})
    assert value(open_to_all, "worker1", "container_runtime_gpu_visible_to_all") is True


def test_workers_take_time_from_the_control_plane_alone(inventory: Inventory) -> None:
    assert value(inventory, "worker1", "time_sync_servers") == ["10.0.0.1"]
    assert value(inventory, "worker1", "time_sync_exclusive") is True
    assert value(inventory, "master", "time_sync_servers") == []
    assert value(inventory, "master", "time_sync_allow") == ["0.0.0.0/0"], "a new worker changes no control plane"


def test_job_ports_are_kept_free_on_workers(inventory: Inventory) -> None:
    name = "net.ipv4.ip_local_port_range"
    assert value(inventory, "worker1", "base_sysctl")[name] == "40000 65535"
    assert name not in value(inventory, "master", "base_sysctl")


def test_the_sites_resolver_file_is_every_kubelets(
    make_site: Callable[..., Site], components: ComponentSet, inventory: Inventory
) -> None:
    assert "resolv-conf" not in value(inventory, "worker1", "kubernetes_node_kubelet_args")
    site = make_site(config=CONFIG + "kubelet_config: {resolvConf: /etc/pods.conf}\n")
    told = build_inventory(make_context(site, components, Path("/s")), {})
    assert value(told, "worker1", "kubernetes_node_kubelet_args")["resolv-conf"] == "/etc/pods.conf"


def test_the_sites_kernel_parameters_win(make_site: Callable[..., Site], components: ComponentSet) -> None:
    text = "kernel_parameters: {fs.inotify.max_user_watches: 2097152, net.core.rmem_max: 67108864}\n"
    inventory = build_inventory(make_context(make_site(config=CONFIG + text), components, Path("/s")), {})
    for host in ("master", "worker1"):
        parameters = value(inventory, host, "base_sysctl")
        assert parameters["fs.inotify.max_user_watches"] == "2097152"
        assert parameters["net.core.rmem_max"] == "67108864"
        assert parameters["fs.inotify.max_user_instances"] == 8192
        assert parameters["net.ipv4.ip_forward"] == 1


def test_programs_come_by_their_digest_from_the_first_control_plane(inventory: Inventory) -> None:
    artifacts = value(inventory, "worker1", "kubernetes_node_artifacts")
    assert artifacts[0]["url"].startswith("https://registry.pai.internal:5080/v2/files/kubeadm/blobs/sha256:")
    assert artifacts[0]["url"].endswith(artifacts[0]["sha256"])


def test_crictl_is_on_every_machine(inventory: Inventory) -> None:
    for host in inventory.host_vars:
        programs = {entry["name"]: entry["dest"] for entry in value(inventory, host, "kubernetes_node_artifacts")}
        assert programs["crictl"] == "/usr/local/bin"


def test_programs_of_etcd_and_kubeadm_are_on_control_planes_only(inventory: Inventory) -> None:
    programs = {entry["name"]: entry["dest"] for entry in value(inventory, "master", "control_plane_artifacts")}
    assert programs == {name: f"/usr/local/lib/pai-install/{name}" for name in ("etcdctl", "kubeadm", "etcdutl")}
    assert value(inventory, "worker1", "control_plane_artifacts") is None


def test_groups(inventory: Inventory) -> None:
    assert inventory.groups == {
        "control_plane": ("master",),
        "workers": ("worker1", "worker2"),
        "nvidia": ("worker1",),
        "component_store": ("master",),
        "storage_servers": (),
    }


def test_the_stores_registry_is_the_runtimes(inventory: Inventory) -> None:
    assert value(inventory, "worker1", "container_runtime_store") == "registry.pai.internal:5080"
    assert value(inventory, "worker1", "container_runtime_store_host") == "registry.pai.internal"


def test_proxy_spares_the_cluster_itself(make_site: Callable[..., Site], components: ComponentSet) -> None:
    site = make_site(config=CONFIG + "https_proxy: http://proxy.example:3128\nno_proxy: .example.org\n")
    proxy = value(build_inventory(make_context(site, components, Path("/s")), {}), "worker1", "container_runtime_proxy")
    assert proxy["https"] == "http://proxy.example:3128"
    assert {".example.org", "10.0.0.1", "10.200.0.0/13", "localhost"} <= set(proxy["no_proxy"].split(","))


def test_password_is_given_to_ansible_and_is_no_setting(inventory: Inventory) -> None:
    assert value(inventory, "worker1", "ansible_password") == "planted-secret"
    assert "planted-secret" not in json.dumps(value(inventory, "worker1", "pai_settings"))


def test_common_values_are_given_once(inventory: Inventory) -> None:
    assert "api_proxy_servers" in inventory.shared_vars
    assert all("api_proxy_servers" not in values for values in inventory.host_vars.values())


def test_paths_of_the_dev_box_are_no_settings(site: Site, components: ComponentSet) -> None:
    moved = ComponentSet(
        tuple(replace(file, path=Path("/elsewhere")) for file in components.files),
        tuple(replace(image, layout=Path("/elsewhere")) for image in components.images),
        components.kubernetes_version,
        tuple(replace(manifest, path=Path("/elsewhere")) for manifest in components.manifests),
    )
    here = build_inventory(make_context(site, components, Path("/here")), {})
    there = build_inventory(make_context(site, moved, Path("/there")), {})
    assert value(here, "master", "pai_settings") == value(there, "master", "pai_settings")


EXTRA = """\
  - {hostname: both, hostip: 10.0.0.4, machine-type: gpu, pai-master: "true", pai-worker: "true"}
  - {hostname: spare, hostip: 10.0.0.5, machine-type: cpu, pai-master: "true"}
  - {hostname: worker3, hostip: 10.0.0.6, machine-type: gpu, pai-worker: "true"}
"""


def test_machines_that_are_alike_to_a_part_have_equal_variables(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    """What `Part.alike` promises: without it, one machine would be given the variables of another."""
    site = make_site(LAYOUT + EXTRA)
    context = make_context(site, components, Path("/s"))
    for part in PARTS:
        first: dict[Hashable, RoleVariables | None] = {}
        for machine in part.machines(site):
            made = part.variables(context, machine)
            assert made == first.setdefault(part.alike(site, machine), made), (part.name, machine.hostname)


def test_one_more_worker_changes_no_setting_of_the_other_machines(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    proxied = CONFIG + "https_proxy: http://proxy.example:3128\n"
    before = build_inventory(make_context(make_site(LAYOUT, proxied), components, Path("/s")), {})
    worker = '  - {hostname: worker3, hostip: 192.0.2.9, machine-type: gpu, pai-worker: "true"}\n'
    after = build_inventory(make_context(make_site(LAYOUT + worker, proxied), components, Path("/s")), {})
    for host in before.host_vars:
        assert value(after, host, "pai_settings") | {"cluster_verify": {}} == value(before, host, "pai_settings") | {
            "cluster_verify": {}
        }


def test_another_first_control_plane_changes_only_names_on_the_workers(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    three = LAYOUT + EXTRA
    moved = three.replace("{hostname: master,", "{hostname: old,").replace("{hostname: both,", "{hostname: master,")
    moved = moved.replace("{hostname: old,", "{hostname: both,")
    before = build_inventory(make_context(make_site(three), components, Path("/s")), {})
    after = build_inventory(make_context(make_site(moved), components, Path("/s")), {})
    was, now = (value(inventory, "worker2", "pai_settings") for inventory in (before, after))
    changed = {(part, name) for part in was for name in was[part] if was[part][name] != now[part][name]}
    assert {part for part, _name in changed} - {"cluster_verify"} <= {"base", "api_proxy"}, "nothing that restarts"


def test_machine_knows_the_names_it_needs_and_no_other(inventory: Inventory) -> None:
    assert value(inventory, "worker1", "base_hosts") == {
        "127.0.0.1": ["kubernetes.pai.internal"],
        "10.0.0.1": ["master", "registry.pai.internal"],
        "10.0.0.2": ["worker1"],
    }


def test_site_without_nvidia_devices_needs_nothing_of_nvidias(make_site: Callable[..., Site]) -> None:
    nvidia = {"nvidia-container-toolkit", "nvidia-device-plugin"}
    assert nvidia <= needed_components(make_site())
    assert not nvidia & needed_components(make_site(LAYOUT.replace("nvidia.com/gpu", "amd.com/gpu")))
    own_plugin = needed_components(make_site(config=CONFIG + "nvidia_device_plugin: false\n"))
    assert nvidia & own_plugin == {"nvidia-container-toolkit"}


def test_every_part_needs_only_what_the_catalogue_has(site: Site) -> None:
    assert needed_components(site) <= load_catalogue().components.keys()


def test_parts_come_after_those_they_need() -> None:
    names = [part.name for part in PARTS]
    assert len(set(names)) == len(names)
    for number, part in enumerate(PARTS):
        assert set(part.after) <= set(names[:number]), part.name


def test_part_is_found_by_its_name() -> None:
    assert part_named("base").phase == "base"
    with pytest.raises(KeyError):
        part_named("none")


def test_every_machine_has_the_roles_of_its_kind(make_site: Callable[..., Site], components: ComponentSet) -> None:
    inventory = build_inventory(make_context(make_site(LAYOUT + EXTRA), components, Path("/s")), {})
    everywhere = {"base", "time_sync", "container_runtime", "kubernetes_node", "api_proxy", "pod_forwarding"}
    everywhere |= {"system_images", "cluster_verify"}
    own = {host: value(inventory, host, "pai_settings").keys() - everywhere for host in inventory.host_vars}
    addons = {f"addon.{name}" for name in ("device_plugin", "flannel", "metrics_server")}
    addons |= {"addon.nvidia_runtime", "addon.node_credentials"}
    assert own == {
        "master": {"component_store", "control_plane", *addons},
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
    inventory = build_inventory(make_context(make_site(rack), components, Path("/s")), {})
    assert value(inventory, "worker1", "node_labels_labels") == {"nvidia.com/gpu.present": "true", "rack": "r1"}
    assert value(inventory, "worker2", "node_labels_labels") is None
    assert addon(inventory, "device_plugin")["values"] == {
        "image": "registry.pai.internal/k8s-device-plugin:v0.19.0@sha256:v0.19.0",
        "watcher_image": "registry.pai.internal/busybox:1.37@sha256:1.37",
    }


def test_workers_are_labelled_with_their_sku_where_there_are_virtual_clusters(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    services = "scheduler: {type: kueue}\nvirtual-clusters: [{name: a, quota: [{sku: gpu, machines: 1}]}]\n"
    site = make_site(
        LAYOUT.replace("machine-type: gpu,", "machine-type: gpu, labels: {pai-install/sku: x},"), services=services
    )
    inventory = build_inventory(make_context(site, components, Path("/s")), {})
    assert value(inventory, "worker1", "node_labels_labels")["pai-install/sku"] == "gpu"
    assert value(inventory, "worker2", "node_labels_labels")["pai-install/sku"] == "cpu"
    assert value(inventory, "master", "node_labels_labels") is None


EVERYWHERE = {"pause", "kube-proxy", "coredns", "flannel", "metrics-server", "busybox"}
CONTROL_PLANE = {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}


def images(inventory: Inventory, host: str) -> set[str]:
    """The images that a machine is to hold, without registry and tag."""
    names = [entry["name"].partition(":")[0] for entry in value(inventory, host, "system_images_images")]
    return {name.removeprefix("registry.pai.internal/") for name in names}


def test_every_machine_holds_the_images_of_its_pods(make_site: Callable[..., Site], components: ComponentSet) -> None:
    inventory = build_inventory(make_context(make_site(LAYOUT + EXTRA), components, Path("/s")), {})
    assert images(inventory, "master") == EVERYWHERE | CONTROL_PLANE
    assert images(inventory, "both") == EVERYWHERE | CONTROL_PLANE | {"k8s-device-plugin"}
    assert images(inventory, "worker1") == EVERYWHERE | {"k8s-device-plugin"}
    assert images(inventory, "worker2") == EVERYWHERE
    assert {"name": "registry.pai.internal/etcd:3.6.8-0", "digest": "sha256:3.6.8-0"} in value(
        inventory, "master", "system_images_images"
    )


def test_images_of_an_addon_that_is_switched_off_are_nowhere(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    off = make_site(config=CONFIG + "metrics_server: false\nnvidia_device_plugin: false\n")
    inventory = build_inventory(make_context(off, components, Path("/s")), {})
    assert images(inventory, "worker1") == EVERYWHERE - {"metrics-server"}


def test_every_image_that_is_fetched_is_held_somewhere(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    """And so every pod of the system is started from an image that some part declares. The site has all of it."""
    site = make_site(config=CONFIG + "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n")
    inventory = build_inventory(make_context(site, components, Path("/s")), {})
    catalogue = load_catalogue().components
    fetched = {image for name in needed_components(site) for image in catalogue[name].images}
    assert set().union(*(images(inventory, host) for host in inventory.host_vars)) == fetched


def test_another_image_under_the_same_tag_is_another_setting(site: Site, components: ComponentSet) -> None:
    rebuilt = replace(
        components,
        images=tuple(
            replace(image, manifest_digest="sha256:other") if image.repository == "kube-proxy" else image
            for image in components.images
        ),
    )
    was, now = (
        value(build_inventory(make_context(site, them, Path("/s")), {}), "worker2", "pai_settings")
        for them in (components, rebuilt)
    )
    assert [part for part in was if was[part] != now[part]] == ["system_images"]


def test_no_object_and_no_check_names_an_image_by_its_tag_alone(inventory: Inventory) -> None:
    named = [text for entry in value(inventory, "master", "cluster_addons_wanted") for text in entry["values"].values()]
    named += [value(inventory, "worker1", f"cluster_verify_{name}") for name in ("image", "store_image")]
    images = [text for text in named if str(text).startswith("registry.pai.internal")]
    assert len(images) == 6
    assert all("@sha256:" in text for text in images), images


def addon(inventory: Inventory, name: str) -> dict[str, Any]:
    """The entry of an add-on, as the role is given it."""
    found: dict[str, Any] = {entry["name"]: entry for entry in value(inventory, "master", "cluster_addons_wanted")}
    entry: dict[str, Any] = found[name]
    return entry


def test_without_the_device_plugin_its_label_and_its_role_are_gone(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    sites = (
        make_site(config=CONFIG + "nvidia_device_plugin: false\n"),
        make_site(LAYOUT.replace("nvidia.com/gpu", "amd.com/gpu")),
    )
    for site in sites:
        inventory = build_inventory(make_context(site, components, Path("/s")), {})
        parts = {name for host in inventory.host_vars for name in value(inventory, host, "pai_settings")}
        assert not parts & {"addon.device_plugin", "node_labels"}


def test_machines_know_the_cache_by_name_where_there_is_one(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    cache = CONFIG + "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"
    context = make_context(make_site(config=cache), components, Path("/s"))
    assert hosts(context, context.site.machine("worker1"))["10.0.0.1"] == (
        "master",
        "registry.pai.internal",
        "docker-cache.pai.internal",
    )
    without = make_context(make_site(), components, Path("/s"))
    assert hosts(without, without.site.machine("worker1"))["10.0.0.1"] == ("master", "registry.pai.internal")


def test_a_driver_is_installed_where_the_site_asks_for_it_and_the_sku_has_devices(
    inventory: Inventory, make_site: Callable[..., Site], components: ComponentSet
) -> None:
    assert value(inventory, "worker1", "nvidia_driver_branch") is None, "the driver is the admin's"
    site = make_site(config=CONFIG + "nvidia_driver: {branch: 580, packages: nvidia}\n")
    asked = build_inventory(make_context(site, components, Path("/s")), {})
    found = [asked.variables_of("worker1")[f"nvidia_driver_{name}"] for name in ("branch", "modules", "packages")]
    assert found == [580, "open", "nvidia"]
    assert "nvidia_driver_branch" not in asked.variables_of("worker2"), "no NVIDIA devices"
    assert "nvidia_driver" in asked.settings_of("worker1")
    assert "nvidia_driver" not in asked.settings_of("worker2")


@pytest.mark.parametrize(("machines", "seconds"), [(1, 2), (100, 2), (101, 3), (500, 10), (1000, 20)])
def test_an_api_server_is_asked_fifty_times_a_second_at_most(machines: int, seconds: int) -> None:
    assert seconds_between_checks(machines) == seconds
    assert machines / seconds <= 50


def test_images_of_pods_go_where_the_site_says(make_site: Callable[..., Site], components: ComponentSet) -> None:
    """Without a word of it nothing is written: what an admin has set in containerd's own file stays."""
    plain = build_inventory(make_context(make_site(), components, Path("/s")), {})
    assert value(plain, "worker1", "container_runtime_containerd_data_root") == ""
    site = make_site(config=CONFIG + "containerd_data_root: /mnt/containerd\n")
    inventory = build_inventory(make_context(site, components, Path("/s")), {})
    assert value(inventory, "worker1", "container_runtime_containerd_data_root") == "/mnt/containerd"
    space = ContainerRuntime().space(site, site.machines[0])
    assert "/mnt/containerd" in space
    assert "/var/lib/containerd" not in space
