"""Project quotas: what is still to be done. That kernels do it: tests/integration/test_quota.py."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util

QUOTA = module_util("pai_quota")
FIRST = QUOTA.FIRST_PROJECT
MIB = 1 << 20


def folder(path: str, project: int = 0, limit: int = 0, wanted: int = MIB) -> Any:
    return QUOTA.Folder(path, project, limit, wanted)


def test_each_folder_gets_a_project_of_its_own() -> None:
    steps = QUOTA.missing([folder("/s/data"), folder("/s/users/a"), folder("/s/users/b")])
    assert steps == [
        ("/s/data", FIRST + 1, MIB, True),
        ("/s/users/a", FIRST + 2, MIB, True),
        ("/s/users/b", FIRST + 3, MIB, True),
    ]


def test_what_is_limited_is_left_alone() -> None:
    assert QUOTA.missing([folder("/a", FIRST + 1, MIB), folder("/b", 7, MIB)]) == []


def test_another_limit_needs_no_walk() -> None:
    assert QUOTA.missing([folder("/a", FIRST + 4, 2 * MIB)]) == [("/a", FIRST + 4, MIB, False)]


def test_a_walk_that_was_interrupted_is_made_again() -> None:
    assert QUOTA.missing([folder("/a", FIRST + 4, 0)]) == [("/a", FIRST + 4, MIB, True)]


def test_a_new_folder_takes_no_number_that_is_in_use() -> None:
    (step,) = QUOTA.missing([folder("/a"), folder("/b", FIRST + 9, MIB), folder("/c", 12, MIB)])
    assert step == ("/a", FIRST + 10, MIB, True)


def test_of_two_folders_with_one_project_the_second_gets_another() -> None:
    both = [folder("/a", FIRST + 1, MIB), folder("/b", FIRST + 1, MIB)]
    assert QUOTA.missing(both) == [("/b", FIRST + 2, MIB, True)]


def test_without_a_quota_in_the_site_ours_goes_and_the_admins_stays() -> None:
    seen = [folder("/a", FIRST + 1, MIB, 0), folder("/b", 7, MIB, 0), folder("/c", 0, 0, 0)]
    assert QUOTA.missing(seen) == [("/a", FIRST + 1, 0, False)]


@pytest.mark.parametrize(("size", "kept"), [(0, 0), (1, 65536), (65536, 65536), (10**12, 1000000061440)])
def test_a_size_is_one_that_reads_back_the_same(size: int, kept: int) -> None:
    assert QUOTA.rounded(size) == kept
    assert kept % 65536 == 0


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> dict[int, bytes]:
    """Answers of quotactl_fd, by command; without one it says that no quotas are on."""
    answers: dict[int, bytes] = {}

    def quotactl(_descriptor: int, command: int, _number: int, buffer: ctypes.Array[ctypes.c_char]) -> None:
        if command not in answers:
            raise OSError(38, "no quotas")
        ctypes.memmove(buffer, answers[command], len(answers[command]))

    monkeypatch.setattr(QUOTA, "_quotactl", quotactl)
    return answers


@pytest.mark.parametrize(("flags", "kept"), [(0x30, True), (0x3F, True), (0x10, False), (0x0F, False), (0, False)])
def test_project_quotas_are_counted_and_enforced(
    kernel: dict[int, bytes], tmp_path: Path, flags: int, kept: bool
) -> None:
    assert not QUOTA.kept(str(tmp_path))
    kernel[0x5805] = struct.pack("=bxHb", 1, flags, 0)
    assert QUOTA.kept(str(tmp_path / "not" / "yet")) is kept


def test_a_limit_is_read_in_bytes(kernel: dict[int, bytes], tmp_path: Path) -> None:
    limit = QUOTA._limit
    assert limit(0, 5) == 0
    kernel[0x5803] = struct.pack("=bbHIQQ", 1, 2, 0, 5, 2048, 0)
    assert limit(0, 5) == MIB


def test_users_are_the_folders_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "alice").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("/etc")
    assert [found.path for found in QUOTA.looked_at(str(tmp_path), MIB, each=True)] == [f"{tmp_path}/alice"]
    assert [found.path for found in QUOTA.looked_at(str(tmp_path), MIB, each=False)] == [str(tmp_path)]
    assert QUOTA.looked_at(f"{tmp_path}/none", MIB, each=True) == []


def test_drift_names_the_folder(kernel: dict[int, bytes], tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    for name in ("alice", "bob"):
        (tmp_path / name).mkdir()
    item = {"path": str(tmp_path), "size": MIB, "each": True}
    assert QUOTA.problem(item) == snapshot
    kernel[0x5805] = struct.pack("=bxHb", 1, 0x30, 0)
    assert QUOTA.problem(item) == snapshot
    assert QUOTA.problem({**item, "path": f"{tmp_path}/alice"}) == ""
