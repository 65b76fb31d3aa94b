"""What is remembered between runs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pai_install.errors import PaiError
from pai_install.health.snapshot import Baseline, GpuBaseline, PastIncident, Snapshot, parse_baseline, parse_snapshot
from pai_install.health.store import KEPT, HealthStore

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
    with pytest.raises(PaiError, match="damaged"):
        HealthStore(tmp_path).baselines()
