"""A machine's disk: made once, a plain folder where the box has no loop devices, filled on demand."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import PaiError
from pai_install.lab import disk
from pai_install.lab.names import MachineNames

MOUNTS = "/dev/vda / ext4 rw 0 0\n/dev/loop0 /var/lib/x/disk ext4 rw 0 0\n\n"


@pytest.fixture
def box(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(disk, "is_mounted", lambda _path: False)
    return stand_in(disk)


def test_mounted_means_that_very_place() -> None:
    assert disk.is_mounted(Path("/var/lib/x/disk"), MOUNTS)
    assert not disk.is_mounted(Path("/var/lib/x"), MOUNTS)
    assert not disk.is_mounted(Path("/var/lib/x/disk/y"), MOUNTS)


def test_new_disk_is_sparse_formatted_and_mounted(names: MachineNames, box: Any) -> None:
    assert disk.ensure_disk(names)
    assert names.image.stat().st_size == disk.SIZE_BYTES
    assert names.image.stat().st_blocks == 0
    assert len(box.matching("mkfs.ext4")) == 1
    assert box.commands[-1] == f"mount -o loop,discard,noatime {names.image} {names.disk}"


def test_disk_with_contents_is_mounted_not_formatted(names: MachineNames, box: Any) -> None:
    names.disk.mkdir(parents=True)
    names.image.write_bytes(b"contents")
    assert disk.ensure_disk(names)
    assert not box.matching("mkfs")
    assert names.image.read_bytes() == b"contents"


def test_disk_with_contents_that_cannot_be_mounted_is_an_error_and_stays(names: MachineNames, box: Any) -> None:
    names.disk.mkdir(parents=True)
    names.image.write_bytes(b"contents")
    box.answer("mount", 32)
    with pytest.raises(PaiError, match="mount"):
        disk.ensure_disk(names)
    assert names.image.exists()


@pytest.mark.parametrize("broken", ["mkfs.ext4", "mount"])
def test_box_without_loop_devices_gets_a_plain_folder_for_good(names: MachineNames, box: Any, broken: str) -> None:
    box.answer(broken, 1)
    assert not disk.ensure_disk(names)
    assert names.disk.is_dir()
    assert not names.image.exists()
    box.answers.clear()
    asked = len(box.commands)
    assert not disk.ensure_disk(names)
    assert len(box.commands) == asked


def test_mounted_disk_is_left_alone(names: MachineNames, box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "is_mounted", lambda _path: True)
    assert disk.ensure_disk(names)
    assert box.commands == []


def test_filling_takes_ever_smaller_pieces_until_nothing_fits(
    names: MachineNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    capacity = 2 * disk.GIB + 3 * (1 << 20) + 2 * 4096 + 5
    taken: list[tuple[int, int]] = []

    def allocate(_descriptor: int, offset: int, size: int) -> None:
        if offset + size > capacity:
            raise OSError(errno.ENOSPC, "full")
        taken.append((offset, size))

    monkeypatch.setattr(disk, "is_mounted", lambda _path: True)
    monkeypatch.setattr(os, "posix_fallocate", allocate)
    names.disk.mkdir(parents=True)
    assert disk.fill(names)
    assert [size for _, size in taken] == [disk.GIB] * 2 + [1 << 20] * 3 + [4096] * 2
    assert sum(size for _, size in taken) == capacity - 5
    assert disk.filler(names).exists()


def test_filling_reports_other_errors(names: MachineNames, monkeypatch: pytest.MonkeyPatch) -> None:
    def allocate(*_arguments: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(disk, "is_mounted", lambda _path: True)
    monkeypatch.setattr(os, "posix_fallocate", allocate)
    names.disk.mkdir(parents=True)
    with pytest.raises(OSError, match="broken"):
        disk.fill(names)


def test_a_plain_folder_is_never_filled(names: MachineNames, box: Any) -> None:
    names.disk.mkdir(parents=True)
    assert not disk.fill(names)
    assert not disk.filler(names).exists()


def test_busy_mounts_are_tried_again(stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    box = stand_in(disk)
    monkeypatch.setattr(disk, "is_mounted", lambda _path: True)
    monkeypatch.setattr(time, "sleep", lambda _seconds: box.answer("umount", 0))
    box.answer("umount", 32)
    assert disk.unmount(Path("/x"))
    assert len(box.matching("umount /x")) == 2


def test_what_is_not_mounted_is_not_unmounted(box: Any) -> None:
    assert not disk.unmount(Path("/x"))
    assert box.commands == []
