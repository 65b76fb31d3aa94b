"""A backup packed on a control plane, and put in the place of etcd's data."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.modules.conftest import ModuleFailedError, Run

ROOT = Path(__file__).parents[3]
PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
CERTIFICATES = (
    *("apiserver", "apiserver-etcd-client", "apiserver-kubelet-client", "front-proxy-client"),
    *("etcd/server", "etcd/peer", "etcd/healthcheck-client"),
)
KUBECONFIGS = ("admin.conf", "controller-manager.conf", "scheduler.conf")
MADE = (*(f"pki/{name}{ending}" for name in CERTIFICATES for ending in (".crt", ".key")), *KUBECONFIGS)


@pytest.fixture
def library(library: Callable[[str], Any]) -> Callable[[str], Any]:
    """Each module loaded once, so that what a test replaces in it stays replaced."""
    return cache(library)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A control plane: manifests, keys and data of etcd."""
    for folder in ("manifests", "kubernetes/pki/etcd", "kubernetes/encryption", "etcd/member/wal", "state"):
        (tmp_path / folder).mkdir(parents=True)
    for name in PODS:
        (tmp_path / "manifests" / f"{name}.yaml").write_text(f"kind: Pod # {name}")
    for name in ("pki/ca.crt", "pki/ca.key", "pki/etcd/ca.crt", "encryption/config.json", *MADE):
        (tmp_path / "kubernetes" / name).write_text(f"now {name}")
    (tmp_path / "etcd/member/wal/0.wal").write_text("now")
    (tmp_path / "state/kubeadm.json").write_text('{"state": "init", "done": true}')
    return tmp_path


