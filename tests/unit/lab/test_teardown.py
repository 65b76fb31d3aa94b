"""Removing: in the right order, only what the record names, also from a record of a lab that was half made."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.lab import box, disk, keys, machine, network, teardown
from pai_install.lab.record import Kind, LabRecord, Ledger, Resource
from pai_install.lab.spec import LabSpec
from pai_install.lab.teardown import down, down_site, labs_of, removal_order, remove_all
from tests.errors import raises

RESOURCES = st.lists(st.builds(Resource, st.sampled_from(list(Kind)), st.text(max_size=3)))


@pytest.fixture(autouse=True)
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of labs; this process counts as root."""
    folder = tmp_path / "labs"
    for module in (teardown, box):
        monkeypatch.setattr(module, "LABS_DIR", folder)
    monkeypatch.setattr(box, "SETTINGS", {tmp_path / "ip_forward": 1})
    monkeypatch.setattr(box, "SETTINGS_BEFORE", folder / "settings-before.json")
    monkeypatch.setattr(box, "require_root", lambda: None)
    return folder


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The state folder of another site, which is there."""
    (tmp_path / "other").mkdir()
    return tmp_path / "other" / ".pai"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, stand_in: Callable[..., Any]) -> Any:
    """A box on which nothing of the lab's exists any more."""
    monkeypatch.setattr(network, "has_link", lambda _name: False)
    monkeypatch.setattr(network, "has_netns", lambda _name: False)
    monkeypatch.setattr(network, "has_table", lambda _name: False)
    monkeypatch.setattr(disk, "is_mounted", lambda _path: False)
    return stand_in(teardown, disk, network)


def full_record(folder: Path, spec: LabSpec) -> LabRecord:
    lab = folder / "172-30-79-0"
    return LabRecord(
        "172-30-79-0",
        str(spec.state_dir),
        (
            Resource(Kind.FOLDER, str(lab)),
            Resource(Kind.BRIDGE, "pb"),
            Resource(Kind.NFT_TABLE, "table"),
            Resource(Kind.FORWARD_RULE, "pb"),
            Resource(Kind.CGROUP, str(folder.parent / "cgroup")),
            Resource(Kind.MOUNT, str(lab / "one/disk")),
            Resource(Kind.MOUNT, str(lab / "one/root")),
            Resource(Kind.VETH, "pv"),
            Resource(Kind.NETNS, "ns"),
            Resource(Kind.KNOWN_HOSTS, str(spec.known_hosts), "172.30.79.11 172.30.79.12"),
            Resource(Kind.KEY_PAIR, str(spec.key_file)),
            Resource(Kind.PROCESS, "one", "999999999:1"),
        ),
    )


def written(folder: Path, record: LabRecord) -> Ledger:
    ledger = Ledger(folder / record.lab / "lab.json", LabRecord(record.lab, record.site))
    ledger.add(record.resources)
    return ledger


@given(RESOURCES)
def test_order_keeps_everything_and_follows_the_kinds(resources: list[Resource]) -> None:
    ordered = removal_order(LabRecord("l", "s", tuple(resources)))
    assert sorted(map(repr, ordered)) == sorted(map(repr, resources))
    kinds = list(Kind)
    assert all(kinds.index(a.kind) <= kinds.index(b.kind) for a, b in pairwise(ordered))


def test_order_takes_users_before_what_they_use_and_a_root_before_its_disk(labs: Path, spec: LabSpec) -> None:
    ordered = [(one.kind, Path(one.name).name) for one in removal_order(full_record(labs, spec))]
    position = {kind: number for number, (kind, _) in reversed(list(enumerate(ordered)))}
    assert ordered[0][0] is Kind.PROCESS
    assert ordered[-1][0] is Kind.FOLDER
    assert position[Kind.MOUNT] < position[Kind.NETNS] < position[Kind.BRIDGE] < position[Kind.CGROUP]
    assert ordered.index((Kind.MOUNT, "root")) < ordered.index((Kind.MOUNT, "disk"))


def test_every_kind_can_be_removed() -> None:
    assert set(teardown.REMOVERS) == set(Kind)


def test_a_record_of_things_that_were_never_made_removes_its_folder_only(labs: Path, spec: LabSpec, bare: Any) -> None:
    ledger = written(labs, full_record(labs, spec))
    bare.answer("iptables", 1)
    assert [line.partition(" ")[0] for line in remove_all(ledger, lambda _line: None)] == ["process", "folder"]
    assert list(labs.iterdir()) == []
    assert [command for command in bare.commands if not command.startswith("iptables")] == []


