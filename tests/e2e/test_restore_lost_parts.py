"""A control plane that loses one part after the other, or all at once, is restored from its backup."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Cluster, until

pytestmark = [pytest.mark.lab, pytest.mark.soak]

MASTER = "lab-master"
MARK = "before-loss"
DATA = "/var/lib/etcd"
PKI, ETCD = "rm -r /etc/kubernetes/pki", "rm -r /var/lib/etcd/member"
CONFIGS, MANIFESTS = "rm /etc/kubernetes/*.conf", "rm /etc/kubernetes/manifests/*.yaml"
ENCRYPTION = "rm -r /etc/kubernetes/encryption"
# a part -> how it is lost. The programs that run from it end, as with a machine that lost its power
LOSSES = {
    "pki": (PKI,),
    "etcd": (ETCD,),
    "kubeconfigs": (CONFIGS,),
    "manifests": (MANIFESTS,),
    "encryption-key": (ENCRYPTION,),
    "pki-and-etcd": (PKI, ETCD),
    "all": (PKI, ETCD, CONFIGS, MANIFESTS, ENCRYPTION),
}
END = "crictl ps --quiet --name '^(etcd|kube-apiserver|kube-controller-manager|kube-scheduler)$' | xargs -r crictl stop"


def backed_up(cluster: Cluster, file: Path) -> None:
    """A backup with a ConfigMap and a Secret that are there now."""
    cluster.ask("delete", "configmap,secret", MARK)
    cluster.kubectl("create", "configmap", MARK, "--from-literal=a=1")
    cluster.kubectl("create", "secret", "generic", MARK, "--from-literal=a=planted")
    done = cluster.run("backup", str(file))
    assert done.returncode == 0, done.stderr


def loses(cluster: Cluster, file: Path, part: str) -> str:
    """The control plane loses the part, and is restored. Returns what the restoration said."""
    cluster.on(MASTER, "; ".join((*LOSSES[part], f"{END} || true")))
    restored = cluster.run("restore", str(file), "--yes", timeout_s=1800)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    found = cluster.kubectl("get", "configmaps,secrets", "--output=name").split()
    assert {f"configmap/{MARK}", f"secret/{MARK}"} <= set(found)
    assert cluster.kubectl("get", "secret", MARK, "--output=jsonpath={.data.a}") == "cGxhbnRlZA=="
    assert until(lambda: "True" in cluster.kubectl("get", "node", MASTER, READY), 180)
    return restored.stdout + restored.stderr


READY = "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}"


@pytest.mark.parametrize("part", LOSSES)
def test_lost_part_is_restored(cluster: Cluster, tmp_path: Path, part: str) -> None:
    file = tmp_path / "backup.tar.gz"
    backed_up(cluster, file)
    loses(cluster, file, part)
    assert cluster.to_change() == []


def test_restoration_that_is_impossible_names_its_cause(cluster: Cluster, tmp_path: Path) -> None:
    """The disk of etcd is read-only."""
    file = tmp_path / "backup.tar.gz"
    backed_up(cluster, file)
    cluster.on(MASTER, f"mount --bind {DATA} {DATA} && mount -o remount,bind,ro {DATA}")
    try:
        done = cluster.run("restore", str(file), "--yes", timeout_s=1800)
    finally:
        cluster.on(MASTER, f"umount {DATA}")
    assert done.returncode != 0
    assert DATA in done.stdout + done.stderr
    assert cluster.run("restore", str(file), "--yes", timeout_s=1800).returncode == 0
