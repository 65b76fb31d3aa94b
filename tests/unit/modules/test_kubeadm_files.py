"""Files that kubeadm makes: who may read them, what differs, and what comes back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion


@pytest.fixture
def files(kubeadm_files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What modules share, with its folders in tmp_path."""
    for name in ("manifests", "copies", "rendered"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(kubeadm_files, "MANIFESTS", str(tmp_path / "manifests"))
    monkeypatch.setattr(kubeadm_files, "COPIES", str(tmp_path / "copies"))
    return kubeadm_files


def write(tmp_path: Path, **texts: str) -> None:
    """write(manifests_etcd="x") makes manifests/etcd.yaml."""
    for name, text in texts.items():
        folder, _, stem = name.partition("_")
        (tmp_path / folder / f"{stem}.yaml").write_text(text)


def test_only_what_differs_is_rendered_again(files: Any, tmp_path: Path) -> None:
    write(tmp_path, rendered_api="new", rendered_scheduler="same", rendered_etcd="new")
    write(tmp_path, manifests_api="old", manifests_scheduler="same")
    assert files.differing("init", str(tmp_path / "rendered")) == ["api.yaml", "etcd.yaml"]


def test_a_joined_members_etcd_is_compared_with_its_copy(files: Any, tmp_path: Path) -> None:
    write(tmp_path, rendered_api="same", manifests_api="same", copies_etcd="joined", manifests_etcd="joined")
    assert files.differing("join-control-plane", str(tmp_path / "rendered")) == []
    write(tmp_path, manifests_etcd="by hand")
    assert files.differing("join-control-plane", str(tmp_path / "rendered")) == ["etcd.yaml"]


def test_what_joining_rendered_comes_back(files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = tmp_path / "kubeadm-flags.env"
    monkeypatch.setattr(files, "RENDERED", (*files.RENDERED[:2], str(flags)))
    flags.write_text("flags")
    write(tmp_path, manifests_etcd="joined")
    files.keep_copies("join-control-plane")
    (tmp_path / "manifests" / "etcd.yaml").unlink()
    flags.write_text("by hand")
    files.bring_back("join-control-plane")
    assert (tmp_path / "manifests" / "etcd.yaml").read_text() == "joined"
    assert flags.read_text() == "flags"


def test_rendering_the_same_again_is_no_reason_to_restart(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "RENDERED", (str(tmp_path / "manifests" / "*.yaml"),))
    write(tmp_path, manifests_same="x", manifests_other="x")
    for name in ("same", "other"):
        os.utime(tmp_path / "manifests" / f"{name}.yaml", (1000, 1000))
    before, written = files.rendered_files(), files.written_at()
    write(tmp_path, manifests_same="x", manifests_other="changed", manifests_new="y")
    files.keep_times(before, written)
    times = {path.stem: path.stat().st_mtime for path in (tmp_path / "manifests").iterdir()}
    assert times["same"] == 1000
    assert min(times["other"], times["new"]) > 1000


@pytest.fixture
def key(files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A guarded file that is as it should be."""
    path = tmp_path / "admin.conf"
    path.write_text("secret")
    path.chmod(0o600)
    monkeypatch.setattr(files, "GUARDED", {str(tmp_path / "*.conf"): "0600"})
    monkeypatch.setattr(files, "RENDERED", ())
    return path


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
class TestGuardedFiles:
    """Keys, kubeconfigs and settings: root's, and closed to others."""

    def test_a_closed_file_is_left_alone(self, files: Any, key: Path) -> None:
        assert files.mode_problems() == {}
        files.enforce_modes()
        assert key.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize(
        ("loosen", "words"),
        [
            (lambda path: path.chmod(0o644), "has mode 0644, more than 0600"),
            (lambda path: os.chown(path, 1, 0), "belongs to 1:0, not to root"),
        ],
    )
    def test_an_opened_one_is_named_and_closed(
        self, files: Any, key: Path, loosen: Callable[[Path], None], words: str
    ) -> None:
        loosen(key)
        assert list(files.mode_problems().values()) == [f"{key} {words}"]
        files.enforce_modes()
        assert files.mode_problems() == {}

    def test_less_than_permitted_stays_less(self, files: Any, key: Path) -> None:
        key.chmod(0o400)
        files.enforce_modes()
        assert key.stat().st_mode & 0o777 == 0o400

    def test_its_mode_is_recorded_not_its_bytes(
        self, files: Any, managed: Any, key: Path, snapshot: SnapshotAssertion
    ) -> None:
        assert files.expectations("join") == [{"kind": "private", "path": str(key), "mode": "0600"}]
        key.write_text("renewed")
        assert managed.drift(files.expectations("join")) == []
        key.chmod(0o640)
        assert managed.drift(files.expectations("join")) == snapshot
        key.unlink()
        assert managed.drift([{"kind": "private", "path": str(key), "mode": "0600"}]) == []


def test_rendered_files_name_what_restarts_with_them(files: Any, snapshot: SnapshotAssertion) -> None:
    assert files.reader(f"{files.MANIFESTS}/kube-apiserver.yaml") == snapshot
    assert files.reader("/var/lib/kubelet/config.yaml") == "kubelet.service"


def test_other_files_than_the_rendered_ones(files: Any, tmp_path: Path) -> None:
    write(tmp_path, rendered_same="x", manifests_same="x", rendered_other="x", manifests_other="y", rendered_gone="x")
    (tmp_path / "rendered" / "pki").mkdir()
    assert files.other_than(str(tmp_path / "manifests"), str(tmp_path / "rendered")) == ["gone.yaml", "other.yaml"]
