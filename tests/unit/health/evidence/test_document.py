"""The evidence document: typed, packed, saved and read back; damage is named, never guessed over."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.errors import ExitCode, PaiError
from pai_install.health.evidence import file as evidence_file
from pai_install.health.evidence.document import CommandResult, parse_evidence
from pai_install.health.judge.catalogues import load_catalogue, load_limits
from pai_install.health.judge.evaluate import Knowledge, evaluate
from tests.errors import raises

DOCUMENT: dict[str, Any] = {
    "schema_version": 1,
    "hostname": "n",
    "collected_at": 12.5,
    "boot_id": "b",
    "uptime_s": 3,
    "commands": {
        "good": {"argv": ["x"], "rc": 0, "stdout": "out", "stderr": "", "duration_s": 0.1},
        "hung": {"argv": ["y"], "rc": None, "timed_out": True, "state": "D", "wchan": "nv", "unkillable": True},
    },
    "files": {"/a": "text"},
    "facts": {"kernel": {"ok": True, "value": {"cpus": 2}}, "disks": {"ok": False, "value": {}}},
    "a key of a later version": 1,
}


def test_document_becomes_typed() -> None:
    found = parse_evidence("machine", DOCUMENT)
    assert (found.machine, found.collected_at, found.uptime_s) == ("machine", 12.5, 3.0)
    assert found.commands["good"] == CommandResult(rc=0, stdout="out", duration_s=0.1)
    assert found.commands["hung"].unkillable
    assert found.commands["hung"].rc is None
    assert found.facts == {"kernel": {"cpus": 2}}
    assert found.broken == {"disks"}


@pytest.mark.parametrize("version", [None, 2, 0, "1"])
def test_other_schemas_are_refused(version: object) -> None:
    with raises("evidence-schema-version", "schema_version") as error:
        parse_evidence("m", {**DOCUMENT, "schema_version": version})
    assert error.value.exit_code is ExitCode.USAGE


def test_both_streams_are_searched() -> None:
    assert CommandResult(rc=1, stdout="a", stderr="b").text == "a\nb"


def test_unpack_takes_plain_and_packed() -> None:
    text = json.dumps(DOCUMENT)
    packed = base64.b64encode(gzip.compress(text.encode())).decode()
    assert evidence_file.unpack(text) == evidence_file.unpack(packed + "\n") == DOCUMENT


@pytest.mark.parametrize(
    "text", ["", "Traceback (most recent call last)", "{cut", "[]", base64.b64encode(b"x").decode()]
)
def test_unreadable_output_is_named(text: str) -> None:
    with raises("collector-output-unreadable"):
        evidence_file.unpack(text)


@pytest.mark.parametrize("name", ["e.jsonl", "e.jsonl.gz"])
def test_save_and_load(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert evidence_file.save(path, [("a", DOCUMENT), ("b", DOCUMENT)]) == 2
    assert list(evidence_file.load(path)) == [("a", DOCUMENT), ("b", DOCUMENT)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_load_takes_the_output_of_one_collector(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(DOCUMENT))
    assert list(evidence_file.load(path)) == [("n", DOCUMENT)]


@pytest.mark.parametrize(
    "content",
    [
        "not json",
        '{"machine": "a"}',
        "[1]",
        "5",
        '{"machine": "a", "evidence": [1]}',
        '{"machine": "a", "evidence": {"schema_version": 1, "commands": [1]}}',
        '{"machine": "a", "evidence": {"schema_version": 1, "commands": {"x": 1}}}',
        '{"machine": "a", "evidence": {"schema_version": 1, "collected_at": "x"}}',
        '{"machine": "a", "evidence": {"schema_version": 1, "collected_at": NaN}}',
        '{"machine": "a", "evidence": {"schema_version": 1, "facts": {"x": 1}}}',
        '{"machine": "a", "evidence": {"schema_version": 9}}',
    ],
)
def test_load_names_file_and_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("\n" + content + "\n")
    with pytest.raises(PaiError, match=r"bad\.jsonl:2"):
        list(evidence_file.load(path))


def test_load_names_a_file_that_is_no_gzip(tmp_path: Path) -> None:
    path = tmp_path / "bad.gz"
    path.write_bytes(b"plain")
    with raises("evidence-unreadable"):
        list(evidence_file.load(path))


@pytest.mark.parametrize("value", [None, [], 5, {"/": 1}, {"/": [1, 2]}, {"/": ["a", 1, 2, 3]}])
def test_a_reader_s_value_of_another_form_is_broken(value: object) -> None:
    found = parse_evidence("m", {**DOCUMENT, "facts": {"disks": {"ok": True, "value": value}}})
    assert dict(found.facts) == {}
    assert found.broken == {"disks"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = [(), ("commands",), ("facts",), ("files",), *((name,) for name in DOCUMENT)]
PLACES += [
    ("commands", "good"),
    ("commands", "good", "rc"),
    ("commands", "nvidia_smi_xml"),
    ("commands", "hung", "state"),
]
PLACES += [("facts", name, "value") for name in ("disks", "kernel", "gpu_processes", "files_host")]


@given(st.sampled_from(PLACES), JSON)
def test_no_value_anywhere_in_a_line_gives_a_traceback(place: tuple[str, ...], value: object) -> None:
    document = copy.deepcopy(DOCUMENT)
    inner: Any = {"top": document}
    key = "top"
    for step in place:
        inner, key = inner[key], step
        inner.setdefault(key, {"ok": True})
    inner[key] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "e.jsonl"
        path.write_text(json.dumps({"machine": "m", "evidence": document if place else value}) + "\n")
        try:
            (record,) = evidence_file.load(path)
        except PaiError as error:
            assert error.exit_code is ExitCode.USAGE  # noqa: PT017 - either outcome is right
            assert "e.jsonl:1" in error.message  # noqa: PT017
            return
    assert evaluate([parse_evidence(*record)], Knowledge(load_limits(), load_catalogue()))
