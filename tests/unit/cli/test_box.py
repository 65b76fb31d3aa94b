"""What the controller host refuses is told as such: path, reason, remedy, exit code; and looking writes nothing."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import ExitCode
from pai_install.run.state import open_state
from pai_install.system.files import naming
from pai_install.system.refusals import refused_by_box
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.runs import done, event, phase

WORK = (phase("base", "master", "one", "two"),)
SCRIPT = {"base.yml": done(*(event("ok", host) for host in ("master", "one", "two")))}


@pytest.fixture
def world(in_world: Callable[[World], World]) -> World:
    return in_world(World(WORK, dict(SCRIPT)))


@pytest.fixture
def read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site in a folder that may only be read, also by root: a stand-in for a read-only file system."""
    site = write_site(tmp_path / "site")

    def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
        def stand_in(path: Any, flags: int, *words: Any, **named: Any) -> Any:
            if Path(path).is_relative_to(site) and flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return call(path, flags, *words, **named)

        return stand_in

    monkeypatch.setattr(os, "open", refusing(os.open))
    monkeypatch.setattr(os, "mkdir", refusing_folders(site, os.mkdir))
    return site


def refusing_folders(site: Path, make: Callable[..., None]) -> Callable[..., None]:
    def stand_in(path: Any, *words: Any, **named: Any) -> None:
        if Path(path).is_relative_to(site):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        make(path, *words, **named)

    return stand_in


