"""Configuration that is built as data: what it must hold, and what of the admin's it must keep."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util

RUNTIME = {
    "sandbox_image": "r/pause:1",
    "nvidia_path": "/opt/nvidia-container-runtime",
    "default_runtime": "nvidia",
    "containerd_root": "",
}
DOCKER = {
    "data_root": "/mnt/docker",
    "log_max_size": "100m",
    "log_max_file": 5,
    "live_restore": True,
    "nvidia_path": "",
    "default_runtime": "runc",
}
CONTROL_PLANE = {
    "name": "master",
    "address": "10.0.0.1",
    "schedulable": False,
    "kubelet_config": {"maxPods": 200, "systemReserved": {"memory": "1Gi"}},
    "version": "1.36.3",
    "image_repository": "registry.pai.internal",
    "coredns_tag": "v1.14.2",
    "etcd_tag": "3.6.8-0",
    "endpoint": "kubernetes.pai.internal:6443",
    "sans": ["10.0.0.1"],
    "pod_cidr": "10.200.0.0/16",
    "service_cidr": "10.192.0.0/16",
    "node_prefix": 25,
    "dns_domain": "cluster.local",
    "dns_apart": False,
}


def test_containerd_on_an_empty_machine(filters: Any, facts: dict[str, Any]) -> None:
    patch = filters.containerd_patch(RUNTIME, facts)
    config = tomllib.loads(filters.containerd_config({"text": "", "version": 4}, patch))
    assert config["version"] == 4
    runtime = config["plugins"][filters.CRI_RUNTIME]
    assert runtime["containerd"]["default_runtime_name"] == "nvidia"
    assert runtime["containerd"]["runtimes"]["nvidia"]["options"] == {
        "BinaryName": "/opt/nvidia-container-runtime",
        "SystemdCgroup": True,
    }
    assert runtime["restrict_oom_score_adj"] is False
    assert config["plugins"][filters.CRI_IMAGES]["pinned_images"]["sandbox"] == "r/pause:1"


def test_containerd_keeps_what_the_admin_wrote(
    filters: Any, facts: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    text = """version = 3
# big images live on the fast disk
root = "/fast/containerd"
disabled_plugins = ["cri", "io.containerd.snapshotter.v1.zfs"]

[plugins."io.containerd.cri.v1.runtime"]
  max_container_log_line_size = 32768

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.kata]
  runtime_type = "io.containerd.kata.v2"