@pytest.fixture
def restoring(library: Any, machine: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module on that machine, with an etcdutl_stand_in that restores a file of its own."""
    module = library("pai_restore")
    etcdutl = machine / "etcdutl"
    etcdutl.write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = --data-dir ] && dir=$2; shift; done\n'
        'mkdir -p "$dir/member/wal" && echo restored > "$dir/member/wal/0.wal"\n'
    )
    etcdutl.chmod(0o755)
    for name, value in {
        "ETCDUTL": str(etcdutl),
        "CRICTL": str(machine / "no-crictl"),
        "MANIFESTS": str(machine / "manifests"),
        "DATA": str(machine / "etcd"),
        "ASIDE": str(machine / "aside"),
        "STATE_DIR": str(machine / "state"),
        "ADMIN_CONF": str(machine / "kubernetes" / "admin.conf"),
        "youngest_start": lambda _name: 0.0,
        "readiness": lambda _url: (True, "ok"),
    }.items():
        monkeypatch.setattr(module, name, value)
    for name in ("stop", "start"):
        monkeypatch.setattr(getattr(module, name), "__defaults__", (str(machine / "aside"),))
    for name in ("require_same_cluster", "lay_keys"):
        monkeypatch.setattr(getattr(module, name), "__defaults__", (str(machine / "kubernetes"),))
    monkeypatch.setattr(module.missing_files, "__defaults__", (str(machine / "kubernetes"), ""))
    return module


def packed(machine: Path, **files: str) -> Path:
    """A backup with these files; "/" is "__" in their names."""
    path = machine / "given.tar"
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/").replace("_dot_", "."))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
    return path


GOOD = {
    "etcd_dot_db": "snapshot",
    "kubernetes__pki__ca_dot_crt": "now pki/ca.crt",
    "kubernetes__pki__sa_dot_key": "then sa.key",
    "kubernetes__encryption__config_dot_json": "then encryption",
}


def run(run_module: Run, archive: Path) -> dict[str, Any]:
    return run_module("pai_restore", state="restored", archive=str(archive), name="m1", address="10.0.0.1")


def wal(machine: Path) -> str:
    return (machine / "etcd/member/wal/0.wal").read_text().strip()


@pytest.mark.usefixtures("restoring")
def test_data_are_replaced_and_those_of_before_stay(machine: Path, run_module: Run) -> None:
    result = run(run_module, packed(machine, **GOOD))
    assert result["changed"]
    assert wal(machine) == "restored"
    assert (Path(result["before"]) / "wal/0.wal").read_text() == "now"
    assert sorted(path.stem for path in (machine / "manifests").iterdir()) == sorted(PODS)
    kubernetes = machine / "kubernetes"
    assert (kubernetes / "encryption/config.json").read_text() == "then encryption"
    assert (kubernetes / "pki/sa.key").read_text() == "then sa.key"
    assert stat.S_IMODE((kubernetes / "pki/sa.key").stat().st_mode) == 0o600
    assert (kubernetes / "pki/apiserver.crt").read_text() == "now pki/apiserver.crt"
    assert [path.name for path in (machine / "state").iterdir()] == ["kubeadm.json"]
    again = run(run_module, packed(machine, **GOOD))
    kept = [path.name for path in (machine / "etcd").iterdir()]
    assert sorted(kept) == sorted(["member", Path(again["before"]).name]), "one copy of before, not more"


def test_tries_that_failed_leave_what_the_cluster_was(
    machine: Path, restoring: Any, run_module: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many: the first copy stays through them, and what the last try replaced."""
    stamps = iter(f"2026112{day}T000000Z" for day in range(10))
    monkeypatch.setattr(restoring.time, "strftime", lambda *_words: next(stamps))
    monkeypatch.setattr(restoring, "until", lambda holds, _seconds: bool(holds()))
    archive = packed(machine, **GOOD)
    monkeypatch.setattr(restoring, "readiness", lambda _url: (False, "no"))
    for _try in range(4):
        with pytest.raises(ModuleFailedError, match=r"the previous data are in .*20261120T000000Z"):
            run(run_module, archive)
        copies = [path for path in (machine / "etcd").iterdir() if path.name != "member"]
        assert len(copies) <= 2, "tries must not fill the disk"
        assert (min(copies) / "wal/0.wal").read_text() == "now"
    monkeypatch.setattr(restoring, "readiness", lambda _url: (True, "ok"))
    before = Path(run(run_module, archive)["before"])
    assert (before.name, (before / "wal/0.wal").read_text()) == ("before-restore-20261120T000000Z", "now")
    last = "before-restore-20261124T000000Z"
    assert {path.name for path in (machine / "etcd").iterdir()} == {"member", before.name, last}
    after = Path(run(run_module, archive)["before"])
    assert {path.name for path in (machine / "etcd").iterdir()} == {"member", after.name}


@pytest.mark.usefixtures("restoring")
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({**GOOD, "kubernetes__pki__ca_dot_crt": "another"}, "of another cluster"),
        ({"__etc__passwd": "x"}, "not a file of a backup"),
        ({"a__..__b": "x"}, "not a file of a backup"),
    ],
)
def test_what_is_refused_changes_nothing(machine: Path, run_module: Run, files: dict[str, str], words: str) -> None:
    with pytest.raises(ModuleFailedError, match=words):
        run(run_module, packed(machine, **files))
    assert wal(machine) == "now"
    assert len(list((machine / "manifests").iterdir())) == len(PODS)


@pytest.mark.usefixtures("restoring")
def test_a_look_before_the_others_leave_changes_nothing(machine: Path, run_module: Run) -> None:
    """The others lose their data after it: what would be refused then is refused now."""
    words = {"state": "checked", "name": "m1", "address": "10.0.0.1"}
    assert not run_module("pai_restore", archive=str(packed(machine, **GOOD)), **words)["changed"]
    with pytest.raises(ModuleFailedError, match="of another cluster"):
        run_module(
            "pai_restore", archive=str(packed(machine, **{**GOOD, "kubernetes__pki__ca_dot_crt": "other"})), **words
        )
    assert wal(machine) == "now"
    assert [path.name for path in (machine / "etcd").iterdir()] == ["member"]
    assert (machine / "kubernetes/encryption/config.json").read_text() == "now encryption/config.json"
    assert [path.name for path in (machine / "state").iterdir()] == ["kubeadm.json"]


