"""HiveD runs what the ConfigMap says, or the last configuration that it came up with."""

from __future__ import annotations

import io
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.agents.common.api import ApiError
from pai_install.agents.common.log import Log
from pai_install.agents.hived_bridge.configuration import (
    RETURN_S,
    SETTLE_S,
    TRIAL_S,
    Configuration,
    Record,
    State,
    turn,
)
from pai_install.agents.hived_bridge.metrics import Metrics

GOOD, BAD, OTHER = "good: 1\n", "bad: 1\n", "other: 1\n"


def proven(text: str) -> State:
    return State(text, 0.0, good=text, proven=True)


def test_new_text_is_tried_at_once() -> None:
    after = turn(proven(GOOD), OTHER, 5.0, up=True)
    assert (after.used, after.since, after.good, after.proven) == (OTHER, 5.0, GOOD, False)


def test_answer_of_the_old_hived_proves_nothing() -> None:
    tried = turn(proven(GOOD), OTHER, 5.0, up=True)
    assert not turn(tried, OTHER, 5.0 + SETTLE_S - 0.1, up=True).proven


def test_text_with_which_hived_answers_is_the_good_one() -> None:
    after = turn(State(OTHER, 0.0, good=GOOD), OTHER, SETTLE_S, up=True)
    assert (after.proven, after.good, after.kept) == (True, OTHER, False)


def test_what_is_known_as_good_is_not_kept_again() -> None:
    assert turn(State(GOOD, 0.0, good=GOOD), GOOD, SETTLE_S, up=True).kept


def test_text_with_which_hived_does_not_answer_gives_way_to_the_good_one() -> None:
    tried = State(BAD, 0.0, good=GOOD)
    assert turn(tried, BAD, TRIAL_S - 0.1, up=False) == tried
    after = turn(tried, BAD, TRIAL_S, up=False)
    assert (after.used, after.refused, after.since) == (GOOD, BAD, TRIAL_S)


def test_good_one_stays_until_the_configmap_has_another() -> None:
    back = turn(turn(State(BAD, 0.0, good=GOOD), BAD, TRIAL_S, up=False), BAD, TRIAL_S + SETTLE_S, up=True)
    assert (back.used, back.proven, back.refused) == (GOOD, True, BAD)
    assert turn(back, BAD, 10_000.0, up=True) == back
    assert turn(back, OTHER, 10_000.0, up=True).used == OTHER


def test_configmap_that_has_the_good_one_again_is_refused_no_longer() -> None:
    back = State(GOOD, 0.0, good=GOOD, refused=BAD, proven=True)
    after = turn(back, GOOD, 100.0, up=True)
    assert (after.used, after.refused, after.proven) == (GOOD, "", True)


def test_first_text_has_no_better_one() -> None:
    tried = State(BAD, 0.0)
    assert turn(tried, BAD, 10 * TRIAL_S, up=False) == tried


def test_hived_that_goes_down_later_keeps_its_text() -> None:
    assert turn(proven(GOOD), GOOD, 10_000.0, up=False) == proven(GOOD)


def test_where_not_even_the_good_one_helps_the_wanted_one_is_tried_again() -> None:
    back = State(GOOD, 0.0, good=GOOD, refused=BAD)
    assert turn(back, BAD, RETURN_S - 0.1, up=False) == back
    after = turn(back, BAD, RETURN_S, up=False)
    assert (after.used, after.refused) == (BAD, "")


texts = st.sampled_from([GOOD, BAD, OTHER])


@given(st.lists(st.tuples(texts, st.booleans(), st.floats(1, 400)), max_size=30))
def test_hived_only_ever_reads_what_was_wanted_or_good(turns: list[tuple[str, bool, float]]) -> None:
    state, now, wished = State(GOOD, 0.0), 0.0, {GOOD}
    for wanted, up, later in turns:
        now += later
        wished.add(wanted)
        state = turn(state, wanted, now, up=up)
        assert state.used in wished
        assert state.good in {"", *wished}
        assert state.refused != state.used
        assert wanted in (state.used, state.refused)