def content(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.mark.parametrize(
    "words", [("status",), ("plan",), ("apply", "--yes"), ("preflight",), ("health",)], ids=lambda w: w[0]
)
def test_a_folder_that_cannot_be_written_is_named(
    read_only: Path, world: World, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run([*words, "--site", str(read_only)]) == ExitCode.PREFLIGHT_FAILED
    error = capsys.readouterr().err
    assert "code: controller-host-refused" in error
    assert str(read_only / ".pai") in error


def test_a_new_site_that_cannot_be_written_is_named(read_only: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--site", str(read_only / "new")]) == ExitCode.USAGE
    assert "code: new-site-folder-unwritable" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("status", "--offline"), ("inventory",)], ids=lambda words: words[0])
def test_looking_needs_no_right_to_write(
    read_only: Path, world: World, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run([*words, "--site", str(read_only)]) == ExitCode.OK
    assert not (read_only / ".pai").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("status", "--offline"),
        ("kubectl", "get", "nodes"),
        ("inventory",),
        ("plan",),
        ("apply", "--yes"),
        ("preflight",),
        ("health",),
    ],
    ids=" ".join,
)
def test_a_mistyped_site_is_not_made(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    verb, *others = words
    assert run([verb, "--site", str(tmp_path / "nosuch"), *others]) == ExitCode.SITE_INVALID
    assert "layout.yaml:1:1: does not exist" in capsys.readouterr().err
    assert content(tmp_path) == []


def test_history_of_a_mistyped_site_makes_nothing(tmp_path: Path) -> None:
    assert run(["health", "history", "--site", str(tmp_path / "nosuch"), "one"]) == ExitCode.USAGE
    assert content(tmp_path) == []


def test_kubectl_without_a_cluster_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = write_site(tmp_path / "site")
    assert run(["kubectl", "--site", str(site), "get", "nodes"]) == ExitCode.USAGE
    assert "code: kubeconfig-missing" in capsys.readouterr().err
    assert not (site / ".pai").exists()


@pytest.mark.parametrize("words", [("status",), ("plan",), ("apply", "--yes"), ("preflight",), ("health",)])
def test_a_file_where_the_state_folder_belongs_is_named(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    site = write_site(tmp_path / "site")
    (site / ".pai").write_text("")
    assert run([*words, "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    error = capsys.readouterr().err
    assert f"error: cannot use {site}/.pai: another file is already there" in error
    assert "move the existing file away" in error


def test_offline_status_looks_past_a_file_there(tmp_path: Path, world: World) -> None:
    site = write_site(tmp_path / "site")
    (site / ".pai").write_text("")
    assert run(["status", "--offline", "--site", str(site)]) == ExitCode.OK


@pytest.mark.parametrize("name", ["journal.jsonl", "plan.json", "report.json", "events.jsonl"])
def test_a_full_disk_is_told_with_the_file(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    site = write_site(tmp_path / "site")
    monkeypatch.setattr("pai_install.system.files.naming", stand_in_full_disk_for(name))
    for room in ("journal", "eventlog"):
        monkeypatch.setattr(f"pai_install.run.{room}.naming", stand_in_full_disk_for(name))
    assert run(["apply", "--yes", "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    error = capsys.readouterr().err
    assert re.search(rf"error: cannot use {site}/[.]pai/(.*/)?{name}: No space left on device", error)
    assert "free space" in error


def stand_in_full_disk_for(name: str) -> Any:
    """`naming`, where nothing more can be written into files called so; the error has no path, as the system's."""

    @contextmanager
    def full(path: Path) -> Iterator[None]:
        with naming(path):
            yield
            if path.name == name:
                raise OSError(errno.ENOSPC, "No space left on device")

    return full


@pytest.mark.parametrize(
    "report", [b"", b"{", b"[]", b'{"phases": 1}', b'{"phases": [{"hosts": 1}]}', b"\xff\xfe", b'{"exit_code": "x"}']
)
@pytest.mark.parametrize("verb", ["status", "apply"])
def test_a_broken_report_is_passed_over(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str], verb: str, report: bytes
) -> None:
    site = write_site(tmp_path / "site")
    yes = ["--yes"] if verb == "apply" else []
    assert run(["apply", "--yes", "--site", str(site)]) == ExitCode.OK
    newest = open_state(site).runs / "29990101T000000Z"
    newest.mkdir()
    (newest / "report.json").write_bytes(report)
    capsys.readouterr()
    assert run([verb, *yes, "--site", str(site)]) == ExitCode.OK
    if verb == "status":
        out, err = capsys.readouterr()
        assert f"{newest}/report.json is damaged" in err
        assert "exit code 0" in out


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\x00",
        b"null",
        b'{"what": "run_started", "run": "20990101T000000Z"}\n{"what": "phase_started", "hosts": 5}',
        b'{"what": "run_started", "run": 7}\n{"what": "phase_started", "phase": [1], "hosts": [1, {}]}',
        b"[" * 100_000,
    ],
    ids=["bytes", "null", "hosts", "kinds", "deep"],
)
@pytest.mark.parametrize("verb", ["status", "apply"])
def test_a_broken_journal_is_read_as_far_as_it_can_be(tmp_path: Path, world: World, verb: str, line: bytes) -> None:
    site = write_site(tmp_path / "site")
    open_state(site).journal.write_bytes(line + b"\n")
    yes = ["--yes"] if verb == "apply" else []
    assert run([verb, *yes, "--site", str(site)]) == ExitCode.OK


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(errno.EACCES, "x", "/a"), "cannot use /a: Permission denied"),
        (OSError(errno.EROFS, "x", b"/b"), "cannot use /b: Read-only file system"),
        (OSError(errno.ENOSPC, "x"), "cannot continue: No space left on device"),
        (OSError(errno.EMFILE, "x"), "cannot continue: Too many open files"),
    ],
)
def test_words_for_what_is_refused(error: OSError, words: str) -> None:
    told = refused_by_box(error)
    assert told is not None
    assert (told.message, told.exit_code) == (words, ExitCode.PREFLIGHT_FAILED)
    assert told.remedy


@pytest.mark.parametrize("error", [FileNotFoundError(errno.ENOENT, "x", "/a"), ConnectionResetError(), OSError("odd")])
def test_the_rest_stays_a_bug(error: Any) -> None:
    assert refused_by_box(error) is None
