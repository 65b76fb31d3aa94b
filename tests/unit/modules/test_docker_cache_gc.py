"""The program that drops what is unused from the cache: the least recently used first, and no more than it has to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.modules.conftest import load

PROGRAM = Path(__file__).parents[3] / "roles/docker_cache/files/docker_cache_gc.py"
NOW = 1_000_000_000.0
DAY = 86400
MIB = 1 << 20
gc: ModuleType = load(PROGRAM, "docker_cache_gc")
ages = st.integers(-600, 90 * DAY)
blobs_of = st.lists(st.tuples(st.integers(0, 50), ages), max_size=30)
rules = st.builds(gc.Rule, st.integers(0, 800), st.integers(0, 800), st.integers(DAY, 60 * DAY))


def blobs(*sizes_and_ages: tuple[int, int]) -> list[Any]:
    return [gc.Blob(str(number), size, NOW - age) for number, (size, age) in enumerate(sizes_and_ages)]


def chosen(rule: Any, free: int, *sizes_and_ages: tuple[int, int]) -> list[str]:
    return [blob.path for blob in gc.unwanted(blobs(*sizes_and_ages), rule, free, NOW)]


@pytest.mark.parametrize(
    ("rule", "free", "gone"),
    [
        (gc.Rule(0, 0, 30 * DAY), 0, []),
        (gc.Rule(60, 0, 30 * DAY), 0, []),
        (gc.Rule(59, 0, 30 * DAY), 0, ["2"]),
        (gc.Rule(29, 0, 30 * DAY), 0, ["2", "0"]),
        (gc.Rule(1, 0, 30 * DAY), 0, ["2", "0"]),
        (gc.Rule(0, 100, 30 * DAY), 90, ["2"]),
        (gc.Rule(0, 100, 30 * DAY), 100, []),
        (gc.Rule(0, 0, DAY), 0, ["2"]),
    ],
    ids=["no rule", "at the limit", "over it", "far over it", "all but the newest", "disk full", "disk", "unused"],
)
def test_what_goes(rule: Any, free: int, gone: list[str]) -> None:
    assert chosen(rule, free, (20, DAY), (10, 60), (30, 3 * DAY)) == gone


@given(blobs_of, rules, st.integers(0, 800))
def test_no_more_goes_than_has_to_and_the_oldest_first(found: list[tuple[int, int]], rule: Any, free: int) -> None:
    every = blobs(*found)
    gone = gc.unwanted(every, rule, free, NOW)
    kept = [blob for blob in every if blob not in gone]
    assert all(NOW - blob.used > gc.GRACE_S for blob in gone)
    assert max((blob.used for blob in gone), default=0) <= min((blob.used for blob in kept), default=NOW + 600)
    still = free + sum(blob.size for blob in gone)
    for number, blob in enumerate(gone):
        before = [other for other in every if other not in gone[:number]]
        freed = free + sum(other.size for other in gone[:number])
        assert gc.excess(before, rule, freed) > 0 or NOW - blob.used > rule.keep_s
    droppable = [blob for blob in kept if NOW - blob.used > gc.GRACE_S]
    assert not droppable or gc.excess(kept, rule, still) <= 0
    assert not [blob for blob in droppable if NOW - blob.used > rule.keep_s]


def put(folder: Path, digest: str, age_s: float, size: int = MIB) -> Path:
    """Content as distribution stores it, last used that long ago."""
    data = folder / "docker/registry/v2/blobs/sha256" / digest[:2] / digest / "data"
    data.parent.mkdir(parents=True)
    data.write_bytes(b"x" * size)
    os.utime(data, (time.time() - age_s, time.time() - 90 * DAY))
    return data


def link(folder: Path, place: str, age_s: float) -> Path:
    """A file below a repository of a registry, written that long ago."""
    path = folder / "docker/registry/v2/repositories/team/app" / place
    path.parent.mkdir(parents=True)
    path.write_text("x")
    for one in (path, path.parent):
        os.utime(one, (time.time() - age_s,) * 2)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(gc, "CONFIGURATION", str(tmp_path / "gc.json"))
    monkeypatch.setattr(gc, "STATE", str(tmp_path / "state.json"))
    content = tmp_path / "content"
    words = {"folder": str(content), "limit": 0, "free_percent": 0, "keep_days": 30}
    (tmp_path / "gc.json").write_text(json.dumps(words))
    return content


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["docker_cache_gc.py", *words])
    gc.main()
    return capsys.readouterr().out


def test_one_limit_for_all_upstreams(folder: Path, monkeypatch: Any, capsys: Any) -> None:
    old, new = put(folder / "docker.io", "aa1", 3 * DAY), put(folder / "quay.io", "bb1", 2 * DAY)
    other = put(folder / "registry.example.com:5000", "cc1", DAY)
    checked = json.loads(run(monkeypatch, capsys, "--limit", str(5 * MIB // 2), "--check"))
    assert (checked["dropped"], old.exists()) == ({"count": 1, "bytes": MIB}, True)
    assert not Path(gc.STATE).exists()
    report = json.loads(run(monkeypatch, capsys, "--limit", str(5 * MIB // 2)))
    assert [path.exists() for path in (old, new, other)] == [False, True, True]
    assert not old.parent.exists()
    assert (report["before"], report["after"], report["limit"]) == (3 * MIB, 2 * MIB, 5 * MIB // 2)
    assert abs(report["oldest_use_kept"] - (time.time() - 2 * DAY)) < 60
    again = json.loads(run(monkeypatch, capsys))
    assert again["dropped"] == {"count": 0, "bytes": 0}
    state = json.loads(Path(gc.STATE).read_text())
    assert (state["last"], state["dropped"]) == (again, report)


def test_the_journal_hears_only_of_what_was_done(folder: Path, monkeypatch: Any, capsys: Any) -> None:
    put(folder / "docker.io", "aa1", 3 * DAY)
    assert run(monkeypatch, capsys, "--journal") == ""
    assert run(monkeypatch, capsys, "--journal", "--limit", "1").startswith(f"<5>{folder}: dropped 0.0 GB, 1 blobs; ")
    put(folder / "docker.io", "aa2", 60)
    assert "cannot be dropped" in run(monkeypatch, capsys, "--journal", "--limit", "1")


def test_what_is_broken_off_goes_and_what_is_under_way_stays(folder: Path, monkeypatch: Any, capsys: Any) -> None:
    root = folder / "docker.io"
    put(root, "aa1", 3 * DAY)
    stays = [
        link(root, "_layers/sha256/aa1/link", 3 * DAY),
        link(root, "_layers/sha256/fetched-now/link", 5),
        link(root, "_manifests/revisions/sha256/aa1/link", 3 * DAY),
        link(root, "_manifests/tags/1/current/link", 3 * DAY),
        link(root, "_uploads/slow/data", 3600),
    ]
    goes = [
        link(root, "_layers/sha256/gone/link", 3 * DAY),
        link(root, "_manifests/revisions/sha256/gone/link", 3 * DAY),
        link(root, "_uploads/broken-off/data", 2 * DAY),
    ]
    report = json.loads(run(monkeypatch, capsys))
    assert (report["left_behind"], report["dropped"]["count"]) == (3, 0)
    assert [path.exists() for path in stays] == [True] * 5
    assert [path.parent.exists() for path in goes] == [False] * 3


def test_what_is_used_meanwhile_stays(folder: Path) -> None:
    data = put(folder / "docker.io", "aa1", 3 * DAY)
    (seen,) = gc.blobs_in(str(folder))
    os.utime(data)
    assert not gc.drop(seen)
    assert data.exists()
    (seen,) = gc.blobs_in(str(folder))
    assert gc.drop(seen)
    assert not gc.drop(seen)


def test_a_cache_without_content_is_well(folder: Path, monkeypatch: Any, capsys: Any) -> None:
    report = json.loads(run(monkeypatch, capsys))
    assert (report["before"], report["dropped"]["count"], report["short"]) == (0, 0, 0)


def test_it_needs_no_library_but_its_own() -> None:
    done = subprocess.run([sys.executable, "-I", str(PROGRAM), "--help"], capture_output=True, text=True, check=False)
    assert "--limit BYTES" in done.stdout, done.stderr
