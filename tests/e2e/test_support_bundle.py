"""A support bundle of a real cluster: what is needed is in it, no planted secret is, and it stays small."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from .conftest import PLANTED_SECRET, Cluster

pytestmark = pytest.mark.lab


def test_bundle_holds_logs_and_no_secret(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    done = cluster.run("support-bundle", "--out", str(path), "--timeout", "90", timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size < 30_000_000
    with tarfile.open(path) as archive:
        texts = {entry.name.partition("/")[2]: archive.extractfile(entry) for entry in archive}
        content = {name: file.read().decode("utf-8", "replace") for name, file in texts.items() if file}
    for machine in ("lab-master", "lab-worker1"):
        assert f"machines/{machine}/journal-kubelet.txt" in content
        assert content[f"machines/{machine}/containerd-version.txt"].startswith("containerd")
    assert "etcd" in content["machines/lab-master/etcd-members.txt"] or content["machines/lab-master/etcd-members.txt"]
    assert "registry" in content["machines/lab-master/journal-pai-component-store.txt"]
    logs = [name for name in content if name.startswith("cluster/logs/kube-system/")]
    assert {"kube-apiserver-lab-master.txt", "etcd-lab-master.txt"} <= {name.rpartition("/")[2] for name in logs}
    assert {"status.json", "cluster/nodes.json", "site/config.yaml", "README.txt"} <= content.keys()
    holding = [name for name, text in content.items() if PLANTED_SECRET in text or "PRIVATE KEY-----\nM" in text]
    assert holding == []