"""
    merged = filters.containerd_config({"text": text, "version": 4}, filters.containerd_patch(RUNTIME, facts))
    config = tomllib.loads(merged)
    assert merged == snapshot
    assert config["root"] == "/fast/containerd"
    assert config["disabled_plugins"] == ["io.containerd.snapshotter.v1.zfs"]
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["max_container_log_line_size"] == 32768
    assert set(runtime["containerd"]["runtimes"]) == {"kata", "runc", "nvidia"}


def test_containers_have_what_containerd_gives_them_without_raw_packets(filters: Any) -> None:
    """With NET_RAW a pod sends with the address of any other pod. Limits would be those of the file."""
    names = ["CAP_CHOWN", "CAP_NET_RAW", "CAP_KILL"]
    process = {"cwd": "/", "capabilities": {"bounding": names, "permitted": names}, "rlimits": [{"hard": 1024}]}
    linux = {"maskedPaths": ["/proc/kcore"], "seccomp": {}}
    made = filters.container_spec(json.dumps({"process": {**process, "apparmorProfile": "x"}, "linux": linux}))
    kept = ["CAP_CHOWN", "CAP_KILL"]
    assert json.loads(made) == {
        "process": {"cwd": "/", "capabilities": {"bounding": kept, "permitted": kept}},
        "linux": {"maskedPaths": ["/proc/kcore"]},
    }


def test_all_runtimes_of_ours_use_it(filters: Any, facts: dict[str, Any]) -> None:
    runtimes = filters.containerd_patch(RUNTIME, facts)["plugins"][filters.CRI_RUNTIME]["containerd"]["runtimes"]
    assert {name: it["base_runtime_spec"] for name, it in runtimes.items()} == {
        "runc": filters.CONTAINER_SPEC,
        "nvidia": filters.CONTAINER_SPEC,
    }


def test_merging_containerd_twice_changes_nothing(filters: Any, facts: dict[str, Any]) -> None:
    patch = filters.containerd_patch(RUNTIME, facts)
    once = filters.containerd_config({"text": "", "version": 4}, patch)
    assert filters.containerd_config({"text": once, "version": 4}, patch) == once


@pytest.mark.parametrize(
    ("folders", "wanted"),
    [
        ("bin_dirs = ['/usr/lib/cni']", ["/opt/cni/bin", "/usr/lib/cni"]),
        ("bin_dir = '/usr/lib/cni'", ["/opt/cni/bin", "/usr/lib/cni"]),
        ("bin_dirs = ['/opt/cni/bin', '/mine']", ["/opt/cni/bin", "/mine"]),
    ],
)
def test_cni_programs_are_found_where_a_distribution_says_otherwise(
    filters: Any, facts: dict[str, Any], folders: str, wanted: list[str]
) -> None:
    """Debian's package ships a configuration that looks in /usr/lib/cni only: no pod would get a network."""
    text = f"version = 3\n[plugins.'io.containerd.cri.v1.runtime'.cni]\n{folders}\n"
    patch = filters.containerd_patch(RUNTIME, facts)
    merged = filters.containerd_config({"text": text, "version": 3}, patch)
    cni = tomllib.loads(merged)["plugins"][filters.CRI_RUNTIME]["cni"]
    assert cni["bin_dirs"] == wanted
    assert not cni.get("bin_dir")
    assert filters.containerd_config({"text": merged, "version": 3}, patch) == merged


def test_another_log_driver_stays_with_its_options(filters: Any, facts: dict[str, Any]) -> None:
    """Options of one driver are refused by another: Docker would not come up."""
    patch = filters.docker_patch(DOCKER, {**facts, "docker": {"log_driver": "syslog"}})
    assert not {"log-driver", "log-opts"} & set(patch)
    patch = filters.docker_patch(DOCKER, {**facts, "docker": {"log_driver": "json-file"}})
    assert patch["log-opts"] == {"max-size": "100m", "max-file": "5"}


def test_no_nvidia_runtime_without_devices(filters: Any, facts: dict[str, Any]) -> None:
    settings = {**RUNTIME, "nvidia_path": "", "default_runtime": "runc"}
    patch = filters.containerd_patch(settings, facts)
    assert list(patch["plugins"][filters.CRI_RUNTIME]["containerd"]["runtimes"]) == ["runc"]
    docker = filters.docker_patch(DOCKER, facts)
    assert "runtimes" not in docker
    assert "default-runtime" not in docker


def test_docker_has_the_nvidia_runtime_where_there_are_devices(filters: Any, facts: dict[str, Any]) -> None:
    settings = {**DOCKER, "nvidia_path": "/opt/n", "default_runtime": "nvidia"}
    patch = filters.docker_patch(settings, facts)
    assert patch["runtimes"] == {"nvidia": {"path": "/opt/n", "args": []}}
    assert patch["default-runtime"] == "nvidia"
    assert patch["features"]["cdi"] is True, "docker run --device nvidia.com/gpu=all"


@pytest.mark.parametrize("nvidia", ["", "/opt/n"])
def test_images_of_a_new_docker_are_in_its_own_folder_and_one_that_is_there_keeps_what_it_has(
    filters: Any, facts: dict[str, Any], nvidia: str
) -> None:
    settings = {**DOCKER, "nvidia_path": nvidia}
    new = filters.docker_patch(settings, {**facts, "docker": {"version": ""}})
    assert new["features"]["containerd-snapshotter"] is False
    old = filters.docker_patch(settings, {**facts, "docker": {"version": "29.1.3"}})
    assert "containerd-snapshotter" not in old.get("features", {})
    again = filters.docker_patch(settings, {**facts, "docker": {"version": "29.1.3", "own_images": True}})
    assert again == new, "what was set with a new Docker stays: taking it away would restart Docker and hide its images"


