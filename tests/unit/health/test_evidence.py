"""The evidence document: typed, packed, saved and read back; damage is named, never guessed over."""

from __future__ import annotations

import base64
import gzip
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import ExitCode, PaiError
from pai_install.health import evidence_file
from pai_install.health.evidence import CommandResult, parse_evidence

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
    with pytest.raises(PaiError, match="schema_version") as error:
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
    with pytest.raises(PaiError, match="collector's output"):
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


@pytest.mark.parametrize("content", ["not json", '{"machine": "a"}', "[1]", "5"])
def test_load_names_file_and_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("\n" + content + "\n")
    with pytest.raises(PaiError, match=r"bad\.jsonl:2"):
        list(evidence_file.load(path))


def test_load_names_a_file_that_is_no_gzip(tmp_path: Path) -> None:
    path = tmp_path / "bad.gz"
    path.write_bytes(b"plain")
    with pytest.raises(PaiError, match="cannot be read"):
        list(evidence_file.load(path))
