"""Lines of the ledger: what is read back, and that merging depends on neither order nor repetition."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pai_install.agents.common.ledger import (
    Hold,
    Ledger,
    Quota,
    Sample,
    line_of,
    line_of_quota,
    line_of_sample,
    line_of_time,
    merged,
    read,
)

HOLD = Hold(
    "uid-1", 4, 1_000_000, namespace="vision", pod="train-0", user="alice", cluster="default", flavor="v100",
    priority="test", job="train", job_uid="job-1", node="g1", sku="V100", queued=999_000,
)  # fmt: skip


def test_lines_are_read_back() -> None:
    ended = replace(HOLD, end=1_003_600, reason="completed")
    samples = (Sample(1_001_000, 500, 4000), Sample(1_003_600, 700, 9000))
    lines = [line_of(HOLD), *(line_of_sample("uid-1", one) for one in samples), line_of(ended), line_of_time(1_003_700)]
    found = read([*lines, line_of_quota(Quota("default", 5, (("v100", 8),)))])
    assert found.holds == {"uid-1": replace(ended, samples=samples, seen=1_003_700)}
    assert found.quotas == {Quota("default", 5, (("v100", 8),))}
    assert (found.alive, found.damaged) == (1_003_700, 0)


@pytest.mark.parametrize(
    "line",
    [
        line_of(HOLD)[:-20],
        "[" * 30_000,
        '{"v":1,"event":"start","uid":"x","devices":-1,"start":5}',
        '{"v":1,"event":"start","uid":"x","devices":1,"start":9,"end":5}',
        '{"v":1,"event":"start","uid":"x","devices":1,"start":"9"}',
        '{"v":1,"event":"start","uid":"","devices":1,"start":9}',
        '{"v":1,"event":"start","uid":"x","devices":99999999,"start":9}',
        '{"v":1,"event":"use","uid":"x","at":9,"busy":2,"measured":1}',
        '{"v":1,"event":"alive","at":1e308}',
        '{"v":2,"event":"alive","at":5}',
        '{"v":1,"event":"quota","cluster":"","at":5,"units":{}}',
        "{}",
        "\x00\x00",
    ],
)
def test_damaged_line_affects_no_other(line: str) -> None:
    found = read([line_of(HOLD), line, line_of_time(1_000_100)])
    assert found.damaged == 1
    assert found.holds == {"uid-1": replace(HOLD, seen=1_000_100)}


def test_open_pod_was_seen_as_long_as_its_own_recorder_worked() -> None:
    dead, alive = read([line_of(HOLD), line_of_time(1_000_300)]), read([line_of_time(2_000_000)])
    assert merged([dead, alive]).holds["uid-1"].seen == 1_000_300


def test_end_of_an_object_counts_before_an_estimated_one() -> None:
    said = replace(HOLD, end=1_003_000, reason="completed")
    guessed = replace(HOLD, end=1_009_000, estimated=True)
    for order in ((said, guessed), (guessed, said)):
        found = read(map(line_of, order)).holds["uid-1"]
        assert (found.end, found.estimated, found.reason) == (1_003_000, False, "completed")


def test_word_of_the_scheduler_counts_before_that_of_the_pod() -> None:
    ends = [replace(HOLD, end=1_003_000, reason=reason) for reason in ("stopped", "preempted", "failed")]
    assert read(map(line_of, ends)).holds["uid-1"].reason == "preempted"


def ledgers(seed: int) -> list[Ledger]:
    """What three recorders saw of ten pods: each only a part, and some twice."""
    chance = random.Random(seed)  # noqa: S311
    whole: list[str] = []
    for number in range(10):
        start = chance.randint(1000, 2000)
        hold = replace(HOLD, uid=f"uid-{number}", start=start, queued=chance.choice((None, start - 10)))
        whole += [line_of(hold), line_of(replace(hold, sku="", node=""))]
        end = start + chance.randint(0, 500)
        whole.append(line_of(replace(hold, end=end, reason=chance.choice(("stopped", "preempted")))))
        whole.append(line_of(replace(hold, end=end + chance.randint(-0, 99), estimated=True)))
        whole += [line_of_sample(hold.uid, Sample(start + at, at, at + chance.randint(0, 9))) for at in (5, 5, 60)]
        whole.append(line_of_time(end))
    return [read(chance.sample(whole, chance.randint(5, len(whole)))) for _ in range(3)]


@pytest.mark.parametrize("seed", range(20))
def test_merge_is_idempotent_commutative_and_associative(seed: int) -> None:
    one, two, three = ledgers(seed)
    assert merged([one, one]) == merged([one])
    assert merged([one, two]) == merged([two, one])
    assert merged([merged([one, two]), three]) == merged([one, merged([two, three])])
    assert merged([one, two, three, two, one]) == merged([one, two, three])
