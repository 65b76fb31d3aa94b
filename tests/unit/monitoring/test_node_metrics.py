"""The program that writes the ends of certificates and the last snapshot of etcd, in a folder as root of a machine."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_install.registry.identity import make_identity
from pai_install.registry.model import ServedNames

PROGRAM = Path(__file__).parents[3] / "roles/node_exporter/files/node-metrics"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
CERTIFICATE = "pai_certificate_expires_timestamp_seconds"
BACKUP = "pai_backup_timestamp_seconds"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("var/lib/pai-metrics", "var/lib/kubelet/pki", "etc/kubernetes/pki/etcd", "etc/systemd/system"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def metrics(root: Path) -> dict[str, float]:
    subprocess.run(["sh", PROGRAM, root], check=True)
    path = root / "var/lib/pai-metrics/hourly.prom"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [it.name for it in path.parent.iterdir()] == ["hourly.prom"]
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_each_certificate_has_its_end_and_what_is_none_has_no_sample(root: Path) -> None:
    identity = make_identity(ServedNames(("cache.example",), ("store.example",), 0), NOW)
    store = identity.store
    assert store is not None
    (root / "etc/kubernetes/pki/apiserver.crt").write_text(store.certificate)
    (root / "etc/kubernetes/pki/etcd/ca.crt").write_text(identity.authorities[0].certificate)
    (root / "etc/kubernetes/pki/broken.crt").write_text("no certificate")
    (root / "var/lib/kubelet/pki/kubelet-client-current.pem").write_text(store.chain)
    found = metrics(root)
    paths = ("/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/etcd/ca.crt")
    assert found.keys() == {
        f'{CERTIFICATE}{{path="{path}"}}' for path in (*paths, "/var/lib/kubelet/pki/kubelet-client-current.pem")
    }
    assert all(end > NOW.timestamp() for end in found.values())


def test_a_timer_without_a_snapshot_is_as_old_as_its_file(root: Path) -> None:
    assert BACKUP not in metrics(root)
    timer, kept = root / "etc/systemd/system/pai-etcd-backup.timer", root / "var/lib/pai-install/etcd-backup"
    timer.write_text("")
    os.utime(timer, (1000, 1000))
    assert metrics(root)[BACKUP] == 1000
    kept.mkdir(parents=True)
    for name, at in (("old", 2000), ("new", 3000)):
        (kept / name).write_text("")
        os.utime(kept / name, (at, at))
    assert metrics(root)[BACKUP] == 3000