def test_the_look_comes_before_any_machine_leaves() -> None:
    """Else a backup of another cluster would cost two of three control planes."""
    (play,) = yaml.safe_load((ROOT / "playbooks" / "restore.yml").read_text())
    (block,) = [task["block"] for task in play["tasks"] if "block" in task]
    states = [task["pai_restore"]["state"] for task in block if "pai_restore" in task]
    assert states == ["checked", "left", "restored"]
    assert play["any_errors_fatal"]


def test_when_etcdutl_fails_etcd_has_its_old_data(machine: Path, restoring: Any, run_module: Run) -> None:
    Path(restoring.ETCDUTL).write_text("#!/bin/sh\necho 'snapshot is damaged' >&2; exit 1\n")
    with pytest.raises(ModuleFailedError, match="snapshot is damaged"):
        run(run_module, packed(machine, **GOOD))
    assert wal(machine) == "now"
    assert len(list((machine / "manifests").iterdir())) == len(PODS)
    assert [path.name for path in (machine / "etcd").iterdir()] == ["member"]


def test_programs_that_do_not_stop_start_again(
    machine: Path, restoring: Any, run_module: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "until", lambda _holds, _seconds: False)
    with pytest.raises(ModuleFailedError, match="do not stop"):
        run(run_module, packed(machine, **GOOD))
    assert wal(machine) == "now"
    assert len(list((machine / "manifests").iterdir())) == len(PODS)


@pytest.mark.usefixtures("restoring")
def test_a_machine_without_a_control_plane_gets_keys_and_data(machine: Path, run_module: Run) -> None:
    for path in (machine / "manifests").iterdir():
        path.unlink()
    for path in (machine / "kubernetes").rglob("*"):
        if path.is_file():
            path.unlink()
    (machine / "state" / "kubeadm.json").unlink()
    result = run(run_module, packed(machine, **GOOD))
    assert result["changed"]
    assert (machine / "kubernetes/pki/ca.crt").read_text() == "now pki/ca.crt"
    assert wal(machine) == "restored"
    marker = machine / "state" / "kubeadm.json"
    assert json.loads(marker.read_text()) == {"state": "init", "done": False, "restored": True}


@pytest.mark.usefixtures("restoring")
@pytest.mark.parametrize("lost", ["certificates", "kubeconfigs", "manifests", "one manifest", "pki", "all"])
def test_a_control_plane_that_lost_a_part_is_made_whole_by_kubeadm_init(
    machine: Path, run_module: Run, lost: str
) -> None:
    """Half a control plane would not start: etcd without its certificates, for example."""
    kubernetes, manifests = machine / "kubernetes", machine / "manifests"
    folders = {"certificates": MADE[:-3], "kubeconfigs": KUBECONFIGS, "pki": MADE[:-3], "all": MADE}
    for name in folders.get(lost, ()):
        (kubernetes / name).unlink()
    if lost in ("pki", "all"):
        (kubernetes / "pki/ca.crt").unlink()
    for name in {"manifests": PODS, "one manifest": PODS[:1], "all": PODS}.get(lost, ()):
        (manifests / f"{name}.yaml").unlink()
    result = run(run_module, packed(machine, **GOOD))
    assert result["missing"]
    assert wal(machine) == "restored"
    assert list(manifests.iterdir()) == []
    assert (kubernetes / "pki/ca.crt").read_text() == "now pki/ca.crt"
    marker = json.loads((machine / "state" / "kubeadm.json").read_text())
    assert marker == {"state": "init", "done": False, "restored": True}


@pytest.mark.usefixtures("restoring")
def test_another_control_plane_is_no_member_any_more(machine: Path, run_module: Run) -> None:
    (machine / "kubernetes/admin.conf").write_text("x")
    assert run_module("pai_restore", state="left")["changed"]
    assert list((machine / "manifests").iterdir()) == []
    assert not (machine / "etcd/member").exists()
    assert not (machine / "kubernetes/admin.conf").exists()


