"""`pai-install backup` and `restore` from argv to exit code."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.engine.base import Event, RunRequest
from pai_install.errors import ExitCode
from pai_install.run.actions import LocalWorker
from pai_install.run.backup import BackupManifest, backup_worker, pack, read_backup
from pai_install.run.state import StateFolder
from tests.unit.cli.stub_environment import World, facts, run, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.runs import done, event

UID = "0f0e0d0c"


def joined(name: str) -> dict[str, Any]:
    """Facts of a machine that is in a cluster."""
    found = facts(name)
    found["pai"]["kubernetes"] = {"control_plane": name == "master", "node": True, "joined": True}
    return found


class Backed(World):
    """A world whose control plane packs something, and whose backups are the product's."""

    def local_work(self, site: Any, state: StateFolder, *others: Any) -> Mapping[str, LocalWorker]:
        """With the real work of a backup."""
        return {**super().local_work(site, state, *others), "backup": backup_worker(site, state)}


def machine_tar() -> bytes:
    """What a control plane packed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("etcd.db")
        entry.size = 3
        archive.addfile(entry, io.BytesIO(b"abc"))
    return buffer.getvalue()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


@pytest.fixture
def world(in_world: Any, site: Path) -> World:
    del site
    seen = done(*(event("ok", name, ansible_facts=joined(name)) for name in ("master", "one", "two")))
    fine = {name: done(event("ok", "master", "Do it")) for name in ("backup.yml", "restore.yml")}
    made: World = in_world(Backed(script={"observe.yml": seen, **fine}))
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": UID}}
    made.api = FakeCluster.of(space)
    return made


def taking(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the playbook leave what the action plugin would have brought."""
    plain = world.ansible.run

    def play(request: RunRequest) -> Iterator[Event]:
        if request.playbook == "backup.yml":
            path = Path(request.extra_vars["backup_on_box"])
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(machine_tar())
        return plain(request)

    monkeypatch.setattr(world.ansible, "run", play)


def test_a_backup_is_made_without_a_question(
    site: Path, world: World, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking(world, monkeypatch)
    assert run(["backup", "--site", str(site), str(site / "b.tar.gz")]) == ExitCode.OK
    assert read_backup(site / "b.tar.gz").cluster == UID
    assert run(["backup", "--site", str(site), str(site / "b.tar.gz")]) == ExitCode.USAGE
    assert "b.tar.gz: the file exists" in capsys.readouterr().err
    assert run(["backup", "--site", str(site)]) == ExitCode.OK
    (made,) = (site / ".pai" / "backups").glob("*.tar.gz")
    assert made.stat().st_mode & 0o077 == 0


def test_a_snapshot_that_was_kept_is_taken_by_its_name(
    site: Path, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking(world, monkeypatch)
    words = ["backup", "--site", str(site), str(tmp_path / "b.tar.gz"), "--snapshot"]
    assert run([*words, "etcd-20270131T020304Z.db"]) == ExitCode.OK
    (packing,) = (request for request in world.ansible.requests if request.playbook == "backup.yml")
    assert packing.extra_vars["backup_snapshot"] == "etcd-20270131T020304Z.db"
    assert read_backup(tmp_path / "b.tar.gz").created == "2027-01-31T02:03:04Z"
    words[3] = str(tmp_path / "other.tar.gz")
    for name in ("../etcd.db", "latest", "etcd-20270131T020304Z.db.partial"):
        assert run([*words, name]) == ExitCode.USAGE


@pytest.fixture
def file(site: Path, tmp_path: Path) -> Path:
    machine, path = tmp_path / "machine", tmp_path / "b.tar.gz"
    machine.write_bytes(machine_tar())
    (site / ".pai").mkdir(exist_ok=True)
    manifest = BackupManifest(cluster=UID, leader="master", created="2027-01-31T00:00:00Z")
    pack(site, StateFolder(site / ".pai"), machine, path, manifest)
    return path


def test_a_restoration_is_followed_by_apply(site: Path, world: World, file: Path) -> None:
    assert run(["restore", "--site", str(site), str(file), "--yes"]) == ExitCode.OK
    played = [request.playbook for request in world.ansible.requests]
    assert played == ["observe.yml", "restore.yml", "observe.yml"]
    (restoring,) = (request for request in world.ansible.requests if request.playbook == "restore.yml")
    assert not Path(restoring.extra_vars["restore_on_box"]).exists(), "no key of the cluster stays behind"


def test_machines_that_were_installed_anew_are_let_in_as_by_apply(site: Path, world: World, file: Path) -> None:
    """Their host keys are new, and what preflight has against them may be let pass: in both of its runs."""
    world.new_machines = ("master", "one", "two")
    words = ["restore", "--site", str(site), str(file), "--yes", "--accept-new", "--force-check"]
    assert run([*words, "no-such-check"]) == ExitCode.USAGE
    assert world.asked == []
    assert run([*words, "etcd-disk"]) == ExitCode.OK
    assert [one["accept_new"] for one in world.asked if "accept_new" in one] == [True]


def test_it_asks_first_and_refuses_what_is_no_backup(
    site: Path, world: World, file: Path, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    assert run(["restore", "--site", str(site), str(file)]) == ExitCode.USAGE
    assert run(["restore", "--site", str(site), str(site / "layout.yaml"), "--yes"]) == ExitCode.USAGE
    assert capsys.readouterr().err == snapshot
    assert world.ansible.requests == []


def test_only_the_site_comes_to_a_new_dev_box(
    tmp_path: Path, world: World, file: Path, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    new = tmp_path / "new"
    assert run(["restore", "--site", str(new), str(file), "--only-site"]) == ExitCode.OK
    assert (new / "layout.yaml").is_file()
    assert capsys.readouterr().err == snapshot
    assert world.ansible.requests == []


def test_a_failed_restoration_is_not_followed_by_anything(site: Path, in_world: Any, file: Path) -> None:
    seen = done(*(event("ok", name, ansible_facts=joined(name)) for name in ("master", "one", "two")))
    failed = done(event("failed", "master", "Restore etcd from the backup", msg="no etcdutl"), rc=2)
    acted = in_world(Backed(script={"observe.yml": seen, "restore.yml": failed}))
    assert run(["restore", "--site", str(site), str(file), "--yes"]) == ExitCode.STEP_FAILED
    assert [request.playbook for request in acted.ansible.requests] == ["observe.yml", "restore.yml"]
