"""Drift is seen where it is, merging keeps what is the admin's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion


def test_file_that_is_as_recorded_has_not_drifted(managed: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text("a = 1\n")
    path.chmod(0o644)
    expectation = {"kind": "file", "path": str(path), "sha256": managed.sha256(b"a = 1\n"), "mode": "0644"}
    assert managed.drift([expectation]) == []


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_text("a = 2\n"), "was changed by hand"),
        (lambda path: path.chmod(0o600), "has mode 0600 instead of 0644"),
    ],
)
def test_file_that_was_touched_is_named(managed: Any, tmp_path: Path, damage: Any, sentence: str) -> None:
    path = tmp_path / "a.conf"
    path.write_text("a = 1\n")
    path.chmod(0o644)
    expectation = {"kind": "file", "path": str(path), "sha256": managed.sha256(b"a = 1\n"), "mode": "0644"}
    damage(path)
    assert managed.drift([expectation]) == [f"{path} {sentence}"]


def test_other_lines_of_a_file_with_a_block_are_the_admins(
    managed: Any, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n# BEGIN pai-install\n10.0.0.1 a\n# END pai-install\n")
    expectation = {
        "kind": "block",
        "path": str(path),
        "marker": "pai-install",
        "sha256": managed.sha256(b"10.0.0.1 a\n"),
    }
    path.write_text(path.read_text() + "10.9.9.9 printer\n")
    assert managed.drift([expectation]) == []
    path.write_text(path.read_text().replace("10.0.0.1 a", "10.0.0.1 b"))
    assert managed.drift([expectation]) == snapshot
    path.write_text("127.0.0.1 localhost\n")
    assert managed.drift([expectation]) == snapshot


def test_line_that_came_back_is_shown(managed: Any, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = tmp_path / "fstab"
    path.write_text("/dev/sda2 none swap sw 0 0\n")
    expectation = {"kind": "nomatch", "path": str(path), "regexp": r"^\S+ none swap .*$"}
    assert managed.drift([expectation]) == snapshot


def test_sysctl_is_compared_with_the_kernel(managed: Any) -> None:
    value = Path("/proc/sys/kernel/ostype").read_text().strip()
    assert managed.drift([{"kind": "sysctl", "name": "kernel.ostype", "value": value}]) == []
    problems = managed.drift([{"kind": "sysctl", "name": "kernel.ostype", "value": "Plan 9"}])
    assert problems == [f"kernel.ostype is {value} instead of Plan 9"]


def test_missing_unit_and_package_are_named(managed: Any, snapshot: SnapshotAssertion) -> None:
    found = managed.drift(
        [
            {"kind": "unit", "name": "pai-no-such.service", "enabled": True, "active": True},
            {"kind": "package", "name": "pai-no-such-package"},
        ]
    )
    assert found[0].startswith("pai-no-such.service is ")
    assert found[1] == snapshot


def test_sysctl_names_with_interfaces(managed: Any) -> None:
    assert managed.sysctl_path("net.ipv4.conf.eth0/100.rp_filter") == "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"


def test_readers_of_what_has_drifted(managed: Any, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Only units that read one of the files: what a repair will restart."""
    path = str(tmp_path / "daemon.json")
    expected = [
        {"kind": "absent", "path": path},
        {"kind": "unit", "name": "a.service", "enabled": True, "active": True, "reads": [path]},
        {"kind": "unit", "name": "b.service", "enabled": True, "active": True, "reads": ["/other"]},
        {"kind": "unit", "name": "c.service", "enabled": True, "active": False, "reads": [path]},
        {"kind": "unit", "name": "d.service", "enabled": True, "active": True},
    ]
    assert managed.readers(expected) == ["a.service", "b.service", "c.service"]
    assert managed.readers(expected, {path}) == ["a.service", "c.service"]
    pod = {"kind": "file", "path": "/etc/kubernetes/manifests/etcd.yaml", "restarts": "the static pod etcd"}
    assert managed.restarts([*expected, pod], [expected[0], pod, pod]) == snapshot
    Path(path).write_text("{}")
    assert [item for item, _problem in managed.drifted(expected[:1])] == expected[:1]


def test_readers_are_also_what_no_unit_of_the_role_stands_for(managed: Any) -> None:
    """Another version of the role may write any of its files and objects: their readers are named before it does."""
    expected = [
        {"kind": "file", "path": "/etc/kubernetes/manifests/etcd.yaml", "restarts": "the static pod etcd"},
        {"kind": "file", "path": "/var/lib/kubelet/config.yaml", "restarts": "kubelet.service"},
        {"kind": "file", "path": "/var/lib/kubelet/kubeadm-flags.env", "restarts": "kubelet.service"},
        {"kind": "object", "namespace": "kube-flannel", "name": "daemonset/kube-flannel", "version": "1"},
        {"kind": "object", "namespace": "kube-flannel", "name": "configmap/kube-flannel", "version": "1"},
        {"kind": "object", "namespace": "kube-system", "name": "deployment/metrics-server", "version": "1"},
    ]
    pods = ["the pods of daemonset/kube-flannel", "the pods of deployment/metrics-server"]
    assert managed.readers(expected) == ["the static pod etcd", "kubelet.service", *pods]
    assert managed.readers(expected, {"/var/lib/kubelet/config.yaml"}) == ["kubelet.service"]


def test_what_must_be_there_may_also_have_to_hold_something(managed: Any, tmp_path: Path) -> None:
    path = tmp_path / "scheduler.conf"
    expected = [{"kind": "present", "path": str(path), "filled": True}, {"kind": "present", "path": str(path)}]
    assert managed.drift(expected) == [f"{path} is missing"] * 2
    path.write_text("")
    assert managed.drift(expected) == [f"{path} is empty"]
    path.write_text("x")
    assert managed.drift(expected) == []


def test_folder_in_the_place_of_a_file_is_named(managed: Any, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """containerd makes one for a mount whose file is gone."""
    path = tmp_path / "scheduler.conf"
    path.mkdir()
    file = {"kind": "file", "path": str(path), "sha256": "x", "mode": "0600"}
    assert managed.drift([{"kind": "present", "path": str(path), "filled": True}]) == snapshot
    assert managed.drift([file]) == snapshot
