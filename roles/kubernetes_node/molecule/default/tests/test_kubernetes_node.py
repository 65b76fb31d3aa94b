"""The programs of the pinned version, and a kubelet that waits for kubeadm."""

from __future__ import annotations

from typing import Any

from testinfra.host import Host


def variables(host: Host) -> dict[str, Any]:
    """The role's."""
    found: dict[str, Any] = host.ansible.get_variables()
    return found


def test_programs_are_those_of_the_cluster(host: Host) -> None:
    version = variables(host)["cluster_verify_version"]
    assert host.check_output("/usr/local/bin/kubelet --version") == f"Kubernetes v{version}"
    assert host.check_output("/usr/local/bin/kubeadm version --output short") == f"v{version}"
    assert f"v{version}" in host.check_output("/usr/local/bin/kubectl version --client")
    assert host.file("/opt/cni/bin/bridge").mode & 0o111


def test_the_kubelet_starts_at_boot_and_not_before_it_is_configured(host: Host) -> None:
    assert host.service("kubelet").is_enabled
    assert not host.service("kubelet").is_running


def test_flags_are_those_of_the_site(host: Host) -> None:
    flags = host.file("/etc/default/kubelet").content_string
    for name, value in variables(host)["kubernetes_node_kubelet_args"].items():
        assert f"--{name}={value}" in flags
    assert "--max-pods" not in flags


def test_crictl_asks_containerd_and_keeps_the_admins_other_keys(host: Host) -> None:
    crictl = "/usr/local/bin/crictl config --get"
    for key in ("runtime-endpoint", "image-endpoint"):
        assert host.check_output(f"{crictl} {key}") == "unix:///run/containerd/containerd.sock"
    assert host.check_output(f"{crictl} timeout") == "7"
    assert "dockershim" in host.check_output("cat /etc/crictl.yaml.*.pai-backup")


def test_flags_of_the_admin_lie_beside_them(host: Host) -> None:
    assert host.check_output("cat /etc/default/kubelet.*.pai-backup") == "KUBELET_EXTRA_ARGS=--max-pods=7"


def test_the_admins_addition_to_the_unit_is_kept(host: Host) -> None:
    assert host.check_output("systemctl show --property=CPUWeight --value kubelet") == "200"
