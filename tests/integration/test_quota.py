"""Project quotas on real xfs and ext4: a user-mode Linux mounts images and runs the product's code.

The kernels of controller hosts and of the lab need no quotas. The guest's root is this box, read-only.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

LINUX = "linux.uml"
MODULES = Path("/usr/lib/uml/modules")
GUEST = Path(__file__).with_name("quota_guest.py")
UTILITIES = Path(__file__).parents[2] / "playbooks/module_utils"
SBIN = f"{os.environ['PATH']}:/usr/sbin:/sbin"
needs_linux = pytest.mark.skipif(
    not all(shutil.which(name, path=SBIN) for name in (LINUX, "mkfs.xfs", "mkfs.ext4")),
    reason="the box has no user-mode-linux, or no xfsprogs",
)

pytestmark = needs_linux


def made(folder: Path, name: str, mib: int, *command: str) -> Path:
    """An image with a file system, or with nothing."""
    path = folder / f"{name}.img"
    with path.open("wb") as file:
        file.truncate(mib << 20)
    if command:
        subprocess.run([*command, "-q", str(path)], env={**os.environ, "PATH": SBIN}, check=True)
    return path


def linux(*words: str) -> str:
    """The output of a user-mode Linux on this host's files."""
    root = ("mem=512M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "con=null", "con0=fd:0,fd:1")
    done = subprocess.run(
        [LINUX, *root, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False
    )
    return done.stdout


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, dict[str, Any]]:
    """What the guest saw, by file system."""
    # with some processors, programs in user-mode Linux end at once by a segmentation fault
    if "exitcode=0x0000000b" in linux("init=/bin/true"):
        pytest.skip("user-mode Linux runs no program on this processor")
    folder = tmp_path_factory.mktemp("quota")
    images = [
        made(folder, "xfs", 320, "mkfs.xfs"),
        made(folder, "ext4", 100, "mkfs.ext4", "-O", "project,quota", "-E", "quotatype=prjquota"),
        made(folder, "plain", 100, "mkfs.ext4"),
        made(folder, "answer", 1),
    ]
    first = folder / "init"
    modules = max(MODULES.iterdir())
    guest = shlex.join([sys.executable, str(GUEST), str(UTILITIES), str(modules), "/dev/ubdd"])
    first.write_text(f"#!/bin/sh\nmount -t proc proc /proc\nexec {guest}\n")
    first.chmod(0o755)
    disks = (f"ubd{letter}={path}" for letter, path in zip("abcd", images, strict=True))
    output = linux(f"init={first}", f"uml_dir={folder}", *disks)
    answer = images[-1].read_bytes().rstrip(b"\0")
    assert answer, output
    found: dict[str, dict[str, Any]] = json.loads(answer)
    assert "failed" not in found, found
    return found


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
class TestQuotas:
    """On each file system that has them."""

    def test_folders_are_limited_once(self, seen: Mapping[str, dict[str, Any]], kind: str) -> None:
        assert seen[kind]["kept"]
        assert seen[kind]["first"] == ["data", "users/alice", "users/bob"]
        assert (seen[kind]["again"], seen[kind]["drift"]) == ([], "")

    def test_what_was_there_counts_and_no_one_writes_beyond(
        self, seen: Mapping[str, dict[str, Any]], kind: str
    ) -> None:
        assert seen[kind]["data"][0] == 4
        assert seen[kind]["data"][1] < 2, "3 and 4 of 8 were taken"
        assert seen[kind]["alice"][0] == 2
        assert seen[kind]["alice"][1] < 2, "2 and 2 of 5 were taken"
        assert seen[kind]["bob"] == 4

    def test_new_folders_are_drift_and_get_theirs(self, seen: Mapping[str, dict[str, Any]], kind: str) -> None:
        assert seen[kind]["drift later"] == f"/users/carol and 1 more without the quota of {5 << 20} bytes"
        assert seen[kind]["later"] == ["users/carol", "users/runs"]
        assert seen[kind]["again later"] == []

    def test_another_limit_counts_at_once_and_none_is_none(self, seen: Mapping[str, dict[str, Any]], kind: str) -> None:
        assert seen[kind]["higher"][0] == "data"
        assert seen[kind]["higher"][1] in (2, 3)
        assert seen[kind]["none"] == ["data", 12]


def test_a_file_system_without_quotas_is_known_and_left_alone(seen: Mapping[str, dict[str, Any]]) -> None:
    assert not seen["plain"]["kept"]
    assert seen["plain"]["unlimited"][1:] == [0, 0, 0]
