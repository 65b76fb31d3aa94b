"""A backup as one file, and what comes back from it."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.registry.identity import make_identity, save
from pai_install.registry.model import ServedNames
from pai_install.run import backup
from pai_install.run.backup import BackupManifest, backup_worker, bring_back, pack, read_backup, take_machine
from pai_install.run.state import StateFolder, open_state
from pai_install.site.load import load_site
from tests.errors import raises
from tests.unit.cli.stub_environment import write_site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    state = open_state(folder)
    save(state.registry, make_identity(ServedNames(("127.0.0.1",), ("127.0.0.1",)), datetime.now(UTC)))
    state.known_hosts.write_text("10.0.0.1 ssh-ed25519 AAAA\n")
    (state.path / "proof.json").write_text("{}")
    return folder


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    path = tmp_path / "given.machine"
    path.write_bytes(b"what the control plane packed" * 1000)
    return path


def made(site: Path, machine: Path) -> Path:
    file = site / "backup.tar.gz"
    pack(
        site,
        StateFolder(site / ".pai"),
        machine,
        file,
        BackupManifest(cluster="c1", leader="master", created="2027-01-31T00:00:00Z"),
    )
    return file


def test_it_holds_machine_site_and_state_and_no_more(site: Path, machine: Path) -> None:
    file = made(site, machine)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    manifest = read_backup(file)
    assert (manifest.cluster, manifest.leader, manifest.created[-1]) == ("c1", "master", "Z")
    assert [*manifest.files] == [
        "machine.tar",
        "site/layout.yaml",
        "site/config.yaml",
        "state/registry.json",
        "state/known_hosts",
    ]
    assert [path.name for path in site.glob("*.partial")] == []


def test_what_goes_to_the_machine_comes_out_as_it_went_in(site: Path, machine: Path, tmp_path: Path) -> None:
    dest = tmp_path / "machine.tar"
    take_machine(made(site, machine), dest)
    assert dest.read_bytes() == machine.read_bytes()
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600


def test_a_new_dev_box_gets_site_and_state(site: Path, machine: Path, tmp_path: Path) -> None:
    file, new = made(site, machine), tmp_path / "new"
    written, others = bring_back(file, read_backup(file), new)
    assert sorted(Path(path).name for path in written) == ["config.yaml", "known_hosts", "layout.yaml", "registry.json"]
    assert others == ()
    assert load_site(new).site.machines == load_site(site).site.machines
    assert stat.S_IMODE((new / ".pai" / "registry.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((new / ".pai").stat().st_mode) == 0o700


def test_host_keys_of_machines_that_were_reinstalled_are_left_out(site: Path, machine: Path, tmp_path: Path) -> None:
    file, new = made(site, machine), tmp_path / "new"
    written, _ = bring_back(file, read_backup(file), new, host_keys=False)
    assert "known_hosts" not in [Path(path).name for path in written]
    assert not (new / ".pai" / "known_hosts").exists()


def test_what_is_there_stays_and_is_named_where_it_is_another(site: Path, machine: Path) -> None:
    file = made(site, machine)
    (site / ".pai" / "registry.json").write_text("{}")
    written, others = bring_back(file, read_backup(file), site)
    assert (written, others) == ((), (str(site.resolve() / ".pai" / "registry.json"),))
    assert (site / ".pai" / "registry.json").read_text() == "{}"


def test_a_damaged_one_is_refused(site: Path, machine: Path, tmp_path: Path) -> None:
    file = made(site, machine)
    torn = tmp_path / "torn.tar.gz"
    torn.write_bytes(file.read_bytes()[:-200])
    other = tmp_path / "other.tar.gz"
    with tarfile.open(file) as old, tarfile.open(other, "w:gz") as new:
        for entry in old.getmembers():
            content = io.BytesIO(bytes(entry.size)) if "layout" in entry.name else old.extractfile(entry)
            new.addfile(entry, content)
    for bad in (torn, other, site / "layout.yaml", tmp_path / "missing"):
        with raises("backup-invalid", "pai-install") as caught:
            read_backup(bad)
        assert caught.value.exit_code == ExitCode.USAGE


SPARSE = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 50)}


def test_a_member_without_end_is_refused(site: Path, machine: Path, tmp_path: Path) -> None:
    """A sparse file of a petabyte has a few bytes in a backup."""
    endless = tmp_path / "endless.tar.gz"
    with tarfile.open(made(site, machine)) as old, tarfile.open(endless, "w:gz", format=tarfile.PAX_FORMAT) as new:
        for entry in old.getmembers():
            entry.pax_headers = {**SPARSE, "GNU.sparse.name": entry.name} if entry.name == "machine.tar" else {}
            new.addfile(entry, old.extractfile(entry))
    with raises("backup-invalid") as caught:
        read_backup(endless)
    assert caught.value.details == "machine.tar in it is not a file"


def test_a_backup_that_unpacks_without_end_is_refused(
    site: Path, machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "_LARGEST_MACHINE", 1 << 20)
    monkeypatch.setattr(backup, "_LARGEST", 1 << 20)
    bomb = tmp_path / "bomb.tar.gz"
    bomb.write_bytes(made(site, machine).read_bytes() + gzip.compress(bytes(20 << 20)))
    with raises("backup-invalid") as caught:
        read_backup(bomb)
    assert "it has more than" in caught.value.details


@pytest.mark.parametrize("missing", [1, 4, 8, 9, 20, 50])
def test_one_that_was_cut_at_its_end_is_refused(site: Path, machine: Path, missing: int) -> None:
    file = made(site, machine)
    file.write_bytes(file.read_bytes()[:-missing])
    with raises("backup-invalid", "pai-install"):
        read_backup(file)


def test_the_worker_finishes_it_and_says_so(site: Path, machine: Path) -> None:
    work = backup_worker(load_site(site).site, StateFolder(site / ".pai"))
    file = site / "b.tar.gz"
    (found,) = work(["master"], {"file": str(file), "machine": str(machine), "cluster": "c1", "of": "20270131T000000Z"})
    assert (found.id, found.verdict) == ("backup", Verdict.PASS)
    assert not machine.exists()
    assert read_backup(file).created == "2027-01-31T00:00:00Z"


def test_no_room_is_an_error_and_leaves_nothing(site: Path, machine: Path) -> None:
    work = backup_worker(load_site(site).site, StateFolder(site / ".pai"))
    with raises("backup-not-written"):
        work(
            ["master"],
            {"file": str(site / "none" / "b"), "machine": str(machine), "cluster": "c1", "of": "20270131T000000Z"},
        )
    assert not machine.exists()
