"""The pod that tries a storage: what it is made of, and what its script does in a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.ansible_path import module_util

POD = module_util("pai_storage_pod")
HOW = POD.How("ab12", "registry.pai.internal/busybox@sha256:00", 1, 150)
GRANT = POD.Grant("data", "vision", "data")
# the tools of this host under the name of busybox; $BREAK: words of the command that fails, and what it then says
BUSYBOX = """#!/bin/sh
if [ -n "$BREAK" ]; then
  case "$*" in *"$BREAK"*) echo "$1: $SAYS" >&2; exit 1 ;; esac
fi
exec "$@"
"""


class Folder:
    """A storage and the writer's script on it."""

    def __init__(self, root: Path) -> None:
        self.mount, self._root = root / "mount", root
        for path in (self.mount, root / "bin", root / "shm"):
            path.mkdir()
        (root / "bin" / "busybox").write_text(BUSYBOX)
        (root / "bin" / "busybox").chmod(0o755)

    def run(self, script: str = POD.WRITER, **words: str) -> dict[str, str]:
        """What it said; the log and the last words of the container are the same."""
        notify = self._root / "say"
        notify.unlink(missing_ok=True)
        given = {"MOUNT": str(self.mount), "NAME": "n-0", "MIB": "1", "READ_ONLY": "no", "SAY": str(notify), **words}
        path = f"{self._root / 'bin'}:{os.environ['PATH']}"
        environment = {"PATH": path, "SCRATCH": str(self._root / "shm"), **given}
        done = subprocess.run(
            ["sh", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stderr == ""
        told: dict[str, str] = POD.key_values(notify.read_text())
        assert script != POD.WRITER or done.stdout == notify.read_text()
        assert done.returncode == (1 if "error" in told else 0)
        return told

    def left(self) -> list[str]:
        """Names in the storage."""
        return sorted(path.name for path in self.mount.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_it_writes_reads_back_and_leaves_nothing(folder: Folder) -> None:
    (folder.mount / "jobs").mkdir()
    told = folder.run()
    assert told["step"] == "done"
    assert told["mib"] == "1"
    assert {"write_cs", "read_cs", "from"} <= told.keys()
    status = folder.mount.stat()
    assert (told["mode"], told["owner"]) == (f"{status.st_mode & 0o7777:o}", f"{status.st_uid}:{status.st_gid}")
    assert folder.left() == ["jobs"]


@pytest.mark.parametrize(
    ("broken", "says", "step"),
    [
        ("mkdir", "Read-only file system", "create"),
        ("mkdir", "Permission denied", "create"),
        ("conv=fsync", "No space left on device", "write"),
        ("ls -A", "Stale file handle", "list"),
        ("cmp", "differ: byte 1, line 1", "compare"),
        ("of=%s/shm/back", "Input/output error", "read"),
    ],
)
def test_what_fails_is_told_with_its_step_and_cleaned_up(
    folder: Folder, tmp_path: Path, broken: str, says: str, step: str
) -> None:
    told = folder.run(BREAK=broken.replace("%s", str(tmp_path)), SAYS=says)
    assert (told["step"], told["error"].strip()) == (step, f"{told['error'].partition(':')[0]}: {says}")
    assert folder.left() == []


def test_a_file_system_that_cannot_be_read_past_the_memory_is_read_all_the_same(folder: Folder) -> None:
    told = folder.run(BREAK="iflag=direct", SAYS="Invalid argument")
    assert (told["step"], told["from"]) == ("done", "memory")


def test_folders_of_interrupted_runs_go_but_those_of_the_last_hour_and_what_is_not_ours(folder: Folder) -> None:
    for name in (".pai-install-test-old-1", ".pai-install-test-new-1", "old"):
        (folder.mount / name).mkdir()
    for name in (".pai-install-test-old-1", "old"):
        os.utime(folder.mount / name, (0, 0))
    folder.run()
    assert folder.left() == [".pai-install-test-new-1", "old"]


def test_a_read_only_storage_is_not_written_to(folder: Folder) -> None:
    told = folder.run(READ_ONLY="yes", BREAK="mkdir", SAYS="Read-only file system")
    assert (told["step"], "wrote" in told) == ("done", False)
    assert folder.run(READ_ONLY="yes")["wrote"] == "yes"
    assert folder.left() == []


def test_another_user_may_write_or_not(folder: Folder) -> None:
    assert folder.run(POD.OTHER) == {"others": "yes"}
    assert folder.left() == []
    assert folder.run(POD.OTHER, BREAK="touch", SAYS="Permission denied") == {"others": "no"}


def test_every_grant_is_tried_on_every_worker_and_one_of_a_machine_there_alone() -> None:
    disk = POD.Grant("disk", "vision", "disk", machine="two")
    found = POD.trials([GRANT, disk], ["one", "two"], "ab12")
    assert [(one.grant.storage, one.worker) for one in found] == [("data", "one"), ("data", "two"), ("disk", "two")]
    assert [one.name for one in found] == ["storage-test-ab12-0", "storage-test-ab12-1", "storage-test-ab12-2"]


def test_the_pod_goes_where_it_is_told_and_ends_by_itself() -> None:
    (trial,) = POD.trials([GRANT], ["one"], "ab12")
    made: dict[str, Any] = POD.pod(trial, HOW)
    spec = made["spec"]
    assert made["metadata"]["namespace"] == "vision"
    assert made["metadata"]["labels"] == {"pai-install/probe": "storage", "pai-install/run": "ab12"}
    assert (spec["nodeName"], spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("one", "Never", 150)
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["automountServiceAccountToken"] is False
    assert spec["volumes"] == [{"name": "storage", "persistentVolumeClaim": {"claimName": "data"}}]
    assert [one["securityContext"]["runAsUser"] for one in spec["containers"]] == [0, 65534]
    for one in spec["containers"]:
        assert one["image"] == HOW.image
        assert one["resources"]["limits"] == {"cpu": "1", "memory": "66Mi"}
        assert one["resources"]["requests"] == {"cpu": "0", "memory": "0"}


def test_a_read_only_storage_is_tried_by_root_alone() -> None:
    (trial,) = POD.trials([GRANT._replace(read_only=True)], ["one"], "ab12")
    (only,) = POD.pod(trial, HOW)["spec"]["containers"]
    assert {"name": "READ_ONLY", "value": "yes"} in only["env"]