@pytest.mark.parametrize(("wanted", "root"), [("", "/fast/containerd"), ("/mnt/containerd", "/mnt/containerd")])
def test_containerd_keeps_images_where_the_site_says_or_where_they_are(
    filters: Any, facts: dict[str, Any], wanted: str, root: str
) -> None:
    patch = filters.containerd_patch({**RUNTIME, "containerd_root": wanted}, facts)
    merged = filters.containerd_config({"text": 'version = 4\nroot = "/fast/containerd"\n', "version": 4}, patch)
    assert tomllib.loads(merged)["root"] == root


def test_files_that_the_configuration_imports_do_not_win_over_ours(filters: Any, facts: dict[str, Any]) -> None:
    """`nvidia-ctk runtime configure` names such a file, and the runtimes that are in it."""
    text = 'version = 4\nimports = ["/etc/containerd/conf.d/*.toml"]\n'
    patch = filters.containerd_patch(RUNTIME, facts)
    merged = filters.containerd_config({"text": text, "version": 4}, patch)
    imports = tomllib.loads(merged)["imports"]
    assert imports == ["/etc/containerd/conf.d/*.toml", "/etc/pai-install/containerd.toml"]
    last = tomllib.loads(filters.containerd_last(merged, patch))
    assert last == {"version": 4, **patch}
    assert filters.containerd_config({"text": merged, "version": 4}, patch) == merged


def test_a_configuration_of_one_file_stays_one(filters: Any, facts: dict[str, Any]) -> None:
    patch = filters.containerd_patch(RUNTIME, facts)
    merged = filters.containerd_config({"text": "version = 4\n", "version": 4}, patch)
    assert "imports" not in tomllib.loads(merged)
    assert filters.containerd_last(merged, patch) == ""


@pytest.mark.parametrize(
    ("cgroup", "container", "driver"),
    [(2, False, "systemd"), (2, True, "systemd"), (1, False, "systemd"), (1, True, "cgroupfs")],
)
def test_one_cgroup_driver_for_all_three(
    filters: Any, facts: dict[str, Any], cgroup: int, container: bool, driver: str
) -> None:
    assert module_util("pai_machine").cgroup_driver(cgroup, container) == driver
    facts |= {"cgroup_version": cgroup, "cgroup_driver": driver}
    assert filters.docker_patch(DOCKER, facts)["exec-opts"] == [f"native.cgroupdriver={driver}"]
    kubelet = filters.kubelet_config({}, facts)
    assert kubelet["cgroupDriver"] == driver
    assert kubelet["failCgroupV1"] is (cgroup == 2)
    runtimes = filters.containerd_patch(RUNTIME, facts)["plugins"][filters.CRI_RUNTIME]["containerd"]["runtimes"]
    assert {entry["options"]["SystemdCgroup"] for entry in runtimes.values()} == {driver == "systemd"}


def test_nothing_is_ignored_on_a_plain_machine(filters: Any, facts: dict[str, Any]) -> None:
    assert filters.kubeadm_ignored(facts) == []


@pytest.mark.parametrize(
    ("resolved", "arguments", "flags"),
    [
        # kubeadm's file, which is systemd-resolved's on every machine that has it
        (True, {"node-ip": "192.0.2.1"}, "--node-ip=192.0.2.1"),
        (False, {"node-ip": "192.0.2.1"}, "--node-ip=192.0.2.1 --resolv-conf=/etc/resolv.conf"),
        (False, {"resolv-conf": "/etc/own.conf"}, "--resolv-conf=/etc/own.conf"),
        (True, {}, ""),
    ],
)
def test_a_machine_without_resolved_gives_pods_its_own_resolvers(
    filters: Any, facts: dict[str, Any], resolved: bool, arguments: dict[str, str], flags: str
) -> None:
    assert filters.kubelet_flags(arguments, {**facts, "resolved": resolved}) == flags


