"""A large file is read once; every change of it is seen."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LARGE = b"a" * (1 << 20)


@pytest.fixture
def kept(digests: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where digests are remembered; what changed just now counts as settled."""
    path = tmp_path / "run" / "pai-install" / "digests.json"
    monkeypatch.setattr(digests, "REMEMBERED", str(path))
    monkeypatch.setattr(digests, "SETTLED_S", -1.0)
    return path


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_bytes(LARGE)
    return path


def test_a_large_file_is_read_once(digests: Any, kept: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = digests.file_sha256(str(program))
    assert first == hashlib.sha256(LARGE).hexdigest()
    assert kept.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(digests, "_digest", lambda _handle: "read again")
    assert digests.file_sha256(str(program)) == first


def rewrite(path: Path) -> None:
    path.write_bytes(b"b" * len(LARGE))


def rewrite_and_set_the_times_back(path: Path) -> None:
    before = path.stat()
    time.sleep(0.02)  # longer than a tick of the kernel's clock
    rewrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    other = path.with_name("other")
    rewrite(other)
    other.replace(path)


@pytest.mark.parametrize("change", [rewrite, rewrite_and_set_the_times_back, replace])
def test_every_change_is_seen(digests: Any, kept: Path, program: Path, change: Callable[[Path], None]) -> None:
    digests.file_sha256(str(program))
    assert kept.exists()
    change(program)
    assert digests.file_sha256(str(program)) == hashlib.sha256(b"b" * len(LARGE)).hexdigest()


def test_what_was_just_written_is_not_remembered(
    digests: Any, kept: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "SETTLED_S", 2.0)
    digests.file_sha256(str(program))
    assert not kept.exists()


def test_small_files_are_read_each_time(digests: Any, kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_bytes(b"a = 1\n")
    assert digests.file_sha256(str(path)) == hashlib.sha256(b"a = 1\n").hexdigest()
    assert not kept.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"PATH": 1}', '{"PATH": ["x"]}', '{"PATH": null}'])
def test_a_damaged_memory_is_none(digests: Any, kept: Path, program: Path, text: str) -> None:
    kept.parent.mkdir(parents=True, mode=0o700)
    kept.write_text(text.replace("PATH", str(program)))
    assert digests.file_sha256(str(program)) == hashlib.sha256(LARGE).hexdigest()


def test_a_memory_that_others_can_write_is_not_believed(digests: Any, kept: Path, program: Path) -> None:
    digests.file_sha256(str(program))
    known = {path: (seen, "f" * 64) for path, (seen, _digest) in json.loads(kept.read_text()).items()}
    kept.write_text(json.dumps(known))
    kept.parent.chmod(0o777)
    assert digests.file_sha256(str(program)) == hashlib.sha256(LARGE).hexdigest()


def test_files_that_went_are_forgotten(digests: Any, kept: Path, program: Path, tmp_path: Path) -> None:
    digests.file_sha256(str(program))
    program.rename(tmp_path / "elsewhere")
    digests.file_sha256(str(tmp_path / "elsewhere"))
    assert list(json.loads(kept.read_text())) == [str(tmp_path / "elsewhere")]


def test_a_machine_that_cannot_remember_hashes(
    digests: Any, program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(digests, "REMEMBERED", str(tmp_path / "file" / "digests.json"))
    monkeypatch.setattr(digests, "SETTLED_S", -1.0)
    assert digests.file_sha256(str(program)) == hashlib.sha256(LARGE).hexdigest()