def test_only_named_things_are_asked_to_go(
    labs: Path, spec: LabSpec, bare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "has_link", lambda _name: True)
    monkeypatch.setattr(network, "has_netns", lambda _name: True)
    monkeypatch.setattr(network, "has_table", lambda _name: True)
    monkeypatch.setattr(disk, "is_mounted", lambda _path: True)
    lab = labs / "172-30-79-0"
    remove_all(written(labs, full_record(labs, spec)), lambda _line: None)
    assert bare.commands == [
        f"umount {lab}/one/root",
        f"umount {lab}/one/disk",
        "ip link delete pv",
        "ip netns delete ns",
        "ip link delete pb",
        "nft delete table ip table",
        "iptables -w -D FORWARD -i pb -j ACCEPT",
        "iptables -w -D FORWARD -o pb -j ACCEPT",
    ]


def test_one_thing_that_stays_does_not_keep_the_others_and_the_record_remains(
    labs: Path, spec: LabSpec, bare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "has_link", lambda name: name == "pb")
    monkeypatch.setattr(network, "has_netns", lambda _name: True)
    monkeypatch.setattr(teardown, "_remove_folder", lambda _resource: False)
    monkeypatch.setitem(teardown.REMOVERS, Kind.FOLDER, lambda _resource: False)
    bare.answer("ip link delete", 2)
    ledger = written(labs, full_record(labs, spec))
    with raises("lab-not-removed") as caught:
        remove_all(ledger, lambda _line: None)
    assert "bridge pb" in caught.value.details
    assert bare.matching("ip netns delete ns")
    assert (labs / "172-30-79-0/lab.json").exists()


def test_a_folder_with_a_mount_in_it_is_never_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "precious").touch()
    real = Path.read_text

    def mounts(self: Path) -> str:
        return f"x {folder}/one/root overlay rw 0 0\n" if str(self) == "/proc/self/mounts" else real(self)

    monkeypatch.setattr(Path, "read_text", mounts)
    with pytest.raises(OSError, match="still mounted"):
        teardown._remove_folder(Resource(Kind.FOLDER, str(folder)))
    assert (folder / "precious").exists()


def test_processes_that_were_started_but_not_written_down_are_ended_too(
    labs: Path, spec: LabSpec, bare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[machine.Process], list[Path]]] = []
    monkeypatch.setattr(machine, "kill", lambda keepers, groups: asked.append((list(keepers), list(groups))))
    record = full_record(labs, spec)
    half = LabRecord(record.lab, record.site, tuple(one for one in record.resources if one.kind is not Kind.PROCESS))
    remove_all(written(labs, half), lambda _line: None)
    assert asked == [([], [labs.parent / "cgroup"])]


