"""Space, inodes, file systems, etcd's disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.site import Site
from tests.unit.preflight.machines import CONFIG, GIB, PATHS, etcd_disk, findings_of, installed, mount, read_site

ABSOLUTE = "kubelet_config: {evictionHard: {nodefs.available: 1Gi, imagefs.available: 1Gi}}\n"


def space(site: Site, free: int, check: str = "disk-space", **changes: Any) -> Finding:
    """What is said of a worker whose only disk of 100 GiB has this much free."""
    mounts = [mount(path, total_bytes=100 * GIB, free_bytes=free * GIB, **changes) for path in PATHS]
    return findings_of(site, check, {"worker2": {"mounts": mounts}})["worker2"]


def test_plenty_of_space(site: Site) -> None:
    assert space(site, 99).verdict is Verdict.PASS


def test_space_to_install_but_not_for_images(site: Site, snapshot: SnapshotAssertion) -> None:
    found = space(site, 50)
    assert found.verdict is Verdict.WARN
    assert found.expected == snapshot


def test_less_space_than_the_kubelet_wants(site: Site, snapshot: SnapshotAssertion) -> None:
    found = space(site, 14)
    assert found.verdict is Verdict.FAIL
    assert found.value == snapshot


def test_less_space_than_an_installation_takes(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    site = read_site(tmp_path / "s", config=CONFIG + ABSOLUTE)
    assert space(site, 12).verdict is Verdict.WARN
    found = space(site, 9)
    assert found.verdict is Verdict.FAIL
    assert found.value == snapshot
    assert "evicts" not in found.value


@pytest.mark.parametrize("threshold", ["nonsense", "ten%", "10GB"])
def test_a_threshold_that_is_none_counts_as_none(tmp_path: Path, threshold: str) -> None:
    words = f"kubelet_config: {{evictionHard: {{imagefs.available: {threshold}}}}}\n"
    assert space(read_site(tmp_path / "s", config=CONFIG + words), 12).verdict is Verdict.WARN


def test_disks_are_judged_one_by_one(site: Site) -> None:
    """Containers have a full disk of their own; that the system's is empty does not help them."""
    mounts = [mount(path) for path in PATHS if path != "/var/lib/containerd"]
    full = mount("/var/lib/containerd", mount_point="/var/lib/containerd", device="2", free_bytes=2 * GIB)
    found = findings_of(site, "disk-space", {"worker2": {"mounts": [*mounts, full]}})["worker2"]
    assert found.verdict is Verdict.FAIL
    assert found.value.startswith("/var/lib/containerd: 2 GiB free")
    assert "; " not in found.value


def test_images_are_looked_for_where_the_site_says(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """The kubelet's threshold for images counts on that disk."""
    site = read_site(tmp_path / "s", config=CONFIG + "containerd_data_root: /mnt/containerd\n")
    mounts = [mount(path) for path in PATHS if path != "/var/lib/containerd"]
    full = mount("/mnt/containerd", mount_point="/mnt", device="2", total_bytes=40 * GIB, free_bytes=5 * GIB)
    found = findings_of(site, "disk-space", {"worker2": {"mounts": [*mounts, full]}})["worker2"]
    assert found.verdict is Verdict.FAIL
    assert found.value == snapshot


def test_an_installed_machine_has_used_its_space(site: Site) -> None:
    mounts = [mount(path, total_bytes=40 * GIB, free_bytes=7 * GIB) for path in PATHS]
    assert findings_of(site, "disk-space", {"worker2": {"mounts": mounts}}, installed)["worker2"].verdict == "PASS"
    mounts = [mount(path, total_bytes=40 * GIB, free_bytes=5 * GIB) for path in PATHS]
    assert findings_of(site, "disk-space", {"worker2": {"mounts": mounts}}, installed)["worker2"].verdict == "FAIL"


@pytest.mark.parametrize(("free", "verdict"), [(900, "PASS"), (51, "PASS"), (50, "FAIL"), (0, "FAIL")])
def test_inodes(site: Site, free: int, verdict: str) -> None:
    assert space(site, 99, "inodes", inodes=1000, inodes_free=free).verdict == verdict


def test_a_file_system_without_a_number_of_inodes(site: Site) -> None:
    assert space(site, 99, "inodes", inodes=0, inodes_free=0).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("path", "changes", "word"),
    [
        ("/", {"read_only": True}, "/ is mounted read-only"),
        ("/usr/local/bin", {"noexec": True}, "noexec"),
        ("/var/lib/docker", {"filesystem": "overlay"}, "overlay, which cannot hold"),
        ("/var/lib/docker", {"filesystem": "nfs4"}, "nfs4"),
        ("/var/lib/containerd", {"filesystem": "tmpfs"}, "tmpfs"),
        ("/var/lib/containerd", {"filesystem": "fuse.mergerfs"}, "mergerfs"),
    ],
)
def test_file_systems(site: Site, path: str, changes: dict[str, Any], word: str) -> None:
    mounts = [mount(other, **(changes if other == path else {})) for other in PATHS]
    found = findings_of(site, "file-systems", {"worker2": {"mounts": mounts}})["worker2"]
    assert found.verdict is Verdict.FAIL
    assert word in found.value


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs", "zfs"])
def test_good_file_systems(site: Site, filesystem: str) -> None:
    assert space(site, 99, "file-systems", filesystem=filesystem).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("disk", "verdict"),
    [
        (etcd_disk(0.4, 2.0), "PASS"),
        (etcd_disk(4, 10), "PASS"),
        (etcd_disk(4, 40), "WARN"),
        (etcd_disk(40, 400), "WARN"),
        (etcd_disk(130, 400), "FAIL"),
        (etcd_disk(samples=0), "SKIP"),
    ],
)
def test_etcd_disk(site: Site, disk: dict[str, Any], verdict: str) -> None:
    assert findings_of(site, "etcd-disk", {"master": {"etcd_disk": disk}})["master"].verdict == verdict


def test_only_control_planes_have_an_etcd_disk(site: Site) -> None:
    assert set(findings_of(site, "etcd-disk")) == {"master"}
