"""What is copied from a storage's place to the next, by the pods' own scripts in folders, with the rsync of the box."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.site.services.storages import StorageEntry
from pai_install.storage.copying import (
    CopyRoute,
    Measured,
    Mode,
    copy_conflict,
    copy_pod,
    copy_route,
    each_machine,
    progress,
)
from pai_install.storage.model import Grant
from pai_install.storage.objects import probe_volume_objects

BUSYBOX = '#!/bin/sh\nexec "$@"\n'
needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="the box has no rsync")


def entry(**keys: Any) -> StorageEntry:
    return StorageEntry.model_validate({"name": "data", "type": "nfs", "server": "nas", "path": "/old", **keys})


FIRST = copy_route(Grant(entry(), "vision", "vision"), entry(path="/new"), 2)
LAST = replace(FIRST, last=True)
BESIDE = replace(LAST, beside=True)


class Places:
    """Two folders, and the pods' scripts in them."""

    def __init__(self, root: Path) -> None:
        self.old, self.new, self._root = root / "old", root / "new", root
        for path in (self.old, self.new, root / "bin", root / "shm"):
            path.mkdir()
        if shutil.which("busybox") is None:
            (root / "bin" / "busybox").write_text(BUSYBOX)
            (root / "bin" / "busybox").chmod(0o755)

    def start(self, route: CopyRoute, mode: Mode) -> subprocess.Popen[str]:
        """Begins what the pod would do."""
        (container,) = copy_pod(route, mode, "one", "ab12", "rsync")["spec"]["containers"]
        words = {item["name"]: item["value"] for item in container["env"]}
        own = {"OLD": str(self.old), "NEW": str(self.new), "SCRATCH": str(self._root / "shm")}
        path = f"{self._root / 'bin'}:{os.environ['PATH']}"
        given = {**os.environ, **words, **own, "SAY": str(self._root / "say"), "PATH": path}
        (self._root / "say").unlink(missing_ok=True)
        return subprocess.Popen(["sh", "-c", container["command"][-1]], env=given, stdout=subprocess.PIPE, text=True)

    def run(self, route: CopyRoute, mode: Mode) -> dict[str, str]:
        """What it said at its end."""
        with self.start(route, mode) as process:
            process.communicate(timeout=60)
        return self.report()

    def report(self) -> dict[str, str]:
        pairs = [line.partition("=") for line in (self._root / "say").read_text().splitlines()]
        return {key: value.strip() for key, _, value in pairs}

    def copied(self, route: CopyRoute) -> Mapping[str, str]:
        """After a copy that must succeed."""
        report = self.run(route, "copy")
        assert report["step"] == "done", report
        return report

    def names(self) -> list[str]:
        return sorted(str(path.relative_to(self.new)) for path in self.new.rglob("*"))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def write(path: Path, text: str, at: int = 0) -> None:
    """A file that was changed so many seconds ago (negative)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    stamp = time.time() + at
    os.utime(path, (stamp, stamp))


@needs_rsync
def test_what_there_is_comes_over_as_it_is(places: Places) -> None:
    write(places.old / "alice/run/log", "one\n", -90)
    (places.old / "alice").chmod(0o750)
    os.link(places.old / "alice/run/log", places.old / "same")
    (places.old / "to").symlink_to("alice/run")
    with (places.old / "holes").open("wb") as file:
        file.truncate(8 << 20)
    with suppress(OSError):  # a file system without attributes
        os.setxattr(places.old / "alice/run/log", "user.kind", b"run")
    attributes = os.listxattr(places.old / "alice/run/log")
    places.copied(FIRST)
    log = places.new / "alice/run/log"
    assert log.read_text() == "one\n"
    assert os.listxattr(log) == attributes
    assert log.stat().st_ino == (places.new / "same").stat().st_ino
    assert int(log.stat().st_mtime) == int((places.old / "same").stat().st_mtime)
    assert (places.new / "alice").stat().st_mode & 0o777 == 0o750
    assert (places.new / "to").readlink() == Path("alice/run")
    assert (places.new / "holes").stat().st_blocks < (1 << 20) // 512
    assert places.names() == ["alice", "alice/run", "alice/run/log", "holes", "same", "to"], "nothing of ours is left"
    assert places.run(LAST, "verify")["differ"] == "0"


@needs_rsync
def test_what_the_new_place_lacks_is_found_by_its_bytes(places: Places) -> None:
    write(places.old / "data", "good", -50)
    places.copied(FIRST)
    at = (places.new / "data").stat().st_mtime
    (places.new / "data").write_text("evil")
    os.utime(places.new / "data", (at, at))
    report = places.run(LAST, "verify")
    assert (report["step"], report["differ"]) == ("done", "1")
    assert "data" in report["example"]
    assert places.run(BESIDE, "verify")["differ"] == "1"


@needs_rsync
def test_the_last_copy_of_a_place_that_no_job_has_yet_is_exact_and_loses_nothing(places: Places) -> None:
    write(places.old / "stays", "1", -50)
    write(places.old / "goes", "2", -50)
    places.copied(FIRST)
    (places.old / "goes").unlink()
    write(places.old / "stays", "changed", -10)
    assert places.run(LAST, "verify")["differ"] == "2"
    places.copied(LAST)
    report = places.run(LAST, "verify")
    assert (report["differ"], report["kept"]) == ("0", "2")
    kept = places.new / ".pai-install-copy/replaced-g2"
    assert [path.name for path in sorted(kept.iterdir())] == ["goes", "stays"]
    assert (kept / "stays").read_text() == "1"
    assert (places.new / "stays").read_text() == "changed"
    assert not (places.new / "goes").exists()


@needs_rsync
def test_what_lay_in_the_new_place_before_is_never_lost(places: Places, snapshot: SnapshotAssertion) -> None:
    write(places.new / "theirs", "other data")
    write(places.new / "both", "newer, and not the jobs'")
    write(places.old / "both", "the jobs'", -50)
    assert "empty" not in places.run(FIRST, "measure")
    filled = replace(FIRST, filled=True)
    places.copied(filled)
    places.copied(replace(filled, last=True))
    assert (places.new / "both").read_text() == "the jobs'"
    assert (places.new / ".pai-install-copy/replaced-g2/both").read_text() == snapshot
    assert (places.new / "theirs").read_text() == "other data"
    assert places.run(replace(filled, last=True), "verify")["differ"] == "0"


@needs_rsync
def test_beside_jobs_the_newer_file_wins_and_the_other_stays(places: Places, snapshot: SnapshotAssertion) -> None:
    for name in ("old-wins", "new-wins", "same"):
        write(places.old / name, "first", -90)
    places.copied(FIRST)
    write(places.new / "new-wins", "by a new job", -10)
    write(places.old / "new-wins", "by an old job", -30)
    write(places.new / "old-wins", "by a new job", -30)
    write(places.old / "old-wins", "by an old job", -10)
    write(places.new / "only-new", "by a new job", -10)
    write(places.old / "only-old", "by an old job", -10)
    (places.old / "same").unlink()
    places.copied(BESIDE)
    texts = {path.name: path.read_text() for path in places.new.iterdir() if path.is_file()}
    assert texts == {
        "new-wins": "by a new job",
        "old-wins": "by an old job",
        "only-new": "by a new job",
        "only-old": "by an old job",
        "same": "first",
    }
    assert (places.new / ".pai-install-copy/replaced-g2/old-wins").read_text() == snapshot
    assert (places.old / "new-wins").read_text() == snapshot
    (places.new / "same").chmod(0o600)
    report = places.run(BESIDE, "verify")
    assert (report["differ"], report["newer"], report["newer_example"], report["kept"]) == ("0", "1", "new-wins", "1")


@needs_rsync
def test_a_pod_that_is_lost_takes_nothing_along(places: Places) -> None:
    big = places.old / "big"
    big.write_bytes(os.urandom(64 << 20))
    parts = places.new / ".pai-install-copy/parts"

    def has_part() -> bool:
        with suppress(FileNotFoundError):  # the copy makes the folder anew
            return any(parts.iterdir())
        return False

    for _ in range(10):
        process = places.start(FIRST, "copy")
        while process.poll() is None and not has_part():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        if process.returncode and not (places.new / "big").exists():
            break
        # the file was whole before the signal
        (places.new / "big").unlink(missing_ok=True)
    assert not (places.new / "big").exists()
    write(parts / ".big.x", "of one that was killed")
    places.copied(FIRST)
    assert (places.new / "big").read_bytes() == big.read_bytes()
    assert places.names() == ["big"]


@needs_rsync
def test_it_counts_before_and_sees_one_folder_under_two_names(places: Places) -> None:
    write(places.old / "a/one", "12345")
    write(places.old / "two", "12345")
    (places.new / "lost+found").mkdir()
    report = places.run(FIRST, "measure")
    found = Measured.read(report)
    assert (report["step"], found.files, found.size, found.empty, found.same) == ("done", 2, 10, True, False)
    assert found.free is not None
    assert not found.lacks_room
    assert places.names() == ["lost+found"]
    shutil.rmtree(places.new)
    places.new.symlink_to(places.old)
    assert Measured.read(places.run(FIRST, "measure")).same


@needs_rsync
def test_what_rsync_cannot_do_is_said_in_its_words(places: Places) -> None:
    write(places.old / "thing", "a file")
    write(places.new / "thing/inside", "of others")
    report = places.run(FIRST, "copy")
    assert report["step"] == "copy"
    assert "thing" in report["error"]
    assert (places.new / "thing/inside").read_text() == "of others"


def test_room_is_lacking_where_the_numbers_say_so() -> None:
    report = {"free_kib": "1", "bytes": "2048", "files": "3"}
    assert Measured.read(report).lacks_room
    assert not Measured.read({**report, "held_kib": "1"}).lacks_room, "files with holes"
    assert Measured.read({**report, "held_kib": "2"}).lacks_room
    assert not Measured.read({"free_kib": "1"}).lacks_room, "not counted in time"


def test_progress_is_read_from_what_rsync_says() -> None:
    assert progress("      1,238,099  12%  146.38kB/s    0:00:08 (xfr#5, to-chk=169/396)") == (1238099, 5)
    assert progress("  33554432  50%   30.01MB/s    0:00:01") == (33554432, None)
    assert progress("sent 20 bytes  received 30 bytes") is None


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ({}, {"mount_options": ("nfsvers=4.1",)}, "nothing to copy"),
        ({}, {"path": "/old/below"}, "lie within each other"),
        ({"path": "/old/below"}, {}, "lie within each other"),
        ({"type": "local", "machine": "one"}, {"type": "local", "machine": "two"}, "no pod mounts folders of two"),
    ],
)
def test_what_makes_no_sense_is_refused(old: dict[str, Any], new: dict[str, Any], word: str) -> None:
    found = copy_conflict(entry(**old), entry(**{"path": "/old", **new}))
    assert found is not None
    assert word in found[0]


def test_other_places_are_copied() -> None:
    assert copy_conflict(entry(), entry(server="nas2")) is None
    assert copy_conflict(entry(), entry(path="/older")) is None
    assert each_machine(entry(type="hostPath"))
    assert not each_machine(entry())


def test_both_places_stand_for_themselves_and_the_old_one_is_read_only() -> None:
    made = copy_route(
        Grant(entry(), "vision", "vision", 3, "data-g3", adopted="by-hand"), entry(path="/new", read_only=True), 4
    )
    old, new = probe_volume_objects(made.old, {}), probe_volume_objects(made.new, {})
    assert [it["metadata"]["name"] for it in (*old, *new)] == [
        "vision-pai-from-data-g3", "pai-from-data", "vision-pai-to-data-g4", "pai-to-data",
    ]  # fmt: skip
    assert old[0]["spec"]["nfs"] == {"server": "nas", "path": "/old", "readOnly": True}
    assert new[0]["spec"]["nfs"] == {"server": "nas", "path": "/new", "readOnly": False}
    spec = copy_pod(made, "copy", "one", "ab", "image")["spec"]
    assert [it["readOnly"] for it in spec["containers"][0]["volumeMounts"] if "readOnly" in it] == [True]
