"""config.yaml: defaults, kinds of values, and settings that need or contradict each other."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from pai_install.site import Settings
from pai_install.site.load import SiteReading, read_site
from pai_install.site.settings import NO_EFFECT
from tests.unit.site.sites import CONFIG, write_site

HTPASSWD = base64.b64encode(b"user:$2y$05$" + b"a" * 53 + b"\n").decode()


def read(directory: Path, config: str) -> SiteReading:
    return read_site(write_site(directory, config=CONFIG + config))


def codes(reading: SiteReading) -> dict[str, str]:
    return {problem.path: problem.code for problem in reading.problems}


def test_defaults_are_openpais_where_it_had_some() -> None:
    settings = Settings(user="admin")
    assert settings.model_dump(exclude_none=True) == {
        "user": "admin",
        "kubernetes_version": "1.36",
        "nvidia_driver": "existing",
        "pod_cidr": "10.200.0.0/13",
        "service_cidr": "10.192.0.0/13",
        "pod_cidr_node_prefix": 25,
        "flannel_backend": "vxlan",
        "group_isolation": True,
        "kubelet_config": {},
        "kubelet_custom_flags": {},
        "hosts_entries": True,
        "kernel_parameters": {},
        "component_images": {},
        "ntp_servers": (),
        "component_source": "upstream",
        "component_store_port": 5080,
        "docker_packages": "distribution",
        "gpu_visible_to_all_containers": False,
        "csi_drivers": True,
        "metrics_server": True,
        "prepulled_images": (),
        "nvidia_device_plugin": True,
        "docker_data_root": "/mnt/docker",
        "docker_log_max_size": "100m",
        "docker_log_max_file": 5,
        "docker_live_restore": True,
        "openpai_docker_insecure_registries": (),
        "openpai_docker_registry_mirrors": (),
        "enable_docker_cache": False,
        "docker_cache_storage_backend": "azure",
        "docker_cache_azure_container_name": "dockerregistry",
        "docker_cache_fs_mount_path": "/var/lib/registry",
        "docker_cache_remote_url": "https://registry-1.docker.io",
        "enable_hived_scheduler": True,
        "enable_marketplace": False,
        "docker_registry_domain": "docker.io",
        "docker_registry_namespace": "openpai",
        "qos_switch": False,
        "host_daemon_port_start": 40000,
        "host_daemon_port_end": 65535,
        "docker_check": True,
        "resource_check": True,
        "openpai_kubespray_extra_var": {},
    }


@pytest.mark.parametrize(("written", "version"), [("1.36", "1.36"), ('"1.35"', "1.35"), ("v1.36.3", "1.36.3")])
def test_versions(tmp_path: Path, written: str, version: str) -> None:
    reading = read(tmp_path, f"kubernetes_version: {written}\n")
    assert reading.site is not None
    assert reading.site.settings.kubernetes_version == version


@pytest.mark.parametrize("value", ["1.16", "1.37", "1", "1.36.x", "", "1.36.3.4", "1,36"])
def test_versions_that_are_not_supported(value: str) -> None:
    with pytest.raises(ValidationError):
        Settings(user="a", kubernetes_version=value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("flannel_backend", "ipip"),
        ("component_source", "net"),
        ("docker_packages", "docker-ee"),
        ("container_default_runtime", "gvisor"),
        ("docker_cache_storage_backend", "s3"),
        ("docker_log_max_size", "2GB"),
        ("docker_log_max_size", "0m"),
        ("pod_cidr_node_prefix", 30),
        ("docker_log_max_file", 0),
        ("component_store_port", 70000),
        ("docker_data_root", "relative"),
        ("ntp_servers", ["http://x"]),
        ("ntp_servers", "ntp.example.com"),
        ("kubelet_config", ["x"]),
        ("kubelet_custom_flags", {"--x": "1"}),
        ("kernel_parameters", {"rmem_max": "1"}),
        ("kernel_parameters", {"net.ipv4.ip_forward": "0"}),
        ("kernel_parameters", {"net.ipv4.ip_local_port_range": "1 2"}),
        ("kernel_parameters", {"net.core.rmem_max": "1\n2"}),
        ("kernel_parameters", {"vm.overcommit_memory": "0"}),
        ("kernel_parameters", {"net/ipv4/ip_forward": "0"}),
        ("kernel_parameters", {"net.//.kernel.panic": "0"}),
        ("user", "-x"),
        ("unheard_of", 1),
    ],
)
def test_values_that_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"user": "admin", key: value})


def test_lists_keep_order_and_lose_doubles(tmp_path: Path) -> None:
    reading = read(tmp_path, "openpai_docker_registry_mirrors: [https://b/, https://a, https://b]\n")
    assert reading.site is not None
    assert reading.site.settings.openpai_docker_registry_mirrors == ("https://b", "https://a")


def test_kubelet_settings_are_passed_on_as_data(tmp_path: Path) -> None:
    text = "kubelet_config: {maxPods: 200, failSwapOn: false, x: {y: 1Gi}}\nkubelet_custom_flags: {v: 4}\n"
    reading = read(tmp_path, text)
    assert reading.site is not None
    assert reading.site.settings.kubelet_config == {"maxPods": 200, "failSwapOn": False, "x": {"y": "1Gi"}}
    assert reading.site.settings.kubelet_custom_flags == {"v": "4"}


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ("component_source: mirror\n", {"component_source": "site.missing"}),
        ("component_source: mirror\ncomponent_mirror_url: https://m\n", {}),
        ("component_source: mirror\ncomponent_mirror_url: m\n", {"component_mirror_url": "site.url"}),
        ("component_source: bundle\n", {"component_source": "site.missing"}),
        ("component_source: bundle\ncomponent_bundle: b.tar\n", {}),
        ("component_images: {hivedscheduler: b.tar}\n", {}),
        ("component_images: b.tar\n", {"component_images": "site.type"}),
        ("component_images: {hivedscheduler: [b.tar]}\n", {"component_images.hivedscheduler": "site.type"}),
        ("enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n", {}),
        ("enable_docker_cache: true\n", {"enable_docker_cache": "site.missing"}),
        ("docker_registry_username: x\n", {"docker_registry_username": "site.missing"}),
        ("host_daemon_port_start: 65535\n", {"host_daemon_port_start": "site.port-range"}),
        ("pod_cidr: 10.192.0.0/16\n", {"pod_cidr": "site.network-overlap"}),
        ("service_cidr: 10.200.0.0/16\n", {"service_cidr": "site.network-overlap"}),
        ("service_cidr: 11.0.0.0/8\n", {"service_cidr": "site.network-size"}),
        ("pod_cidr: 10.200.0.0/26\n", {"pod_cidr": "site.network-size"}),
        ("pod_cidr: nonsense\n", {"pod_cidr": "site.cidr"}),
    ],
)
def test_settings_between_each_other(tmp_path: Path, config: str, found: dict[str, str]) -> None:
    assert codes(read(tmp_path, config)) == found


@pytest.mark.parametrize("key", sorted(NO_EFFECT))
def test_settings_without_effect_are_accepted_and_say_so(tmp_path: Path, key: str) -> None:
    value = "{a: b}" if key == "openpai_kubespray_extra_var" else "/etc/x.json" if "path" in key else "true"
    reading = read(tmp_path, f"{key}: {value}\n")
    assert reading.site is not None
    assert codes(reading) == {key: "site.no-effect"}


@pytest.mark.parametrize("key", ["docker_cache_htpasswd", "docker_cache_registry_htpasswd"])
def test_who_may_use_the_cache_under_either_name(tmp_path: Path, key: str) -> None:
    reading = read(tmp_path, f"{key}: {HTPASSWD}\n")
    assert reading.site is not None
    assert reading.site.settings.cache_htpasswd == SecretStr(HTPASSWD)


@pytest.mark.parametrize("content", [b"user:plain\n", b"", b"user:$apr1$x$y\n"])
def test_only_bcrypt_opens_the_cache(tmp_path: Path, content: bytes) -> None:
    written = base64.b64encode(content).decode() or "'%'"
    assert "site.htpasswd" in [p.code for p in read(tmp_path, f"docker_cache_htpasswd: {written}\n").problems]


def test_a_proxy_login_is_never_shown(tmp_path: Path) -> None:
    reading = read(tmp_path, "http_proxy: http://user:pl4nted@proxy:99999\nhttps_proxy: http://u:pl4nted@x y\n")
    assert len(reading.problems) == 2
    assert "pl4nted" not in str(reading.problems)
