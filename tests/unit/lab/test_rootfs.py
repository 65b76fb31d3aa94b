"""What makes a copy of the base image one machine."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.lab import disk, keys, rootfs
from pai_install.lab.file_entry import Entry
from pai_install.lab.names import MachineNames, machine_names
from pai_install.lab.rootfs import account, machine_entries, resolver_text
from pai_install.lab.spec import LabMachine, LabSpec
from tests.errors import raises

PASSWD = "root:x:0:0:root:/root:/bin/bash\npai:x:{uid}:{gid}::/home/pai:/bin/bash\n"


@pytest.fixture
def entries(spec: LabSpec) -> dict[str, Entry]:
    return dict(machine_entries(spec.machines[1], "pai", "nameserver 10.0.0.1\n"))


def test_machine_knows_its_name_and_resolves_it(entries: dict[str, Entry]) -> None:
    assert entries["etc/hostname"].content == "two\n"
    assert "127.0.1.1\ttwo\n" in entries["etc/hosts"].content
    assert entries["etc/resolv.conf"].content == "nameserver 10.0.0.1\n"


def test_every_machine_has_an_id_of_its_own(spec: LabSpec) -> None:
    ids = {machine_entries(spec.machines[0], "pai", "")["etc/machine-id"].content for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch(r"[0-9a-f]{32}\n", one) for one in ids)


def test_user_becomes_root_without_a_password(
    entries: dict[str, Entry],
) -> None:
    entry = entries["etc/sudoers.d/90-pai"]
    assert entry.mode == 0o440
    assert entry.content == "pai ALL=(ALL:ALL) NOPASSWD:ALL\n"


def test_sshd_listens_where_the_site_says_and_takes_no_passwords(entries: dict[str, Entry]) -> None:
    settings = entries["etc/ssh/sshd_config.d/10-lab.conf"].content.splitlines()
    assert {"Port 2222", "PasswordAuthentication no"} <= set(settings)


def test_nothing_that_acts_on_the_box_starts(entries: dict[str, Entry]) -> None:
    for unit in ("systemd-udevd.service", "systemd-udev-trigger.service", "systemd-pstore.service", "fstrim.timer"):
        assert entries[f"etc/systemd/system/{unit}"].link == "/dev/null"
    assert entries["etc/sysctl.d/50-pid-max.conf"].link == "/dev/null"


def test_early_unit_runs_before_anything_else_and_is_wanted(entries: dict[str, Entry]) -> None:
    unit = entries["etc/systemd/system/pai-lab-early.service"].content
    assert "DefaultDependencies=no" in unit
    assert "Before=sysinit.target" in unit
    started = re.search(r"ExecStart=/(\S+)", unit)
    assert started
    assert entries[started[1]].mode == 0o755
    assert entries["etc/systemd/system/sysinit.target.wants/pai-lab-early.service"].link == "../pai-lab-early.service"


def test_early_script_is_valid_shell_and_shares_mounts(entries: dict[str, Entry]) -> None:
    script = entries["usr/local/sbin/pai-lab-early"].content
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert script.rstrip().endswith("mount --make-rshared /")


@pytest.mark.parametrize(
    ("box", "uplink", "expected"),
    [
        ("nameserver 10.0.0.1\n", "nameserver 9.9.9.9\n", "nameserver 10.0.0.1\n"),
        ("nameserver 127.0.0.53\nsearch x\n", "nameserver 9.9.9.9\n", "nameserver 9.9.9.9\n"),
        ("nameserver ::1\n", "nameserver 9.9.9.9\n", "nameserver 9.9.9.9\n"),
        ("nameserver 127.0.0.1\nnameserver 10.0.0.1\n", "x", "nameserver 127.0.0.1\nnameserver 10.0.0.1\n"),
        ("nameserver 127.0.0.53\n", "", "nameserver 127.0.0.53\n"),
        ("", "nameserver 9.9.9.9\n", ""),
    ],
)
def test_a_resolver_on_the_boxs_loopback_is_no_use_in_a_machine(box: str, uplink: str, expected: str) -> None:
    assert resolver_text(box, uplink) == expected


def test_account_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(PASSWD.format(uid=1000, gid=1001))
    assert account(tmp_path, "pai") == (1000, 1001, "/home/pai")
    assert account(tmp_path, "root") == (0, 0, "/root")
    assert account(tmp_path, "pa") is None


@pytest.fixture
def machine(spec: LabSpec, names: MachineNames, monkeypatch: pytest.MonkeyPatch) -> LabMachine:
    """A machine whose root is a plain folder with a user in it."""
    home = names.root / "home/pai"
    home.mkdir(parents=True)
    (names.root / "etc").mkdir()
    (names.root / "etc/passwd").write_text(PASSWD.format(uid=os.getuid(), gid=os.getgid()))
    monkeypatch.setattr(rootfs, "machine_names", lambda _spec, _machine: names)
    keys.ensure_key_pair(spec.key_file)
    return spec.machines[0]


def test_key_is_let_in_once_and_only_its_owner_reads_it(
    spec: LabSpec, machine: LabMachine, names: MachineNames
) -> None:
    assert rootfs.authorize(spec, machine)
    allowed = names.root / "home/pai/.ssh/authorized_keys"
    assert allowed.read_text() == keys.public_key(spec.key_file)
    assert stat.S_IMODE(allowed.stat().st_mode) == 0o600
    assert stat.S_IMODE(allowed.parent.stat().st_mode) == 0o700
    assert not rootfs.authorize(spec, machine)


def test_a_new_key_replaces_the_lost_one(spec: LabSpec, machine: LabMachine, names: MachineNames) -> None:
    rootfs.authorize(spec, machine)
    spec.key_file.unlink()
    spec.key_file.with_name("lab_ssh_key.pub").unlink()
    keys.ensure_key_pair(spec.key_file)
    assert rootfs.authorize(spec, machine)
    assert (names.root / "home/pai/.ssh/authorized_keys").read_text() == keys.public_key(spec.key_file)


def test_a_machine_whose_user_was_deleted_is_named(spec: LabSpec, machine: LabMachine, names: MachineNames) -> None:
    (names.root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    with raises("lab-user-missing"):
        rootfs.authorize(spec, machine)


@pytest.fixture
def unmounted(machine: LabMachine, monkeypatch: pytest.MonkeyPatch, stand_in: Any, names: MachineNames) -> Any:
    monkeypatch.setattr(disk, "is_mounted", lambda _path: False)
    monkeypatch.setattr(disk, "ensure_disk", lambda _names: True)
    monkeypatch.setattr(rootfs, "box_resolver", lambda: "nameserver 10.0.0.1\n")
    return stand_in(rootfs)


def test_first_mount_fills_the_root_and_keeps_which_image_it_stands_on(
    spec: LabSpec, machine: LabMachine, names: MachineNames, unmounted: Any, tmp_path: Path
) -> None:
    image = tmp_path / "base-a"
    image.mkdir()
    assert rootfs.ensure_root(spec, machine, image)
    mount = unmounted.matching("mount")[0]
    assert f"lowerdir={image},upperdir={names.upper},workdir={names.work},volatile" in mount
    assert (names.root / "etc/hostname").read_text() == "one\n"
    assert (names.root / "etc/ssh/ssh_host_ed25519_key").exists()
    assert (names.root / "etc/systemd/system/getty.target").readlink() == Path("/dev/null")
    assert all((names.data / name).is_dir() for name in ("docker", "containerd", "kubelet", "etcd"))
    assert not unmounted.matching("chroot")  # the user was there


def test_mounting_again_keeps_what_was_changed_in_the_machine_and_its_image(
    spec: LabSpec, machine: LabMachine, names: MachineNames, unmounted: Any, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    old, new = tmp_path / "base-a", tmp_path / "base-b"
    old.mkdir()
    new.mkdir()
    rootfs.ensure_root(spec, machine, old)
    (names.root / "etc/hosts").write_text("changed in the machine\n")
    (names.work / "work/incompat/volatile").mkdir(parents=True)
    assert rootfs.ensure_root(spec, machine, new)
    assert (names.root / "etc/hosts").read_text() == snapshot
    assert f"lowerdir={old}," in unmounted.matching("mount")[-1]
    assert not (names.work / "work/incompat").exists()


def test_filling_that_was_cut_short_starts_over(
    spec: LabSpec,
    machine: LabMachine,
    names: MachineNames,
    unmounted: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(*_arguments: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(keys, "ensure_host_key", cut)
        with pytest.raises(KeyboardInterrupt):
            rootfs.ensure_root(spec, machine, tmp_path)
    assert rootfs.ensure_root(spec, machine, tmp_path)
    assert (names.root / "etc/ssh/ssh_host_ed25519_key").exists()


def test_missing_user_is_made_with_a_home_and_sudo(
    spec: LabSpec, machine: LabMachine, names: MachineNames, unmounted: Any, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    (names.root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    rootfs.ensure_root(spec, machine, tmp_path)
    assert unmounted.matching("chroot") == snapshot


def test_mounted_root_is_left_alone(
    spec: LabSpec, machine: LabMachine, unmounted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "is_mounted", lambda _path: True)
    assert not rootfs.ensure_root(spec, machine, tmp_path)
    assert unmounted.commands == []


def test_names_fixture_is_like_the_real_one(spec: LabSpec, names: MachineNames) -> None:
    assert machine_names(spec, spec.machines[0]).netns == names.netns
