from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from pai_install.components.model import ComponentSet
from pai_install.components.progress import silent
from pai_install.components.store import (
    CacheEntry,
    Contents,
    StagedFile,
    StagedImage,
    Store,
    default_cache,
    sha256_of,
)


def publish(store: Store, key: str = "runc-1", content: bytes = b"program") -> CacheEntry:
    with store.staging(key) as staged:
        (staged / "files").mkdir()
        (staged / "files/runc").write_bytes(content)
        (staged / "images/pause/blobs").mkdir(parents=True)
        (staged / "images/pause/blobs/x").write_bytes(b"blob")
        file = StagedFile("runc", "1.4.3", "binary", staged / "files/runc")
        image = StagedImage("pause", "3.10.2", "sha256:ab", staged / "images/pause")
        return store.publish(key, staged, Contents((file,), (image,)))


def test_what_was_published_is_found_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    published = publish(store)
    found = Store(tmp_path).lookup("runc-1", silent)
    assert found == published
    (file,) = published.files
    assert file.path.read_bytes() == b"program"
    assert (file.size, file.sha256) == (7, sha256_of(file.path))
    (image,) = published.images
    assert (image.layout / "blobs/x").is_file()
    assert published.path("runc") == file.path


def test_an_unknown_key_is_not_found(tmp_path: Path) -> None:
    assert Store(tmp_path / "nowhere").lookup("runc-1", silent) is None


@pytest.mark.parametrize("name", ["files/runc", "images/pause/blobs/x"])
def test_a_damaged_entry_is_named_and_counts_as_missing(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)
    entry = publish(store)
    path = entry.folder / name
    path.write_bytes(path.read_bytes()[:-1] + b"X")
    told: list[str] = []
    assert store.lookup("runc-1", told.append) is None
    assert name in told[0]
    assert not entry.folder.exists()


def test_a_deleted_file_counts_as_damage(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store).path("runc").unlink()
    assert store.lookup("runc-1", silent) is None


def test_a_copied_cache_is_checked_once_and_believed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    entry = publish(store)
    os.utime(entry.path("runc"), (1, 1))
    record = (entry.folder / "entry.json").read_text()
    assert store.lookup("runc-1", silent) == entry
    assert (entry.folder / "entry.json").read_text() != record
    assert store.lookup("runc-1", silent) == entry


def test_an_unchanged_entry_is_not_hashed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    publish(store)
    monkeypatch.setattr("pai_install.components.store.sha256_of", lambda _: pytest.fail("hashed"))
    assert store.lookup("runc-1", silent)


@pytest.mark.parametrize("record", ["", "{", '{"schema_version": 99}'])
def test_a_record_that_is_not_ours_counts_as_missing(tmp_path: Path, record: str) -> None:
    store = Store(tmp_path)
    (publish(store).folder / "entry.json").write_text(record)
    assert store.lookup("runc-1", silent) is None


def test_an_interrupted_production_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fail() -> None:
        with store.staging("runc-1") as staged:
            (staged / "half").write_bytes(b"x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert store.lookup("runc-1", silent) is None
    assert list((tmp_path / "entries").iterdir()) == []


def test_publishing_again_replaces(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store)
    entry = publish(store, content=b"newer")
    assert entry.path("runc").read_bytes() == b"newer"
    assert [path.name for path in (tmp_path / "entries").iterdir()] == ["runc-1"]


def test_the_record_holds_no_absolute_path(tmp_path: Path) -> None:
    entry = publish(Store(tmp_path))
    assert str(tmp_path) not in json.dumps(json.loads((entry.folder / "entry.json").read_text()))


def test_the_scratch_folder_is_empty_and_goes_away(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (tmp_path / "build/left").mkdir(parents=True)
    with store.exclusive(silent) as scratch:
        assert list(scratch.iterdir()) == []
        (scratch / "x").write_text("x")
    assert not scratch.exists()


def test_a_program_of_a_killed_run_that_still_writes_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, left = Store(tmp_path), tmp_path / "build"
    left.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as soon as a file is deleted, another one is there
        with store.exclusive(silent) as scratch:
            assert scratch != left
            assert list(scratch.iterdir()) == []


def test_what_a_killed_run_left_is_cleared_away(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store)
    (tmp_path / "entries/.runc-1.x7f/files").mkdir(parents=True)
    with store.exclusive(silent):
        assert [path.name for path in (tmp_path / "entries").iterdir()] == ["runc-1"]


def test_a_second_writer_waits_and_says_for_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/x/pai-install", "components", "fetch", "--site", "other"])
    told: list[str] = []
    waits, entered = threading.Event(), threading.Event()

    def progress(line: str) -> None:
        told.append(line)
        waits.set()

    def second() -> None:
        with Store(tmp_path).exclusive(progress):
            entered.set()

    with Store(tmp_path).exclusive(silent):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(60)
        assert not entered.wait(0.2)
    thread.join(60)
    assert entered.is_set()
    (line,) = told
    words = "waits for another pai-install that fetches components: process"
    assert line.startswith(f"{words} {os.getpid()} (`pai-install components fetch --site other`), since 20")
    assert not (tmp_path / "lock.json").exists()


def test_a_second_writer_waits_also_for_one_that_did_not_say_who_it_is(tmp_path: Path) -> None:
    told: list[str] = []
    waits = threading.Event()

    def progress(line: str) -> None:
        told.append(line)
        waits.set()

    with FileLock(tmp_path / "lock"):
        thread = threading.Thread(target=lambda: Store(tmp_path).exclusive(progress).__enter__(), daemon=True)
        thread.start()
        assert waits.wait(60)
    thread.join(60)
    assert told == ["waits for another pai-install that fetches components: it has just begun"]


def test_a_long_wait_is_said_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that compiles Volcano holds the lock for a quarter of an hour."""
    monkeypatch.setattr("pai_install.components.store._REMIND_S", 0.05)
    told: list[str] = []
    said = threading.Event()

    def progress(line: str) -> None:
        told.append(line)
        if len(told) == 3:
            said.set()

    with FileLock(tmp_path / "lock"):
        thread = threading.Thread(target=lambda: Store(tmp_path).exclusive(progress).__enter__(), daemon=True)
        thread.start()
        assert said.wait(60)
    thread.join(60)
    assert not thread.is_alive()


def test_the_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "pai-install"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/admin")
    assert default_cache() == Path("/home/admin/.cache/pai-install")


def test_a_set_finds_by_name(tmp_path: Path) -> None:
    entry = publish(Store(tmp_path))
    everything = ComponentSet(entry.files, entry.images, "1.36.3")
    assert everything.file("runc").version == "1.4.3"
    assert everything.image("pause").tag == "3.10.2"
    with pytest.raises(KeyError):
        everything.file("pause")
    with pytest.raises(KeyError):
        everything.image("runc")
