"""Certificates renewed, the cluster backed up and restored, the controller host lost: on the one cluster."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Cluster, until

pytestmark = pytest.mark.lab

MASTER = "lab-master"
APISERVER = "/etc/kubernetes/pki/apiserver.crt"
# what a new controller host has: the site's files, and how machines are reached
KEPT = ("lab_ssh_key", "lab_ssh_key.pub", "known_hosts")


@pytest.fixture
def lost(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """The controller host is lost: the site's state folder is gone, but for the keys by which its machines are reached.

    Gives where the old folder is; its runs come back afterwards.
    """
    state, old = cluster.site / ".pai", tmp_path / "old"
    state.rename(old)
    state.mkdir(mode=0o700)
    for name in KEPT:
        shutil.copy2(old / name, state / name)
    yield old
    for run in (old / "runs").iterdir():
        shutil.copytree(run, state / "runs" / run.name, dirs_exist_ok=True)


def ends(cluster: Cluster) -> dict[str, int]:
    """Certificate -> when it ends, of all that `certs show` lists."""
    done = cluster.run("certs", "show", "--format", "json")
    assert done.returncode == 0, done.stderr
    return {f"{row['subject']} {row['path']}": row["expires"] for row in json.loads(done.stdout)["certificates"]}


def test_every_certificate_is_shown(cluster: Cluster) -> None:
    found = ends(cluster)
    for name in (
        f"{MASTER} {APISERVER}",
        f"{MASTER} /etc/kubernetes/pki/etcd/peer.crt",
        f"{MASTER} /etc/kubernetes/controller-manager.conf",
        f"{MASTER} /etc/pai-install/store/server.pem",
        "lab-worker1 /var/lib/kubelet/pki/kubelet-client-current.pem",
        "controller host .pai/kubeconfig",
    ):
        assert name in found
    # its number says how often it was rotated
    assert any(name.startswith("controller host .pai/registry.json authority ") for name in found)


def test_renewal_of_one_control_plane(cluster: Cluster) -> None:
    before = ends(cluster)
    young = cluster.run("certs", "renew", "--yes")
    assert (young.returncode, "no certificate of a control plane ends within" in young.stderr) == (0, True)
    done = cluster.run("certs", "renew", "--within", "400", "--yes", "--format", "json")
    assert done.returncode == 0, done.stderr
    after = ends(cluster)
    renewed = {name for name, end in after.items() if end > before[name]}
    assert renewed == {
        name
        for name in before
        if name == "controller host .pai/kubeconfig"
        or (f"{MASTER} /etc/kubernetes/" in name and not name.endswith(("/ca.crt", "/front-proxy-ca.crt")))
    }
    assert MASTER in cluster.kubectl("get", "nodes")


def test_backup_and_restore(cluster: Cluster, tmp_path: Path) -> None:
    """What was deleted since is there again, what was made since is not."""
    file = tmp_path / "backup.tar.gz"
    cluster.kubectl("create", "configmap", "before-backup", "--from-literal=a=1")
    cluster.kubectl("create", "secret", "generic", "before-backup", "--from-literal=a=planted-in-secret")
    done = cluster.run("backup", str(file))
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o077 == 0
    cluster.kubectl("delete", "configmap,secret", "before-backup")
    cluster.kubectl("create", "configmap", "after-backup")
    damaged = tmp_path / "damaged.tar.gz"
    damaged.write_bytes(file.read_bytes()[:-50])
    assert cluster.run("restore", str(damaged), "--yes").returncode == 2
    restored = cluster.run("restore", str(file), "--yes")
    assert restored.returncode == 0, restored.stdout + restored.stderr
    found = cluster.kubectl("get", "configmaps,secrets", "--output=name").split()
    assert {"configmap/before-backup", "secret/before-backup"} <= set(found)
    assert "configmap/after-backup" not in found
    secret = cluster.kubectl("get", "secret", "before-backup", "--output=jsonpath={.data.a}")
    assert secret == "cGxhbnRlZC1pbi1zZWNyZXQ="
    cluster.kubectl("delete", "configmap,secret", "before-backup")
    assert cluster.to_change() == []


def test_a_snapshot_that_was_kept_becomes_a_backup(cluster: Cluster, tmp_path: Path) -> None:
    said = cluster.on(MASTER, "/usr/local/lib/pai-install/etcd-snapshot.py keep /var/lib/pai-install/etcd-backup 7")
    name = Path(said.split()[1].rstrip(",")).name
    try:
        done = cluster.run("backup", str(tmp_path / "kept.tar.gz"), "--snapshot", name)
        assert done.returncode == 0, done.stdout + done.stderr
        with tarfile.open(tmp_path / "kept.tar.gz") as archive:
            manifest = archive.extractfile("manifest.json")
            assert manifest is not None
            created = json.load(manifest)["created"]
        assert re.sub("[-:]", "", created) == name.removeprefix("etcd-").removesuffix(".db")
        other = cluster.run("backup", str(tmp_path / "other.tar.gz"), "--snapshot", "etcd-20200101T000000Z.db")
        assert (other.returncode, name in other.stdout + other.stderr) == (6, True)
    finally:
        cluster.on(MASTER, f"rm /var/lib/pai-install/etcd-backup/{name}")


def test_a_new_dev_box_takes_the_cluster_over(cluster: Cluster, lost: Path) -> None:
    """Without a change on any machine: it knows the same authority, and gets the administrator's kubeconfig."""
    assert [name for name in cluster.to_change() if name != "kubeconfig"] == []
    report = cluster.converge()
    assert report["ok"], report["stderr"]
    assert {phase["name"] for phase in report["phases"]} <= {"observe", "kubeconfig"}
    # the kubeconfig that is written on the controller host counts for the machine that it comes from
    assert {host for host, counts in report["hosts"].items() if counts["changed"]} <= {MASTER}
    assert report["hosts"].get(MASTER, {"changed": 0})["changed"] <= 1
    state = cluster.site / ".pai"
    assert (state / "registry.json").read_text() == (lost / "registry.json").read_text()
    assert (state / "kubeconfig").is_file()
    assert until(lambda: MASTER in cluster.kubectl("get", "nodes"))
