"""`pai-install usage` from argv to exit code, before control-plane nodes in memory."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.agents.common.ledger import Hold, Sample, line_of, line_of_sample, line_of_time
from pai_install.app import usage
from pai_install.app.context import App
from pai_install.app.usage import AccountUsage
from pai_install.cli.schema import SCHEMAS
from pai_install.errors import ExitCode
from pai_install.jobs.gpu_hours import Account, Period
from tests.unit.cli.stub_environment import World, run
from tests.unit.cli.test_vc import site
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import GROUPS, LAYOUT

NOV = 1_793_491_200  # 2026-11-01T00:00:00Z
HOLD = Hold(
    "uid-1", 4, NOV + 3600, namespace="nlp", pod="train-0", user="alice", cluster="default", job="train", node="gpu-01",
    sku="V100", queued=NOV, end=NOV + 7200, reason="completed",
)  # fmt: skip
MORE_MASTERS = (("m2", "10.0.0.201"), ("m3", "10.0.0.202"))
NOVEMBER = ("--from", "2026-11", "--to", "2026-12")


@pytest.fixture
def world(in_world: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    made: World = in_world(World())
    moment = datetime(2026, 11, 20, tzinfo=UTC)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:  # noqa: ARG003
            return moment

    monkeypatch.setattr(usage, "datetime", Clock)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(site(tmp_path, VALID + GROUPS))


def has(world: World, *lines: str) -> None:
    world.outputs.answer = lambda _host, _program: [*lines, line_of_time(NOV + 19 * 86400 - 60)]


def account(folder: str, *words: str) -> int:
    return run(["usage", "--site", folder, *NOVEMBER, *words])


def test_table(folder: str, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    other = replace(
        HOLD, uid="uid-2", user="bob", devices=1, queued=None, end=NOV + 9000, reason="preempted", node="gpu-02"
    )
    has(world, line_of(HOLD), line_of(other), line_of_sample("uid-1", Sample(NOV + 7000, 1800, 7200)))
    assert account(folder) == ExitCode.OK
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize("key", ["user", "group", "virtual-cluster", "job", "sku", "node"])
def test_data(folder: str, world: World, capsys: Any, key: str) -> None:
    has(world, line_of(HOLD))
    assert account(folder, "--by", key, "--format", "json") == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["usage"]())
    names = {"user": "alice", "group": "nlp", "virtual-cluster": "default", "job": "nlp/alice/train", "sku": "V100"}
    (row,) = data["rows"]
    assert row["name"] == names.get(key, "gpu-01")
    assert (row["held_gpu_s"], row["waited_gpu_s"], row["busy_gpu_s"]) == (4 * 3600, 4 * 3600, None)
    assert data["total"] == {name: value for name, value in row.items() if name != "name"}


def test_csv_has_empty_cells_for_what_is_unknown_and_no_formula(folder: str, world: World, capsys: Any) -> None:
    has(world, line_of(replace(HOLD, user='=cmd|"x"!A1', queued=None)))
    assert account(folder, "--format", "csv") == ExitCode.OK
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["user"] == '\'=cmd|"x"!A1'
    assert (row["held_gpu_hours"], row["waited_gpu_hours"], row["pods"]) == ("4.000000", "", "1")
    assert (row["from"], row["to"]) == ("2026-11-01T00:00:00Z", "2026-11-20T00:00:00Z")


def test_text_of_members_does_not_reach_the_terminal(folder: str, world: World, capsys: Any) -> None:
    has(world, line_of(replace(HOLD, user="\x1b[2Jalice\nroot", job="a\u202eb")))
    for words in (("--by", "user"), ("--by", "job"), ("--by", "user", "--format", "csv")):
        assert account(folder, *words) == ExitCode.OK
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\nroot" not in out


def test_one_control_plane_that_does_not_answer_is_named(tmp_path: Path, world: World, capsys: Any) -> None:
    master = next(line for line in LAYOUT.splitlines() if "pai-master" in line)
    more = [master.replace("m1", name).replace("10.0.0.1", address) for name, address in MORE_MASTERS]
    folder = str(site(tmp_path, VALID + GROUPS, LAYOUT.replace(master, "\n".join([master, *more]))))
    has(world, line_of(HOLD), "{torn")
    world.outputs.off = frozenset({"m2"})
    assert account(folder, "--format", "json") == ExitCode.OK
    shown = capsys.readouterr()
    assert json.loads(shown.out)["total"]["held_gpu_s"] == 4 * 3600
    assert "m2" in shown.err
    assert len(world.outputs.asked) == 3


def test_no_control_plane_answers(folder: str, world: World) -> None:
    world.outputs.off = frozenset({"m1"})
    assert account(folder) == ExitCode.UNREACHABLE


def test_files_of_the_period_and_of_the_month_after_it(folder: str, world: World) -> None:
    has(world)
    assert run(["usage", "--site", folder, "--from", "2026-09-15", "--to", "2026-10-01"]) == ExitCode.OK
    (_, program), *_ = world.outputs.asked
    assert [Path(path).name for path in program if path.endswith(".jsonl")] == [
        "ledger-2026-09.jsonl",
        "ledger-2026-10.jsonl",
        "ledger-2026-11.jsonl",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("--from", "yesterday"),
        ("--from", "2026-13"),
        ("--from", "2026-11-02", "--to", "2026-11-01"),
        ("--timezone", "Mars/Olympus"),
        ("--timezone", "../../etc/passwd"),
        ("--by", "colour"),
    ],
)
def test_wrong_arguments(folder: str, world: World, words: Sequence[str]) -> None:
    assert run(["usage", "--site", folder, *words]) == ExitCode.USAGE
    assert not world.outputs.asked


@pytest.mark.parametrize(
    ("zone", "start", "end", "expected"),
    [
        ("UTC", "2026-11", "2026-12", (NOV, NOV + 30 * 86400)),
        ("Europe/Berlin", "2026-11-01", "2026-11-02", (NOV - 3600, NOV + 23 * 3600)),
        # the day with 25 hours
        ("Europe/Berlin", "2026-10-25", "2026-10-26", (NOV - 7 * 86400 - 7200, NOV - 6 * 86400 - 3600)),
        ("Europe/Berlin", "2026-11-01T00:00Z", "2026-11-01T02:00:05+01:00", (NOV, NOV + 3605)),
        ("UTC", "", "", (NOV + 30 * 86400, NOV + 40 * 86400)),
    ],
)
def test_periods(zone: str, start: str, end: str, expected: tuple[int, int]) -> None:
    now = NOV + 40 * 86400
    period = AccountUsage(start=start, end=end, timezone=zone).period(now)
    assert period == Period(*expected)


def test_use_case_without_a_command_line(folder: str, world: World) -> None:
    class Silent:
        def notify(self, event: object) -> None:
            del event

        def confirm(self, question: object) -> bool:
            raise AssertionError(question)

        def require_answers(self) -> None:
            raise AssertionError

    has(world, line_of(HOLD))
    with App(Path(folder), world, Silent()) as app:
        found = usage.account_usage(app, AccountUsage(start="2026-11"), datetime(2026, 11, 20, tzinfo=UTC))
    assert isinstance(found, Account)
    assert found.total.held == 4 * 3600
