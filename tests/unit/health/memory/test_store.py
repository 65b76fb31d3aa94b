"""What is remembered between runs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pai_install.health.collect.collector import redact
from pai_install.health.memory import store as store_module
from pai_install.health.memory.snapshot import (
    Baseline,
    GpuBaseline,
    PastIncident,
    Snapshot,
    card_of,
    parse_baseline,
    parse_snapshot,
    with_current_uuids,
)
from pai_install.health.memory.store import KEPT, HealthStore
from tests.errors import raises

SNAPSHOT = Snapshot(
    time=100.0,
    boot_id="b",
    counters={"gpu x": {"replays": 3.0}},
    gpus={"0000:18:00.0": "GPU-1"},
    incidents=(PastIncident(79, "GPU-1", "b", 90.0),),
    failed=("gpu-xid",),
    warned=("gpu-persistence",),
)


def at(time: float) -> Snapshot:
    return Snapshot(time=time, boot_id="b")


def test_snapshots_and_baselines_survive_json() -> None:
    assert parse_snapshot(SNAPSHOT.as_json()) == SNAPSHOT
    baseline = Baseline(5.0, {"0000:18:00.0": GpuBaseline("GPU-1", 8.0, None, 15360.0, 12)})
    assert parse_baseline(baseline.as_json()) == baseline


def test_history_is_kept_in_order_and_cut(tmp_path: Path) -> None:
    store = HealthStore(tmp_path)
    assert store.history("a") == []
    for number in range(KEPT + 5):
        store.remember({"a": at(number)})
    times = [snapshot.time for snapshot in store.history("a")]
    assert times == [float(number) for number in range(5, KEPT + 5)]
    assert stat.S_IMODE((tmp_path / "history" / "a.jsonl").stat().st_mode) == 0o600


def test_the_same_evidence_twice_counts_once(tmp_path: Path) -> None:
    store = HealthStore(tmp_path)
    store.remember({"a": at(1)})
    store.remember({"a": at(2)})
    store.remember({"a": at(2)})
    assert [snapshot.time for snapshot in store.history("a")] == [1, 2]


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    store = HealthStore(tmp_path)
    store.remember({"a": SNAPSHOT})
    path = tmp_path / "history" / "a.jsonl"
    path.write_text('{"time": 1, "boot\n[]\n{}\n' + path.read_text())
    assert store.history("a") == [SNAPSHOT]
    assert store.histories(["a", "b"]) == {"a": [SNAPSHOT]}


def test_baselines_of_other_machines_stay(tmp_path: Path) -> None:
    store = HealthStore(tmp_path)
    assert store.baselines() == {}
    one, two = Baseline(1.0, {"g": GpuBaseline("u")}), Baseline(2.0, {})
    store.accept({"a": one})
    store.accept({"b": two})
    assert store.baselines() == {"a": one, "b": two}


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"machines": {"a": {}}}', '{"machines": {"a": {"accepted_at": 1, "gpus": {"g": {"x": 1}}}}}'],
)
def test_a_damaged_baseline_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "baseline.json").write_text(content)
    with raises("baselines-damaged"):
        HealthStore(tmp_path).baselines()


def with_incident(time: float, boot: str, xid: int = 79) -> Snapshot:
    return Snapshot(time, boot, incidents=(PastIncident(xid, "GPU-1", boot, time),))


def test_incidents_outlive_their_runs(tmp_path: Path) -> None:
    store = HealthStore(tmp_path)
    store.remember({"a": with_incident(1, "first")})
    store.remember({"a": with_incident(2, "second")})
    for number in range(3, 3 * KEPT):
        store.remember({"a": with_incident(number, "now", xid=13)})
    runs = store.history("a")
    assert len(runs) == KEPT
    assert [(item.xid, item.boot_id) for item in runs[0].incidents] == [(79, "first"), (79, "second"), (13, "now")]
    assert all(len(run.incidents) == 1 for run in runs[1:])


def test_incidents_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "KEPT_INCIDENTS", 5)
    store = HealthStore(tmp_path)
    for number in range(KEPT + 20):
        store.remember({"a": with_incident(number, f"boot {number}")})
    assert [item.boot_id for item in store.history("a")[0].incidents] == [f"boot {number}" for number in range(16, 21)]


def test_a_wrong_clock_costs_no_history(tmp_path: Path) -> None:
    store = HealthStore(tmp_path)
    for time in (1e9, 1e9 + 60, 100.0, 1e9 + 120):
        store.remember({"a": at(time)})
    assert {snapshot.time for snapshot in store.history("a")} == {1e9, 1e9 + 60, 100.0, 1e9 + 120}


REAL = "GPU-509665ad-b600-ac93-3616-d754b23d636d"


def test_a_card_is_one_card_with_redaction_and_without() -> None:
    assert card_of(REAL) == card_of(str(redact(REAL))) == card_of(card_of(REAL))
    assert REAL not in card_of(REAL)
    for text in ("", "N/A", "GPU is lost", "Unknown Error", "GPU-1"):
        assert card_of(text) == ""
    named = with_current_uuids(
        Snapshot(1, "b", {f"gpu {REAL}": {"x": 1}}, {"s": REAL, "t": "GPU is lost"}), {card_of(REAL): REAL}
    )
    assert (named.counters, named.gpus) == ({f"gpu {REAL}": {"x": 1}}, {"s": REAL})