def test_open_files_are_not_raised_where_the_kernel_refuses(filters: Any, facts: dict[str, Any]) -> None:
    limits = filters.docker_patch(DOCKER, facts)["default-ulimits"]
    assert (limits["nofile"]["Hard"], limits["memlock"]["Hard"]) == (1048576, -1)
    assert "default-ulimits" not in filters.docker_patch(DOCKER, {**facts, "sys_resource": False})


def test_dns_pods_are_kept_apart_by_a_patch_where_there_are_several_machines(
    filters: Any, facts: dict[str, Any]
) -> None:
    assert "patches" not in next(yaml.safe_load_all(filters.kubeadm_init(CONTROL_PLANE, facts)))
    apart = filters.kubeadm_init({**CONTROL_PLANE, "dns_apart": True}, facts)
    assert next(yaml.safe_load_all(apart))["patches"] == {"directory": filters.PATCHES_DIR}


def test_kubeadm_init_is_four_documents(filters: Any, facts: dict[str, Any]) -> None:
    documents = {doc["kind"]: doc for doc in yaml.safe_load_all(filters.kubeadm_init(CONTROL_PLANE, facts))}
    assert set(documents) == {
        "InitConfiguration",
        "ClusterConfiguration",
        "KubeletConfiguration",
        "KubeProxyConfiguration",
    }
    cluster = documents["ClusterConfiguration"]
    assert cluster["kubernetesVersion"] == "v1.36.3"
    arguments = {entry["name"]: entry["value"] for entry in cluster["apiServer"]["extraArgs"]}
    assert arguments["audit-policy-file"] == filters.AUDIT_POLICY
    assert "encryption-provider-config" in arguments
    assert documents["KubeProxyConfiguration"]["mode"] == "nftables"
    assert "taints" not in documents["InitConfiguration"]["nodeRegistration"]
    kubelet = documents["KubeletConfiguration"]
    assert kubelet["maxPods"] == 200
    assert kubelet["systemReserved"] == {"cpu": "200m", "memory": "1Gi"}


def test_the_site_has_the_last_word_on_hardening(filters: Any, facts: dict[str, Any]) -> None:
    settings = {
        **CONTROL_PLANE,
        "kubelet_config": {"seccompDefault": False, "authentication": {"webhook": {"cacheTTL": "1m"}}},
    }
    documents = {doc["kind"]: doc for doc in yaml.safe_load_all(filters.kubeadm_init(settings, facts))}
    kubelet = documents["KubeletConfiguration"]
    assert kubelet["seccompDefault"] is False
    assert kubelet["authentication"]["anonymous"] == {"enabled": False}
    assert filters.KUBELET_HARDENING["seccompDefault"] is True


def test_only_what_must_answers_without_credentials(filters: Any) -> None:
    """A joining machine and the probes of the API server know nobody yet."""
    role = Path(__file__).parents[3] / "roles" / "control_plane"
    config = yaml.safe_load((role / "files" / "authentication.yaml").read_text())
    paths = {entry["path"] for entry in config["anonymous"]["conditions"]}
    assert paths == {"/livez", "/readyz", "/healthz", "/api/v1/namespaces/kube-public/configmaps/cluster-info"}
    written = (role / "tasks" / "main.yml").read_text()
    assert f"path: {filters.AUTHENTICATION_DIR}/config.yaml" in written


def test_control_plane_that_also_works_has_no_taint(filters: Any, facts: dict[str, Any]) -> None:
    text = filters.kubeadm_init({**CONTROL_PLANE, "schedulable": True}, facts)
    assert next(yaml.safe_load_all(text))["nodeRegistration"]["taints"] == []


