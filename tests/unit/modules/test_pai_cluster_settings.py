"""What a control plane runs with, from the files that kubeadm wrote there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

API_SERVER = """\
spec:
  containers:
  - command:
    - kube-apiserver
    - --advertise-address=10.0.0.1
    - --service-cluster-ip-range=10.192.0.0/13
    image: registry.pai.internal/kube-apiserver:v1.36.3
    imagePullPolicy: IfNotPresent
"""
CONTROLLER_MANAGER = """\
    - kube-controller-manager
    - --cluster-cidr=10.200.0.0/13
    - --node-cidr-mask-size=25
    image: registry.pai.internal/kube-controller-manager:v1.36.3
"""
ADMIN_CONF = "clusters:\n- cluster:\n    server: https://kubernetes.pai.internal:7443\n  name: kubernetes\n"


@pytest.fixture
def control_plane(tmp_path: Path) -> Path:
    manifests = tmp_path / "etc/kubernetes/manifests"
    manifests.mkdir(parents=True)
    (manifests / "kube-apiserver.yaml").write_text(API_SERVER)
    (manifests / "kube-controller-manager.yaml").write_text(CONTROLLER_MANAGER)
    (tmp_path / "etc/kubernetes/admin.conf").write_text(ADMIN_CONF)
    return tmp_path


def test_settings_of_a_control_plane(cluster_settings: Any, control_plane: Path) -> None:
    assert cluster_settings.running_settings(str(control_plane)) == {
        "pod_cidr": "10.200.0.0/13",
        "service_cidr": "10.192.0.0/13",
        "node_prefix": "25",
        "address": "10.0.0.1",
        "version": "1.36.3",
        "endpoint": "kubernetes.pai.internal:7443",
    }


def test_what_cannot_be_read_is_left_out(cluster_settings: Any, control_plane: Path, tmp_path: Path) -> None:
    (control_plane / "etc/kubernetes/manifests/kube-controller-manager.yaml").unlink()
    (control_plane / "etc/kubernetes/admin.conf").write_text("")
    found = cluster_settings.running_settings(str(control_plane))
    assert sorted(found) == ["address", "service_cidr", "version"]
    assert cluster_settings.running_settings(str(tmp_path / "worker")) == {}


@pytest.mark.parametrize(
    ("subnet", "devices", "backend"),
    [
        ("FLANNEL_MTU=1450\n", "    lo: 1\n  eth0: 1\nflannel.1: 2\n", "vxlan"),
        ("FLANNEL_MTU=1500\n", "    lo: 1\n  eth0: 1\n", "host-gw"),
        ("", "    lo: 1\n  eth0: 1\n", None),
        ("FLANNEL_MTU=1500\n", "", None),
    ],
)
def test_backend_of_flannel_is_known_only_while_it_runs(
    cluster_settings: Any, control_plane: Path, subnet: str, devices: str, backend: str | None
) -> None:
    for path, text in (("run/flannel/subnet.env", subnet), ("proc/net/dev", devices)):
        (control_plane / path).parent.mkdir(parents=True)
        (control_plane / path).write_text(text)
    assert cluster_settings.running_settings(str(control_plane)).get("backend") == backend


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize("name", ["gpu1", "a" * 52, "gpu-17.rack0.example"])
def test_node_name_is_that_of_the_kubelets_certificate(cluster_settings: Any, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "var/lib/kubelet/pki"
    folder.mkdir(parents=True)
    subject = f"/O=system:nodes/CN=system:node:{name}"
    words = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(tmp_path / "key"), "-subj", subject]
    made = subprocess.run(["openssl", "req", "-x509", *words], check=True, capture_output=True, text=True).stdout
    # kubelets keep certificate and key in one file
    (folder / "kubelet-client-current.pem").write_text(made + (tmp_path / "key").read_text())
    assert cluster_settings.node_name(str(tmp_path)) == name


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n", "nothing"])
def test_machine_without_a_kubelets_certificate_has_no_node_name(
    cluster_settings: Any, tmp_path: Path, text: str
) -> None:
    folder = tmp_path / "var/lib/kubelet/pki"
    folder.mkdir(parents=True)
    (folder / "kubelet-client-current.pem").write_text(text)
    assert cluster_settings.node_name(str(tmp_path)) == ""
