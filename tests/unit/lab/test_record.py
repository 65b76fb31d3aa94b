"""The record: on disk before anything is made, readable after a crash."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.errors import ExitCode
from pai_install.lab.record import Kind, LabRecord, Ledger, Resource, read_record
from tests.errors import raises

RESOURCES = st.builds(Resource, st.sampled_from(list(Kind)), st.text(), st.text())


@given(st.text(), st.text(), st.lists(RESOURCES))
def test_round_trip(lab: str, site: str, resources: list[Resource]) -> None:
    record = LabRecord(lab, site, tuple(resources))
    assert LabRecord.from_json(record.to_json()) == record


def test_of_one_kind() -> None:
    record = LabRecord("l", "s", (Resource(Kind.VETH, "a"), Resource(Kind.BRIDGE, "b"), Resource(Kind.VETH, "c")))
    assert [resource.name for resource in record.of(Kind.VETH)] == ["a", "c"]


def test_no_file_is_no_record(tmp_path: Path) -> None:
    assert read_record(tmp_path / "none.json") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"schema_version": 2, "lab": "a", "site": "b", "resources": []}',
        '{"schema_version": 1, "lab": "a", "site": "b", "resources": [["unknown", "x", ""]]}',
        '{"schema_version": 1, "lab": "a", "site": "b", "resources": [["veth"]]}',
    ],
)
def test_a_file_that_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lab.json"
    path.write_text(text)
    with raises("lab-record-invalid", "lab.json"):
        read_record(path)


def test_somebody_elses_file_asks_for_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_path: Path) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", denied)
    with raises("lab-record-of-root") as caught:
        read_record(tmp_path / "lab.json")
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED


def test_what_is_added_is_on_disk_at_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "lab/lab.json"
    ledger = Ledger(path, LabRecord("l", "s"))
    ledger.add([Resource(Kind.BRIDGE, "b")])
    assert read_record(path) == LabRecord("l", "s", (Resource(Kind.BRIDGE, "b"),))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["schema_version"] == 1


def test_the_same_thing_again_replaces_its_detail(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "lab.json", LabRecord("l", "s"))
    ledger.add([Resource(Kind.PROCESS, "m", "1:2"), Resource(Kind.BRIDGE, "b")])
    ledger.add([Resource(Kind.PROCESS, "m", "3:4")])
    assert ledger.record.of(Kind.PROCESS) == (Resource(Kind.PROCESS, "m", "3:4"),)
    assert ledger.record.of(Kind.BRIDGE) == (Resource(Kind.BRIDGE, "b"),)


def test_adding_what_is_there_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    ledger = Ledger(path, LabRecord("l", "s"))
    ledger.add([Resource(Kind.BRIDGE, "b")])
    before = path.stat().st_ino
    ledger.add([Resource(Kind.BRIDGE, "b")])
    assert path.stat().st_ino == before


def test_threads_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    ledger = Ledger(path, LabRecord("l", "s"))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ledger.add([Resource(Kind.PROCESS, f"m{number}")]), range(40)))
    written = read_record(path)
    assert written is not None
    assert {resource.name for resource in written.resources} == {f"m{number}" for number in range(40)}


def test_what_is_gone_is_forgotten_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    kept, gone = Resource(Kind.VETH, "a"), Resource(Kind.MIXIN, "x of a", "a")
    ledger = Ledger(path, LabRecord("l", "s"))
    ledger.add([kept, gone])
    ledger.forget([gone])
    assert read_record(path) == LabRecord("l", "s", (kept,))