def test_join_holds_token_and_digest(filters: Any) -> None:
    words = {"name": "w", "endpoint": "e:6443", "token": "t", "ca_hash": "h"}
    join = yaml.safe_load(filters.kubeadm_join(words))
    assert "controlPlane" not in join
    assert join["discovery"]["bootstrapToken"] == {"apiServerEndpoint": "e:6443", "token": "t", "caCertHashes": ["h"]}


def test_one_more_control_plane_brings_its_address_and_the_key(filters: Any) -> None:
    words = {
        "name": "m",
        "endpoint": "e:6443",
        "token": "t",
        "ca_hash": "h",
        "address": "10.0.0.2",
        "schedulable": True,
    }
    join = yaml.safe_load(filters.kubeadm_join({**words, "certificate_key": "k"}))
    assert join["controlPlane"]["localAPIEndpoint"] == {"advertiseAddress": "10.0.0.2", "bindPort": 6443}
    assert join["controlPlane"]["certificateKey"] == "k"
    assert join["nodeRegistration"]["taints"] == []


TOOLKIT = """# what our admin wants
disable-require = false
#accept-nvidia-visible-devices-envvar-when-unprivileged = true

[nvidia-container-cli]
environment = []

[nvidia-container-runtime]
mode = "auto"
"""
ASKED = "accept-nvidia-visible-devices-envvar-when-unprivileged"
BY_MOUNT = "accept-nvidia-visible-devices-as-volume-mounts"


@pytest.mark.parametrize("everyone", [True, False])
def test_toolkit_believes_a_containers_environment_only_where_the_site_says_so(filters: Any, everyone: bool) -> None:
    assert tomllib.loads(filters.toolkit_config("", everyone=everyone)) == {ASKED: everyone, BY_MOUNT: True}


def test_toolkit_keeps_what_the_admin_wrote(filters: Any, snapshot: SnapshotAssertion) -> None:
    merged = filters.toolkit_config(TOOLKIT, everyone=False)
    document = tomllib.loads(merged)
    assert (document[ASKED], document[BY_MOUNT]) == (False, True), "keys of the whole file, of no table"
    assert document["disable-require"] is False
    assert document["nvidia-container-runtime"] == {"mode": "auto"}
    assert merged == snapshot
    assert filters.toolkit_config(merged, everyone=False) == merged


def test_toolkit_that_cannot_be_read_is_named(filters: Any) -> None:
    with pytest.raises(ValueError, match=r"/etc/nvidia-container-runtime/config\.toml is not valid TOML"):
        filters.toolkit_config("[", everyone=False)


class Tagged(str):  # noqa: SLOT000 - as Ansible makes them
    """Ansible's values are subclasses of the plain types."""


def test_values_as_ansible_gives_them(filters: Any, facts: dict[str, Any]) -> None:
    tagged = {key: Tagged(value) if isinstance(value, str) else value for key, value in CONTROL_PLANE.items()}
    assert filters.kubeadm_init(tagged, facts) == filters.kubeadm_init(CONTROL_PLANE, facts)
    patch = filters.containerd_patch({**RUNTIME, "sandbox_image": Tagged("r/pause:1")}, facts)
    assert 'sandbox = "r/pause:1"' in filters.containerd_config({"text": "", "version": 4}, patch)


def test_proxy_login_stands_in_a_file_and_nothing_in_it_is_expanded(filters: Any) -> None:
    """What stands in Environment= of a unit every user can ask systemd for."""
    proxy = {"http": 'http://bob:p"a$s%\\`w@proxy:3128', "https": "", "no_proxy": "localhost,10.0.0.0/8"}
    assert filters.proxy_environment(proxy).splitlines()[1:] == [
        'HTTP_PROXY="http://bob:p\\"a\\$s%\\\\\\`w@proxy:3128"',
        'NO_PROXY="localhost,10.0.0.0/8"',
    ]
