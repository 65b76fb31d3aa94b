"""`health acknowledge`: a verdict that a person has judged is shown, and neither fails nor cordons until its end."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from pai_install.checks.verdict import Action, Verdict
from pai_install.cli.main import run
from pai_install.engine.base import Event, EventKind
from pai_install.errors import ExitCode, PaiError
from pai_install.health.act.cordon import plan_cordons
from pai_install.health.checkup import AcknowledgementText, HealthRequest, HealthRun
from pai_install.health.collect.run import PLAYBOOK
from pai_install.health.document import HealthDocument, health_document
from pai_install.health.html import html
from pai_install.health.memory.acknowledgement import end_of, spoken_end
from pai_install.health.memory.store import HealthStore
from pai_install.health.report import HealthReport, text
from pai_install.json_schema import schema_of
from pai_install.site.load import load_site
from pai_install.site.model import Site
from tests.errors import raises
from tests.replay import ReplayEngine
from tests.unit.health.act.test_cordon import node
from tests.unit.health.machines import NOW, Box, gpu_change, healthy
from tests.unit.health.test_checkup import LAYOUT, answer, document

REMAP = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy(2, "gpu-01"))
HOT = gpu_change("temperature/gpu_temp_tlimit", "-2 C")(healthy(2, "gpu-01"))
WORD = AcknowledgementText("ada", "the card is ordered", NOW + 86_400)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "layout.yaml").write_text(LAYOUT)
    (tmp_path / "config.yaml").write_text("user: pai\npassword: planted-secret\n")
    return load_site(tmp_path).site


def looked(site: Site, box: Box | None, *, now: float = NOW) -> tuple[HealthRun, HealthReport]:
    """A check-up whose gpu-01 answers so (None: not at all), and its report."""
    event = Event(EventKind.UNREACHABLE, host="gpu-01", result={"msg": "no route"})
    events = (answer("gpu-01", document(box, at=now)) if box else event, Event(EventKind.DONE))
    engine = ReplayEngine({PLAYBOOK: events})
    checkup = HealthRun(site, site.directory / ".pai" / "health", lambda: nullcontext(engine), clock=lambda: now)
    return checkup, checkup.run(HealthRequest(limit=("gpu-01",)))


def test_what_is_acknowledged_is_shown_and_does_not_fail(site: Site) -> None:
    checkup, before = looked(site, REMAP)
    assert before.exit_code() is ExitCode.VERIFICATION_FAILED
    checkup.acknowledge("gpu-01", "gpu-remap-failed", WORD)
    _, report = looked(site, REMAP, now=NOW + 60)
    assert report.exit_code(strict=True) is ExitCode.OK
    (found,) = report.of(Verdict.FAIL, Verdict.WARN)
    end = spoken_end(WORD.until)
    assert found.message.startswith(f"acknowledged by ada until {end}: the card is ordered (FAIL: a memory row")
    assert (found.verdict, found.action) == (Verdict.WARN, Action.NONE)
    for shown in (text(report), html(report, title="x"), json.dumps(health_document(report).as_json())):
        assert "the card is ordered" in shown
    document = health_document(report).as_json()
    jsonschema.Draft202012Validator(schema_of(HealthDocument)).validate(document)
    assert document["acknowledged"][0]["who"] == "ada"


def test_it_ends(site: Site) -> None:
    checkup, _ = looked(site, REMAP)
    checkup.acknowledge("gpu-01", "gpu-remap-failed", WORD)
    checkup, report = looked(site, REMAP, now=WORD.until + 1)
    assert report.exit_code() is ExitCode.VERIFICATION_FAILED
    assert checkup.acknowledged() == []


def test_it_is_taken_back(site: Site) -> None:
    checkup, _ = looked(site, REMAP)
    checkup.acknowledge("gpu-01", "gpu-remap-failed", WORD)
    assert checkup.take_back("gpu-01", "gpu-remap-failed") == []
    assert looked(site, REMAP)[1].exit_code() is ExitCode.VERIFICATION_FAILED
    with raises("finding-not-acknowledged"):
        checkup.take_back("gpu-01", "gpu-remap-failed")


def test_another_fault_of_the_same_check_and_another_device_are_other_verdicts(site: Site) -> None:
    def log(number: int, gpu: str) -> str:
        stamp = datetime.fromtimestamp(NOW - 600, UTC)
        return f"{stamp:%Y-%m-%dT%H:%M:%S}+0000 h kernel: NVRM: Xid (PCI:{gpu}): {number}, pid=1, name=a, x"

    first, other = "0000:18:00", "0000:19:00"
    checkup, _ = looked(site, healthy(2, "gpu-01").log(log(79, first)))
    checkup.acknowledge("gpu-01", "gpu-xid", WORD)
    assert looked(site, healthy(2, "gpu-01").log(log(79, first)))[1].exit_code() is ExitCode.OK
    for line in (log(48, first), log(79, other)):
        assert looked(site, healthy(2, "gpu-01").log(line))[1].exit_code() is ExitCode.VERIFICATION_FAILED


def test_only_what_was_seen_can_be_acknowledged(site: Site) -> None:
    checkup, _ = looked(site, healthy(2, "gpu-01"))
    with raises("finding-not-acknowledgeable"):
        checkup.acknowledge("gpu-01", "gpu-remap-failed", WORD)
    with raises("health-unknown-machine"):
        checkup.acknowledge("nobody", "gpu-remap-failed", WORD)
    checkup, _ = looked(site, REMAP)
    with raises("finding-not-acknowledgeable"):
        checkup.acknowledge("gpu-01", "gpu-remap-failed", AcknowledgementText("ada", "x", NOW + 9, "0000:19:00.0"))


def test_a_machine_that_is_silent_can_be_known(site: Site) -> None:
    checkup, before = looked(site, None)
    assert before.exit_code() is ExitCode.VERIFICATION_FAILED
    checkup.acknowledge("gpu-01", "machine-reachable", WORD)
    report = looked(site, None)[1]
    assert report.exit_code() is ExitCode.OK
    assert "the card is ordered" in text(report)
    assert report.machine_counts["WARN"] == 1


def test_an_acknowledged_machine_is_neither_cordoned_nor_kept_out(site: Site) -> None:
    checkup, before = looked(site, REMAP)
    nodes = [node("gpu-01"), node("two"), node("three")]
    assert plan_cordons(nodes, before, 0.5).cordon == {"gpu-01": "gpu-remap-failed"}
    checkup.acknowledge("gpu-01", "gpu-remap-failed", WORD)
    report = looked(site, REMAP)[1]
    assert plan_cordons(nodes, report, 0.5).cordon == {}
    out = node("gpu-01", cordoned=True, reason="gpu-remap-failed")
    assert plan_cordons([out, *nodes[1:]], report, 0.5).release == ("gpu-01",)
    assert plan_cordons([out, *nodes[1:]], looked(site, HOT)[1], 0.5).release == ()


def test_it_lives_beside_the_history_and_only_its_owner_reads_it(site: Site) -> None:
    checkup, _ = looked(site, REMAP)
    checkup.acknowledge("gpu-01", "gpu-remap-failed", WORD)
    path = site.directory / ".pai" / "health" / "acknowledged.json"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{")
    with raises("acknowledgements-damaged"):
        HealthStore(path.parent).acknowledgements()


@pytest.mark.parametrize(("word", "seconds"), [("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600)])
def test_an_end_from_now(word: str, seconds: float) -> None:
    assert end_of(word, NOW) == NOW + seconds


def test_an_end_that_is_a_day() -> None:
    assert end_of("2026-12-01", NOW) == datetime(2026, 12, 1, tzinfo=UTC).timestamp()
    for word in ("2020-01-01", "soon", "", "7 years"):
        with pytest.raises(PaiError):
            end_of(word, NOW)


def test_the_verb(site: Site, capsys: Any) -> None:
    looked(site, REMAP)
    where = ["--site", str(site.directory)]
    words = ["health", "acknowledge", *where, "gpu-01", "gpu-remap-failed"]
    assert run(words) == ExitCode.USAGE
    assert "--why and --until" in capsys.readouterr().err
    given = ["--why", "the card\nis ordered", "--until", "7d", "--who", "ada"]
    assert run([*words[:-1], "gpu-remap-fail", *given]) == ExitCode.USAGE
    assert "did you mean" in capsys.readouterr().err
    assert run([*words, *given]) == ExitCode.OK
    assert "gpu-01 0000:18:00.0 gpu-remap-failed: acknowledged by ada until" in capsys.readouterr().out
    assert run(["health", "acknowledge", *where, "--format", "json"]) == ExitCode.OK
    (entry,) = json.loads(capsys.readouterr().out)["acknowledged"]
    assert (entry["machine"], entry["check"], entry["why"]) == ("gpu-01", "gpu-remap-failed", "the card is ordered")
    assert run([*words, "--take-back"]) == ExitCode.OK
    assert "no finding is acknowledged" in capsys.readouterr().out
    assert run([*words, "--take-back"]) == ExitCode.USAGE
    assert run([*words[:-1]]) == ExitCode.USAGE
