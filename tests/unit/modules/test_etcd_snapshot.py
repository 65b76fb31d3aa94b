"""Snapshots of etcd: whole, or none."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.unit.modules.conftest import load

PROGRAM = Path(__file__).parents[3] / "roles" / "control_plane" / "files" / "etcd_snapshot.py"


@pytest.fixture(scope="module")
def snapshots() -> Any:
    return load(PROGRAM, "etcd_snapshot")


def content(size: int = 4096) -> bytes:
    """A snapshot as etcdctl writes it: the database, and the sha256 of it."""
    data = b"\0" * size
    return data + hashlib.sha256(data).digest()


@pytest.fixture
def etcdctl(snapshots: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An etcdctl_stand_in that saves what lies in `given`."""
    program = tmp_path / "etcdctl"
    there = f'[ "$1 $2" = "endpoint status" ] && exec test -f {tmp_path}/given\n'
    program.write_text(f'#!/bin/sh\n{there}[ "$1 $2" = "snapshot save" ] || exit 9\ncp {tmp_path}/given "$3"\n')
    program.chmod(0o755)
    monkeypatch.setattr(snapshots, "ETCDCTL", str(program))
    (tmp_path / "given").write_bytes(content())
    return tmp_path / "given"


def test_a_whole_one_is_for_root_alone(snapshots: Any, etcdctl: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    assert snapshots.take(str(path)) == hashlib.sha256(etcdctl.read_bytes()[:-32]).hexdigest()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.glob("*.partial")] == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (b"", "is no snapshot"),
        (content()[:-1], "is no snapshot"),
        (content()[:512] + content()[1024:], "another hash"),
        (b"\1" + content()[1:], "another hash"),
    ],
)
def test_anything_else_is_none(snapshots: Any, etcdctl: Path, tmp_path: Path, given: bytes, words: str) -> None:
    etcdctl.write_bytes(given)
    with pytest.raises(snapshots.SnapshotError, match=words):
        snapshots.take(str(tmp_path / "new.db"))
    assert [one.name for one in tmp_path.glob("new.db*")] == []


def test_an_etcd_that_does_not_answer_is_asked_for_nothing(snapshots: Any, etcdctl: Path, tmp_path: Path) -> None:
    """etcdctl would ask until its time is over, as of a control plane that has left etcd."""
    etcdctl.unlink()
    with pytest.raises(snapshots.SnapshotError, match="etcdctl ended with 1"):
        snapshots.take(str(tmp_path / "new.db"))
    assert not (tmp_path / "new.db").exists()


def test_the_oldest_go(
    snapshots: Any,
    etcdctl: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    snapshot: SnapshotAssertion,
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    for day in range(1, 4):
        (folder / f"etcd-2026010{day}T000000Z.db").write_bytes(etcdctl.read_bytes())
    (folder / "mine.db").write_text("somebody's")
    monkeypatch.setattr("sys.argv", ["x", "keep", str(folder), "2"])
    assert snapshots.main() == 0
    names = sorted(one.name for one in folder.iterdir())
    assert (len(names), names[0], names[-1]) == (3, "etcd-20260103T000000Z.db", "mine.db")
    assert "dropped 2 older ones" in capsys.readouterr().out
    etcdctl.write_bytes(b"")
    assert snapshots.main() == 1
    assert len([*folder.iterdir()]) == 3
    assert capsys.readouterr().err == snapshot


def test_one_that_was_kept_is_copied(
    snapshots: Any, etcdctl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    kept, new = tmp_path / "kept" / "etcd-20260101T000000Z.db", tmp_path / "new.db"
    kept.parent.mkdir()
    kept.write_bytes(content())
    monkeypatch.setattr("sys.argv", ["x", "copy", str(kept), str(new)])
    assert snapshots.main() == 0
    assert capsys.readouterr().out.strip() == hashlib.sha256(content()[:-32]).hexdigest()
    assert (new.read_bytes(), stat.S_IMODE(new.stat().st_mode)) == (content(), 0o600)


@pytest.mark.parametrize(
    ("name", "words"),
    [("etcd-20260102T000000Z.db", "holds etcd-20260101T000000Z.db"), ("etcd-20260101T000000Z.db", "another hash")],
)
def test_one_that_is_missing_or_damaged_is_not_copied(snapshots: Any, tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "etcd-20260101T000000Z.db").write_bytes(b"\1" + content()[1:])
    with pytest.raises(snapshots.SnapshotError, match=words):
        snapshots.copy(str(tmp_path / name), str(tmp_path / "new.db"))
    assert not (tmp_path / "new.db").exists()
