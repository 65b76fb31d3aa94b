"""What `registry gc` and `registry status` say of the content that the program has seen."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util
from tests.unit.modules.conftest import Run
from tests.unit.modules.test_docker_cache_gc import DAY, MIB, PROGRAM, put

Library = Callable[[str], Any]


@pytest.fixture
def util(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The real program, with a configuration and a state of its own, as a machine has it."""
    text = PROGRAM.read_text()
    for path in ("/etc/pai-install/docker-cache/gc.json", "/var/lib/pai-install/docker-cache-gc.json"):
        assert path in text
        text = text.replace(path, str(tmp_path / Path(path).name))
    program = tmp_path / "program.py"
    program.write_text(text)
    rule = {"folder": str(tmp_path / "content"), "limit": 2 * MIB, "free_percent": 0, "keep_days": 30}
    (tmp_path / "gc.json").write_text(json.dumps(rule))
    found: ModuleType = module_util("pai_docker_cache_gc")
    monkeypatch.setattr(found, "PROGRAM", str(program))
    monkeypatch.setattr(found, "STATE", str(tmp_path / "docker-cache-gc.json"))
    return found


def fill(tmp_path: Path) -> list[Path]:
    return [put(tmp_path / "content/docker.io", f"aa{days}", days * DAY) for days in (3, 2, 1)]


def test_what_goes_is_told(util: ModuleType, tmp_path: Path, run_module: Run, snapshot: SnapshotAssertion) -> None:
    paths = fill(tmp_path)
    (told,) = run_module("pai_registry_gc", only_count=True)["findings"]
    assert (told["verdict"], told["message"]) == snapshot
    assert paths[0].exists()
    result = run_module("pai_registry_gc")
    (told,) = result["findings"]
    assert (result["changed"], told["message"]) == (False, "the cache: dropped 1 MB (1 blobs)")
    assert told["value"].startswith("2 MB kept of at most 2 MB, unused for at most 2.0 days; ")
    assert json.loads(told["evidence"])["dropped"] == {"count": 1, "bytes": MIB}
    assert [path.exists() for path in paths] == [False, True, True]
    (told,) = run_module("pai_registry_gc")["findings"]
    assert told["message"] == snapshot


def test_what_cannot_go_is_a_warning(
    util: ModuleType, tmp_path: Path, run_module: Run, snapshot: SnapshotAssertion
) -> None:
    for path in fill(tmp_path):
        os.utime(path)
    (told,) = run_module("pai_registry_gc")["findings"]
    assert (told["verdict"], told["message"]) == snapshot


def test_status_warns_where_dropping_does_not_help(
    util: ModuleType, tmp_path: Path, library: Library, snapshot: SnapshotAssertion
) -> None:
    for path in fill(tmp_path):
        os.utime(path)
    told = library("pai_registry_status").content()
    assert (told["verdict"], told["message"]) == snapshot


def test_a_program_that_is_not_there_is_told(
    util: ModuleType, monkeypatch: pytest.MonkeyPatch, run_module: Run
) -> None:
    monkeypatch.setattr(util, "PROGRAM", "/nonexistent/program.py")
    (told,) = run_module("pai_registry_gc")["findings"]
    assert told["verdict"] == "FAIL"
    assert "/nonexistent/program.py" in told["value"]
    assert "apply" in told["remedy"]


def test_status_says_the_limit_and_what_went_last(
    util: ModuleType, tmp_path: Path, library: Library, snapshot: SnapshotAssertion
) -> None:
    fill(tmp_path)
    status = library("pai_registry_status")
    told = status.content()
    assert (told["verdict"], told["message"]) == snapshot
    assert told["value"].endswith("what is unused has not been dropped yet")
    util.collect(check=False)
    told = status.content()
    assert told["value"].endswith("looked for what is unused 0 min ago, dropped 1 MB (1 blobs) 0 min ago")


def test_times_and_sizes_as_people_read_them(util: ModuleType, snapshot: SnapshotAssertion) -> None:
    gone = {"check": False, "dropped": {"count": 3, "bytes": 4_000_000_000}, "at": time.time() - 5 * DAY}
    reports = {"last": {"at": time.time() - 3 * 3600}, "dropped": gone}
    words = util.last_words(reports, time.time())
    assert words == snapshot
    assert util.last_words({"last": gone, "dropped": None}, time.time()).endswith(
        "5 days ago, has dropped nothing so far"
    )