@dataclass
class Kept:
    """A record that may fail."""

    text: str = ""
    fails: bool = False
    writes: list[str] = field(default_factory=list)

    def read(self) -> str:
        if self.fails:
            raise ApiError("no answer within 3 s")
        return self.text

    def write(self, text: str) -> None:
        if self.fails:
            raise ApiError("no answer within 3 s")
        self.writes.append(text)


@dataclass
class Scene:
    """A configuration, its files, and whether HiveD answers."""

    folder: Path
    record: Kept
    log: io.StringIO
    metrics: Metrics
    up: bool = True
    now: float = 0.0

    def __post_init__(self) -> None:
        self.wanted.write_text(GOOD)
        record, log = Record(self.record.read, self.record.write), Log(self.log)
        self.kept = Configuration(self.wanted, self.used, record, self.metrics, log, lambda: self.up)

    @property
    def wanted(self) -> Path:
        return self.folder / "wanted.yaml"

    @property
    def used(self) -> Path:
        return self.folder / "used.yaml"

    def look(self, later: float, *, up: bool = True) -> None:
        self.up = up
        self.now = max(self.now, self.kept.state.since) + later
        self.kept.look(self.now)

    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.log.getvalue().splitlines()]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, Kept(), io.StringIO(), Metrics())


def test_broken_text_is_taken_back_and_said(scene: Scene) -> None:
    scene.kept.begin()
    assert scene.used.read_text() == GOOD
    assert not scene.kept.current
    scene.look(SETTLE_S)
    assert (scene.kept.current, scene.record.writes) == (True, [GOOD])
    scene.wanted.write_text(BAD)
    scene.look(1, up=False)
    assert scene.used.read_text() == BAD
    scene.look(TRIAL_S, up=False)
    scene.look(SETTLE_S)
    assert scene.used.read_text() == GOOD
    assert not scene.kept.current
    assert scene.metrics.value("hived_bridge_configuration_current") == 0
    assert any("last good" in event for event in scene.events())
    assert scene.record.writes == [GOOD]


def test_good_text_outlives_the_pod(scene: Scene) -> None:
    scene.record.text = GOOD
    scene.wanted.write_text(BAD)
    scene.kept.begin()
    scene.look(TRIAL_S, up=False)
    assert scene.used.read_text() == GOOD


def test_hived_that_starts_with_the_text_need_not_settle(scene: Scene) -> None:
    scene.kept.begin()
    scene.look(SETTLE_S)
    assert scene.kept.state.since <= time.monotonic() - SETTLE_S
    assert scene.kept.current


def test_hived_that_may_run_with_another_text_has_to_end_first(scene: Scene) -> None:
    scene.used.write_text(OTHER)
    scene.kept.begin()
    assert scene.kept.state.since > time.monotonic() - SETTLE_S
    scene.look(SETTLE_S - 1)
    assert not scene.kept.current


def test_record_that_cannot_be_read_at_first_is_read_later(scene: Scene) -> None:
    scene.record.text, scene.record.fails = GOOD, True
    scene.wanted.write_text(BAD)
    scene.kept.begin()
    scene.look(TRIAL_S, up=False)
    assert scene.used.read_text() == BAD
    scene.record.fails = False
    scene.look(1, up=False)
    assert scene.used.read_text() == GOOD


def test_record_that_cannot_be_written_at_first_is_written_later(scene: Scene) -> None:
    scene.kept.begin()
    scene.record.fails = True
    scene.look(SETTLE_S)
    assert scene.kept.current
    scene.record.fails = False
    scene.look(2)
    scene.look(2)
    assert scene.record.writes == [GOOD]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_configmap_that_cannot_be_read_changes_nothing(scene: Scene, content: bytes | None) -> None:
    scene.kept.begin()
    scene.look(SETTLE_S)
    scene.wanted.unlink()
    if content is not None:
        scene.wanted.write_bytes(content)
    scene.look(1)
    assert (scene.used.read_text(), scene.kept.current) == (GOOD, True)


def test_bridge_does_not_begin_without_a_configuration(scene: Scene) -> None:
    scene.wanted.unlink()
    with pytest.raises(OSError, match=r"wanted\.yaml"):
        scene.kept.begin()
