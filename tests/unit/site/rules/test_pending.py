"""What is read but not done is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.site import load_site
from pai_install.site.rules.pending import pending

LAYOUT = """
machine-sku: {cpu: {mem: 8Gi, cpu: {vcore: 4}}}
machine-list:
  - {hostname: one, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true", pai-worker: "true"%s}
"""


def said(folder: Path, config: str = "", entry: str = "") -> tuple[str, ...]:
    """What is pending of a one-machine site with these additions."""
    (folder / "layout.yaml").write_text(LAYOUT % entry)
    (folder / "config.yaml").write_text(f"user: pai\npassword: x\n{config}")
    return pending(load_site(folder).site)


def test_plain_site_is_done_in_full(tmp_path: Path) -> None:
    assert said(tmp_path) == ()


@pytest.mark.parametrize(
    ("config", "entry", "words"),
    [
        ("docker_iptables_enabled: false\n", "", "docker_iptables_enabled"),
        ("docker_image_tag: v1.8.0\n", "", "HiveD"),
    ],
)
def test_what_is_not_done_is_named(tmp_path: Path, config: str, entry: str, words: str) -> None:
    found = said(tmp_path, config, entry)
    assert len(found) == 1
    assert words in found[0]


def test_of_the_file_server_what_is_no_nfs_is_named(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "services-configuration.yaml").write_text("storage-manager: {localpath: /srv/share}\n")
    assert said(tmp_path) == snapshot
    serving = ', pai-storage: "true"'
    assert said(tmp_path, entry=serving) == ()
    (tmp_path / "services-configuration.yaml").write_text("storage-manager: {smbuser: smb, workgroup: W}\n")
    assert said(tmp_path, entry=serving) == snapshot


def test_devices_that_are_not_nvidias_are_named(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    amd = LAYOUT.replace("vcore: 4}}", "vcore: 4}, computing-device: {type: amd.com/gpu, model: MI300X, count: 8}}")
    (tmp_path / "layout.yaml").write_text(amd % "")
    (tmp_path / "config.yaml").write_text("user: pai\npassword: x\n")
    (tmp_path / "services-configuration.yaml").write_text("device-plugin:\n  devices: [nvidia.com/gpu, rdma/hca]\n")
    plugin, checked_only = pending(load_site(tmp_path).site)
    assert plugin == snapshot
    assert "device-plugin" in checked_only


def test_a_device_plugin_section_without_devices_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "services-configuration.yaml").write_text("device-plugin:\n")
    assert all("no device plugin" not in line for line in said(tmp_path))