def test_check_mode_touches_nothing(machine: Path, run_module: Run) -> None:
    assert run_module("pai_restore", state="left", check=True)["changed"]
    assert wal(machine) == "now"


def backing_up(library: Any, machine: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Any:
    """Module pai_backup with an etcd_snapshot_stand_in of these lines."""
    module = library("pai_backup")
    program = machine / "etcd_snapshot_stand_in"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(module, "PROGRAM", str(program))
    return module


def test_a_backup_holds_snapshot_and_authorities(
    library: Any, machine: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = backing_up(library, machine, monkeypatch, 'echo snapshot > "$2" && echo 0a1b')
    monkeypatch.setattr(module.make, "__defaults__", (str(machine / "kubernetes"), str(machine / "no-ledger")))
    dest = machine / "backup" / "b.tar"
    result = run_module("pai_backup", dest=str(dest))
    assert (result["snapshot"], result["bytes"]) == ("0a1b", dest.stat().st_size)
    with tarfile.open(dest) as archive:
        assert sorted(archive.getnames()) == [
            "etcd.db",
            "kubernetes/encryption/config.json",
            "kubernetes/pki/ca.crt",
            "kubernetes/pki/ca.key",
            "kubernetes/pki/etcd/ca.crt",
        ]
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600
    assert stat.S_IMODE(dest.parent.stat().st_mode) == 0o700
    assert [path.name for path in dest.parent.iterdir()] == ["b.tar"]
    assert run_module("pai_backup", dest=str(dest), state="absent")["changed"]
    assert not dest.exists()
    assert not run_module("pai_backup", dest=str(dest), state="absent")["changed"]


def test_without_a_snapshot_there_is_no_backup(
    library: Any, machine: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    backing_up(library, machine, monkeypatch, "echo 'there is no snapshot of etcd: timed out' >&2; exit 1")
    with pytest.raises(ModuleFailedError, match="timed out"):
        run_module("pai_backup", dest=str(machine / "backup" / "b.tar"))
    assert list((machine / "backup").iterdir()) == []


def test_a_snapshot_that_was_kept_goes_into_the_backup(
    library: Any, machine: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    backing_up(library, machine, monkeypatch, '[ "$1" = copy ] && echo "$2" > "$3" && echo abc')
    dest = machine / "backup" / "b.tar"
    assert run_module("pai_backup", dest=str(dest), snapshot="etcd-20270131T000000Z.db")["snapshot"] == "abc"
    with tarfile.open(dest) as archive:
        handle = archive.extractfile("etcd.db")
        assert handle is not None
        assert handle.read().decode().strip() == "/var/lib/pai-install/etcd-backup/etcd-20270131T000000Z.db"


def test_ledger_of_gpu_hours_is_packed_and_missing_months_come_back(
    library: Any, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, dest = machine / "before", machine / "after"
    for folder in (source, dest):
        folder.mkdir()
    (source / "ledger-2026-10.jsonl").write_text("october\n")
    (source / "ledger-2026-11.jsonl").write_text("november\n")
    (source / "other").write_text("not a month\n")
    (dest / "ledger-2026-11.jsonl").write_text("newer\n")
    backup = library("pai_backup")
    monkeypatch.setattr(backup, "take", lambda _module, path: Path(path).write_text("snapshot") and "sum")
    backup.make(None, str(machine / "b/backup.tar"), str(machine / "kubernetes"), str(source))
    restore = library("pai_restore")
    folder = machine / "unpacked"
    with tarfile.open(machine / "b/backup.tar") as archive:
        archive.extractall(folder, filter="data")
    restore.lay_ledger(str(folder), str(dest))
    assert {path.name: path.read_text() for path in dest.iterdir()} == {
        "ledger-2026-10.jsonl": "october\n",
        "ledger-2026-11.jsonl": "newer\n",
    }
    assert stat.S_IMODE((dest / "ledger-2026-10.jsonl").stat().st_mode) == 0o600