def test_processes_that_do_not_end_stop_the_removal(
    labs: Path, spec: LabSpec, bare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(*_arguments: object) -> None:
        raise TimeoutError("processes [5] do not end")

    monkeypatch.setattr(machine, "kill", stuck)
    with raises("lab-processes-not-ended", "5"):
        remove_all(written(labs, full_record(labs, spec)), lambda _line: None)
    assert (labs / "172-30-79-0/lab.json").exists()


def test_known_hosts_of_others_stay(spec: LabSpec) -> None:
    spec.state_dir.mkdir(parents=True)
    spec.known_hosts.write_text("git.example ssh-rsa A\n172.30.79.11,one ssh-ed25519 B\n")
    resource = Resource(Kind.KNOWN_HOSTS, str(spec.known_hosts), "172.30.79.11")
    assert teardown._forget_hosts(resource)
    assert spec.known_hosts.read_text() == "git.example ssh-rsa A\n"
    assert not teardown._forget_hosts(resource)


def test_known_hosts_with_nothing_left_goes(spec: LabSpec) -> None:
    spec.state_dir.mkdir(parents=True)
    spec.known_hosts.write_text("172.30.79.11,one ssh-ed25519 B\n")
    assert teardown._forget_hosts(Resource(Kind.KNOWN_HOSTS, str(spec.known_hosts), "172.30.79.11"))
    assert not spec.known_hosts.exists()
    assert not teardown._forget_hosts(Resource(Kind.KNOWN_HOSTS, str(spec.known_hosts), "172.30.79.11"))


def test_key_pair_goes_with_both_halves(spec: LabSpec) -> None:
    keys.ensure_key_pair(spec.key_file)
    resource = Resource(Kind.KEY_PAIR, str(spec.key_file))
    assert teardown._remove_key_pair(resource)
    assert list(spec.state_dir.iterdir()) == []
    assert not teardown._remove_key_pair(resource)


def test_down_finds_the_labs_of_a_site_whatever_its_files_say_now(
    labs: Path, spec: LabSpec, bare: Any, other: Path
) -> None:
    ours = LabRecord("172-30-1-0", str(spec.state_dir), (Resource(Kind.FOLDER, str(labs / "172-30-1-0")),))
    theirs = LabRecord("172-30-2-0", str(other), (Resource(Kind.FOLDER, str(labs / "172-30-2-0")),))
    written(labs, ours)
    written(labs, theirs)
    assert [record.lab for _, record in labs_of(spec.state_dir)] == ["172-30-1-0"]
    assert down(spec) == (f"folder {labs}/172-30-1-0",)
    assert [path.name for path in labs.iterdir() if path.is_dir()] == ["172-30-2-0"]


def test_a_record_of_another_version_stops_only_its_own_lab(labs: Path, spec: LabSpec, bare: Any, other: Path) -> None:
    for site, lab in ((other, "172-30-2-0"), (spec.state_dir, "172-30-1-0")):
        written(labs, LabRecord("172-30-3-0", str(spec.state_dir), (Resource(Kind.FOLDER, str(labs / "172-30-3-0")),)))
        newer = {"schema_version": 1, "lab": lab, "site": str(site), "resources": [["hologram", "x", ""]]}
        (labs / lab).mkdir()
        (labs / lab / "lab.json").write_text(json.dumps(newer))
        if site == other:
            assert [record.lab for _, record in labs_of(spec.state_dir)] == ["172-30-3-0"]
            assert down(spec) == (f"folder {labs}/172-30-3-0",)
        else:
            with raises("lab-record-invalid"):
                down(spec)


def test_down_takes_a_lab_whose_site_folder_is_gone(labs: Path, spec: LabSpec, bare: Any, other: Path) -> None:
    written(labs, LabRecord("172-30-2-0", str(other), (Resource(Kind.FOLDER, str(labs / "172-30-2-0")),)))
    assert down(spec) == ()
    other.parent.rmdir()
    assert [record.lab for _, record in labs_of(spec.state_dir)] == ["172-30-2-0"]
    assert down(spec) == (f"folder {labs}/172-30-2-0",)


def test_credentials_of_the_cluster_go_with_its_lab(labs: Path, spec: LabSpec, bare: Any, other: Path) -> None:
    spec.state_dir.mkdir(parents=True, exist_ok=True)
    kubeconfig = spec.state_dir / "kubeconfig"
    kubeconfig.write_text("x")
    written(labs, LabRecord("a", str(other), (Resource(Kind.FOLDER, str(labs / "a")),)))
    assert down(spec) == ()
    assert kubeconfig.exists(), "that of a cluster of real machines"
    written(labs, LabRecord("b", str(spec.state_dir), (Resource(Kind.FOLDER, str(labs / "b")),)))
    assert down(spec) == (f"folder {labs}/b", f"file {kubeconfig}")
    assert not kubeconfig.exists()


def test_a_removal_that_was_cut_short_is_finished(labs: Path, spec: LabSpec, bare: Any) -> None:
    (labs / "172-30-79-0.removed/one").mkdir(parents=True)
    assert down_site(spec.state_dir) == ()
    assert [path for path in labs.iterdir() if path.is_dir()] == []


def test_a_lab_that_was_killed_at_its_first_record_is_removed(labs: Path, spec: LabSpec, bare: Any) -> None:
    (labs / "172-30-80-0").mkdir(parents=True)
    (labs / "172-30-80-0/.lab.json.i9lr3g48").write_text("{")
    assert down_site(spec.state_dir) == ()
    assert [path for path in labs.iterdir() if path.is_dir()] == []


def test_nothing_to_remove_makes_nothing(labs: Path, spec: LabSpec) -> None:
    assert down(spec) == ()
    assert not labs.exists()


def test_forwarding_comes_back_with_the_last_lab(
    labs: Path, spec: LabSpec, bare: Any, tmp_path: Path, other: Path
) -> None:
    labs.mkdir()
    (tmp_path / "ip_forward").write_text("1\n")
    (labs / "settings-before.json").write_text(json.dumps({str(tmp_path / "ip_forward"): "0"}))
    for name, site in (("a", str(spec.state_dir)), ("b", str(other))):
        written(labs, LabRecord(name, site, (Resource(Kind.FOLDER, str(labs / name)),)))
    down(spec)
    assert (tmp_path / "ip_forward").read_text() == "1\n"
    down_site(other)
    assert (tmp_path / "ip_forward").read_text() == "0\n"
    assert not (labs / "settings-before.json").exists()
