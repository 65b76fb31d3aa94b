"""Errors as JSON: one document on stdout, the same words on stderr, for every verb that reports as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli import failure
from pai_install.cli.schema import SCHEMAS
from pai_install.cli.verbs import VERBS
from pai_install.errors import ExitCode, PaiError
from pai_install.health.report import HealthReport
from pai_install.report.error import error_report
from pai_install.run.lock import site_lock
from pai_install.run.state import open_state
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


@pytest.fixture
def site(tmp_path: Path, in_world: Any) -> Path:
    in_world(World())
    return write_site(tmp_path / "site")


def document(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> dict[str, Any]:
    """The one document on stdout, held against its schema and against stderr."""
    assert run(words) == code
    out, err = capsys.readouterr()
    found: dict[str, Any] = json.loads(out)
    jsonschema.Draft202012Validator(SCHEMAS["error"]()).validate(found)
    assert (found["ok"], found["exit_code"]) == (False, code)
    for text in (found["error"][name] for name in ("message", "details", "remedy")):
        assert all(line.strip() in err for line in text.splitlines())
    return found["error"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "words", [("plan",), ("apply", "--yes"), ("status",), ("health",), ("preflight",), ("verify",)]
)
def test_an_invalid_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    error = document(capsys, ExitCode.SITE_INVALID, *words, "--format", "json", "--site", str(tmp_path / "nosuch"))
    assert error["message"] == snapshot
    assert error["details"] == snapshot
    assert error["remedy"] == ""


def test_a_check_that_is_none(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("preflight", "--format=json", "--force-check", "nosuch", "--site", str(site))
    assert "nosuch" in document(capsys, ExitCode.USAGE, *words)["message"]


@pytest.mark.parametrize("words", [("plan",), ("apply", "--yes")])
def test_a_site_in_use(
    site: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    with site_lock(open_state(site).path, "apply"):
        error = document(capsys, ExitCode.PREFLIGHT_FAILED, *words, "--format", "json", "--site", str(site))
    assert error["message"] == snapshot


def test_a_plan_that_is_none(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "plan.json").write_text("{}")
    words = ("apply", "--yes", "--plan", str(tmp_path / "plan.json"), "--site", str(site), "--format", "json")
    assert document(capsys, ExitCode.USAGE, *words)["message"] == snapshot


def test_a_site_in_the_current_form(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    words = ("migrate", str(site), "--site", str(tmp_path / "new"), "--format", "json")
    assert document(capsys, ExitCode.USAGE, *words)["message"] == snapshot


def test_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--nosuch" in document(capsys, ExitCode.USAGE, "plan", "--format", "json", "--nosuch")["message"]


@pytest.mark.parametrize(
    ("words", "meant"), [(("aply",), "'apply'"), (("job", "lst"), "'list'"), (("init", "my-site"), "--site FOLDER")]
)
def test_a_wrong_command_line_names_the_right_one(
    words: tuple[str, ...], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == ExitCode.USAGE
    assert meant in capsys.readouterr().err


def test_only_a_file_that_exists_can_be_annotated(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "layout.yaml").write_text("machine-lst: []\n")
    assert run(("status", "--site", str(site))) == ExitCode.SITE_INVALID
    assert "--annotate" in capsys.readouterr().err
    assert run(("status", "--site", str(tmp_path))) == ExitCode.SITE_INVALID
    shown = capsys.readouterr().err
    assert "--annotate" not in shown
    assert "pai-install init" in shown


class Silent(FakeCluster):
    """A cluster that does not answer."""

    def list(self, *_: object) -> Any:
        raise PaiError("kubectl failed")


class StandInCheckup:
    """Finds nothing."""

    def run(self, _request: object) -> HealthReport:
        return HealthReport((), {}, "s")


def test_cordoning_that_fails_after_the_report(
    site: Path, in_world: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_world(World(api=Silent()))
    monkeypatch.setattr("pai_install.app.health.health_run", lambda _app, _request: StandInCheckup())
    words = ("health", "--act", "cordon", "--site", str(site))
    assert document(capsys, ExitCode.STEP_FAILED, *words, "--format", "json")["message"] == "kubectl failed"
    assert run(words) == ExitCode.STEP_FAILED
    assert capsys.readouterr().out


def test_a_bug(site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.cli.status.status_of", lambda *_, **__: 1 / 0)
    error = document(capsys, ExitCode.INTERNAL, "status", "--format", "json", "--site", str(site))
    assert "ZeroDivisionError" in error["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("status", "--format", "text"),
        ("status", "--format", "json", "--format", "text"),
        ("kubectl", "get", "nodes", "--format", "json"),
        ("kubectl", "--", "get", "--format=json"),
        ("health", "--format", "html"),
    ],
    ids=" ".join,
)
def test_text_only_where_json_was_not_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PAI_SITE", str(tmp_path / "nosuch"))
    assert run(words) == ExitCode.SITE_INVALID
    out, err = capsys.readouterr()
    assert out == ""
    assert "code: site-invalid" in err


@pytest.mark.parametrize("words", [("--debug", "status"), ("status", "--debug"), ("status", "--debug", "--offline")])
def test_debug_may_stand_behind_the_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PAI_SITE", str(tmp_path))
    assert run(words) == ExitCode.SITE_INVALID
    assert "Traceback" in capsys.readouterr().err


def test_words_for_another_program_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    from pai_install.cli.main import _without_debug  # noqa: PLC0415

    assert _without_debug(["--debug", "kubectl", "get", "--debug"]) == ["kubectl", "get", "--debug"]
    assert _without_debug(["lab", "--debug", "ssh", "--", "x", "--debug"]) == ["lab", "ssh", "--", "x", "--debug"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_printed_as_published(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", name]) == ExitCode.OK
    printed = capsys.readouterr().out
    jsonschema.Draft202012Validator.check_schema(json.loads(printed))
    published = REFERENCE / f"{name}.schema.json"
    if published.exists():
        assert json.loads(published.read_text()) == json.loads(printed)


def test_every_published_schema_can_be_printed() -> None:
    assert {path.name.removesuffix(".schema.json") for path in REFERENCE.glob("*.schema.json")} <= set(SCHEMAS)


def test_no_verb_is_forgotten() -> None:
    """Verbs without a JSON form print nothing for a program to read."""
    without = {verb for verb in VERBS if not failure.wants_json([verb, "--format", "json"], _command(verb))}
    assert without == {
        "init",
        "completion",
        "schema",
        "inventory",
        "kubectl",
        "support-bundle",
        "monitoring",
    }


def _command(verb: str) -> Any:
    from importlib import import_module  # noqa: PLC0415

    return import_module(f"pai_install.cli.{verb.replace('-', '_')}").command


def test_the_form_of_a_document() -> None:
    error = PaiError("what", code="w-1", details="a\nb", remedy="do", exit_code=ExitCode.UNREACHABLE)
    assert error_report(error).as_json() == {
        "schema_version": 1,
        "ok": False,
        "exit_code": 5,
        "error": {"code": "w-1", "message": "what", "details": "a\nb", "remedy": "do"},
    }
