"""When a job is warned and what comes after: never without the whole grace, never of what is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.agents.common.utilization import STALE_S
from pai_install.agents.job_recorder.limits import Evidence, Limit, Verdict, Warned, read_limits, verdict

LIMIT = Limit("idle", 10, 3600, "stop", 1800)
NOW = 1_790_000_000.0


def since(seconds: float, now: float = NOW) -> Evidence:
    return Evidence(now - seconds, now)


def warned(seconds: float, limit: Limit = LIMIT, **more: bool) -> Warned:
    return Warned(limit.what, limit.then, NOW - seconds, limit.grace_s, **more)


@pytest.mark.parametrize(
    ("evidence", "told", "does"),
    [
        (None, None, Verdict.NOTHING),
        (since(3599), None, Verdict.NOTHING),
        (since(3600), None, Verdict.WARN),
        (since(5399), warned(1799), Verdict.NOTHING),
        (since(5400), warned(1800), Verdict.ACT),
        (since(600), warned(1800), Verdict.CLEAR),  # it was busy meanwhile
        (since(1799), warned(1800), Verdict.CLEAR),
        (None, warned(90000), Verdict.NOTHING),
        (since(90000), warned(-60), Verdict.CLEAR),  # warned in the future: the machine's clock was set
        (since(90000), warned(90000, done=True), Verdict.NOTHING),
        (Evidence(NOW - 9000, NOW - STALE_S - 1), warned(8000), Verdict.NOTHING),
        (Evidence(NOW - 9000, NOW + STALE_S + 1), warned(8000), Verdict.NOTHING),
    ],
)
def test_what_is_done(evidence: Evidence | None, told: Warned | None, does: Verdict) -> None:
    assert verdict(LIMIT, evidence, told, NOW) is does


def test_a_site_that_only_warns_or_lists_does_no_more() -> None:
    warns, lists = replace(LIMIT, then="warn"), replace(LIMIT, then="list")
    assert verdict(warns, since(90000), warned(80000, warns), NOW) is Verdict.NOTHING
    assert verdict(lists, since(90000), None, NOW) is Verdict.NOTHING
    assert verdict(lists, since(90000), warned(80000), NOW) is Verdict.CLEAR


def test_who_was_warned_of_something_else_is_warned_again() -> None:
    lower = replace(LIMIT, then="preemptible")
    assert verdict(LIMIT, since(90000), warned(80000, lower), NOW) is Verdict.CLEAR


def test_a_grace_that_was_promised_is_kept() -> None:
    promised = replace(warned(1900), grace_s=7200)
    assert verdict(LIMIT, since(90000), promised, NOW) is Verdict.NOTHING
    assert verdict(replace(LIMIT, grace_s=7200), since(90000), warned(1900), NOW) is Verdict.NOTHING


# what a machine says of one minute: how long ago its last busy one was by now, and how far clocks are from another
MINUTES = st.lists(
    st.tuples(
        st.sampled_from(["idle", "busy", "unknown", "silent"]),
        st.integers(-90000, 90000).filter(lambda jump: jump % 3 == 0) | st.just(0),
        st.integers(-90000, 90000) | st.just(0),
    ),
    max_size=120,
)


@given(MINUTES, st.integers(2, 20), st.integers(2, 20))
def test_nothing_is_stopped_that_was_not_warned_for_the_whole_grace(
    minutes: list[tuple[str, int, int]], after: int, grace: int
) -> None:
    """Whatever becomes of clocks: `true` is time as it passes, which no one here can read.

    The machine's clock may be set, which makes what it measured before unknown; so may the recorder's, alone.
    """
    limit = Limit("idle", 10, after * 60, "stop", grace * 60)
    clock, ours, busy_until = NOW, NOW, NOW
    told: Warned | None = None
    true, warned_true, idle_true = 0, 0, 0
    evidence: Evidence | None = None
    for state, set_by, ours_set_by in minutes:
        true, clock, ours = true + 60, clock + 60 + set_by, ours + 60 + ours_set_by
        if set_by:
            busy_until = clock - (0 if state == "busy" else 60)
            idle_true = true - 60
        if state != "silent":
            if state in {"busy", "unknown"}:
                busy_until, idle_true = clock, true
            evidence = Evidence(busy_until, clock)
        elif not set_by:
            busy_until, idle_true = clock, true  # what is missing is not known; what was told stays as it was
        does = verdict(limit, evidence, told, ours)
        if does is Verdict.WARN:
            assert true - idle_true >= after * 60 or state == "silent"
            assert evidence is not None
            told, warned_true = Warned("idle", "stop", evidence.at, limit.grace_s), true
        elif does is Verdict.CLEAR:
            told = None
        elif does is Verdict.ACT:
            assert told is not None
            assert true - warned_true >= grace * 60
            assert idle_true <= warned_true or state == "silent"
            return


def test_limits_as_the_role_writes_them() -> None:
    row = {"what": "idle", "busy_below": 10, "after_s": 3600, "then": "stop", "grace_s": 1800}
    assert read_limits({"": [row]}) == {"": (LIMIT,)}
