"""One `explain` for the checks of every verb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.main import run
from pai_install.cli.schema import SCHEMAS
from pai_install.errors import ExitCode


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("clock", ["preflight", "clock-warn-seconds = 1 (own)", "timedatectl"]),
        ("cluster-dns", ["verify", "nslookup", "8472"]),
        ("node-ready", ["status and verify", "kubectl get nodes"]),
        ("node-identity", ["status and verify", "layout.yaml"]),
        ("fixed-setting", ["status and verify", "docs/site.md"]),
        ("gpu-temperature", ["health", "temperature-margin =", "action:     drain"]),
        ("xid-79", ["Xid 79", "gpu-xid"]),
        ("79", ["Xid 79", "kind:"]),
        ("sxid-12020", ["SXid 12020", "verdict:    FAIL. FAIL where the line says Fatal", "nvswitch-sxid"]),
        ("SXid 22013", ["SXid 22013", "verdict:    PASS"]),
    ],
)
def test_checks_of_every_verb(check: str, words: list[str], capsys: Any, tmp_path: Path) -> None:
    assert run(["explain", check, "--site", str(tmp_path)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert [word for word in words if word not in out] == []


def test_without_a_check_all_are_listed(capsys: Any) -> None:
    assert run(["explain"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert [room for room in ("preflight:", "verify:", "status and verify:", "health:") if room not in out] == []
    assert "gpu-lost" in out


def test_a_misspelt_check_is_helped_on(capsys: Any) -> None:
    assert run(["explain", "disk-spase"]) == ExitCode.USAGE
    assert "code: unknown-check" in capsys.readouterr().err


def as_json(argv: list[str], capsys: Any) -> dict[str, Any]:
    """What `explain` prints as JSON, compared with its schema."""
    assert run(["explain", *argv, "--format", "json"]) == ExitCode.OK
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["explain"]())
    return data


def test_a_check_as_json(capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "health.yml").write_text("thresholds: {temperature-margin: 12}\n")
    data = as_json(["gpu-temperature", "--site", str(tmp_path)], capsys)
    (told,) = data["checks"]
    assert (told["verb"], told["id"], told["action"]) == ("health", "gpu-temperature", "drain")
    own = {"name": "temperature-margin", "value": 12.0, "applies_to": "on this site"}
    assert any(own.items() <= number.items() for number in told["numbers"])
    assert data["xids"] == []


def test_an_xid_as_json(capsys: Any, tmp_path: Path) -> None:
    data = as_json(["xid-79", "--site", str(tmp_path)], capsys)
    assert data["checks"] == []
    assert [(xid["number"], xid["verdict"]) for xid in data["xids"]] == [(79, "FAIL")]


def test_an_sxid_as_json(capsys: Any, tmp_path: Path) -> None:
    data = as_json(["sxid-12020", "--site", str(tmp_path)], capsys)
    assert (data["checks"], data["xids"]) == ([], [])
    (told,) = data["sxids"]
    assert (told["number"], told["verdict"], told["action"], told["check"]) == (
        12020,
        "FAIL",
        "reboot",
        "nvswitch-sxid",
    )
    (harmless,) = as_json(["sxid-22013"], capsys)["sxids"]
    assert (harmless["verdict"], harmless["remedy"], harmless["action"]) == ("PASS", "", "")


@pytest.mark.parametrize("name", ["sxid-99999", "xid-9999"])
def test_a_code_that_no_catalogue_has(name: str, capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert run(["explain", name, "--format", "json"]) == ExitCode.USAGE
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["message"] == snapshot
    assert "NVIDIA" in error["remedy"]


@pytest.mark.parametrize(
    "argv",
    [["explain", "CODE", "--format", "json"], ["--format", "json", "explain", "CODE"]],
)
def test_health_explains_in_the_same_form(argv: list[str], capsys: Any, tmp_path: Path) -> None:
    """Its own checks alone, with the option before or after the name."""
    for code in ("gpu-temperature", "xid-79", "sxid-12020"):
        words = [code if word == "CODE" else word for word in argv]
        assert run(["health", *words, "--site", str(tmp_path)]) == ExitCode.OK
        data = json.loads(capsys.readouterr().out)
        jsonschema.validate(data, SCHEMAS["explain"]())
        assert data == as_json([code, "--site", str(tmp_path)], capsys)


def test_health_lists_its_own_checks_as_json(capsys: Any) -> None:
    assert run(["health", "explain", "--format", "json"]) == ExitCode.OK
    told = json.loads(capsys.readouterr().out)["checks"]
    assert {check["verb"] for check in told} == {"health"}
    assert run(["health", "explain", "node-ready"]) == ExitCode.USAGE
    assert "pai-install health explain" in capsys.readouterr().err


def test_all_checks_as_json(capsys: Any, tmp_path: Path) -> None:
    told = as_json(["--site", str(tmp_path)], capsys)["checks"]
    assert {check["verb"] for check in told} == {"preflight", "verify", "status and verify", "health"}
    assert {"gpu-lost", "node-identity", "fixed-setting"} <= {check["id"] for check in told}


def test_a_misspelt_check_as_json(capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert run(["explain", "disk-spase", "--format", "json"]) == ExitCode.USAGE
    assert json.loads(capsys.readouterr().out)["error"]["remedy"] == snapshot
