"""Accounts of the ledger: exact to the second against a ledger counted second by second, and the same by every key."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

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
from pai_install.jobs.gpu_hours import FRESH_S, KEYS, Amounts, LedgerNames, Period, account_of

WEEK = 7 * 86400
T0 = 1_790_000_000
NAMES = LedgerNames({"vision": "Vision_1", "nlp": "nlp"}, {"g1": "V100"})
HOLD = Hold("a", 4, T0, namespace="vision", user="alice", cluster="default", flavor="v", job="train", node="g1")


def account(
    holds: Iterable[Hold], start: int, end: int, now: int = T0 + 10 * WEEK, quotas: Iterable[Quota] = ()
) -> Amounts:
    ledger = Ledger({hold.uid: hold for hold in holds}, frozenset(quotas), alive=now)
    return account_of(ledger, Period(start, end), "user", NAMES, now).total


@dataclass(frozen=True)
class Simulated:
    """A pod of the simulated week, as the test itself knows it."""

    uid: str
    user: str
    namespace: str
    node: str
    devices: int
    queued: int
    start: int
    end: int
    reason: str


def week(seed: int) -> list[Simulated]:
    """400 jobs of one to four pods."""
    chance, found = random.Random(seed), []  # noqa: S311
    for number in range(400):
        user, queued = f"user-{chance.randrange(12)}", T0 + chance.randrange(-86400, WEEK)
        reason = chance.choice(("completed", "completed", "failed", "preempted", "stopped"))
        for pod in range(chance.randint(1, 4)):
            start = queued + chance.choice((0, 1, 59, chance.randrange(7200)))
            end = start + chance.choice((0, 1, 30, chance.randrange(36 * 3600)))
            node, devices = f"g{chance.randrange(20)}", chance.choice((1, 2, 4, 8))
            namespace = "vision" if int(user[5:]) % 2 else "nlp"
            found.append(Simulated(f"{number}-{pod}", user, namespace, node, devices, queued, start, end, reason))
    return found


def lines(pods: Iterable[Simulated]) -> list[str]:
    """Their lines, as a recorder writes them."""
    found = []
    for pod in pods:
        hold = Hold(
            pod.uid, pod.devices, pod.start, namespace=pod.namespace, user=pod.user, cluster=f"vc-{pod.namespace}",
            flavor="v", job=pod.uid.partition("-")[0], node=pod.node, queued=pod.queued,
            sku=f"sku-{int(pod.node[1:]) % 3}",
        )  # fmt: skip
        found += [line_of(hold), line_of(replace(hold, end=pod.end, reason=pod.reason))]
    return found


def by_hand(pods: Iterable[Simulated], start: int, end: int) -> dict[str, Counter[str]]:
    """User -> GPU seconds, counted from the beginning and the end of each second that a pod holds devices."""
    rows: dict[str, Counter[str]] = {}
    for pod in pods:
        held = sum(1 for second in (range(pod.start, pod.end)) if start <= second < end) * pod.devices
        waited = sum(1 for second in range(pod.queued, pod.start) if start <= second < end) * pod.devices
        if held or waited:
            row = rows.setdefault(pod.user, Counter())
            row += Counter(held=held, waited=waited, preempted=held if pod.reason == "preempted" else 0)
    return rows


@pytest.mark.parametrize(("start", "end"), [(T0, T0 + WEEK), (T0 + 86_400, T0 + 172_801), (T0 + 5, T0 + 6)])
def test_a_week_of_400_jobs_is_exact_to_the_second(start: int, end: int) -> None:
    pods = week(7)
    found = account_of(read(lines(pods)), Period(start, end), "user", NAMES, T0 + 10 * WEEK)
    expected = by_hand(pods, start, end)
    assert {name for name, _ in found.rows} == set(expected)
    for name, amounts in found.rows:
        row = expected[name]
        assert (amounts.held, amounts.waited, amounts.preempted) == (row["held"], row["waited"], row["preempted"])
    assert found.total.held == sum(row["held"] for row in expected.values())


@pytest.mark.parametrize("seed", range(5))
def test_the_sum_is_the_same_by_every_key_and_the_year_is_the_sum_of_its_days(seed: int) -> None:
    pods = week(seed)
    quotas = [Quota("vc-vision", T0 - WEEK, (("v", 40),)), Quota("vc-vision", T0 + 100_000, (("v", 20),))]
    samples = [line_of_sample(pod.uid, Sample(pod.start + 600, 100, 1200)) for pod in pods if pod.devices > 1]
    ledger = read([*lines(pods), *map(line_of_quota, quotas), *samples])
    totals = {account_of(ledger, Period(T0, T0 + WEEK), key, NAMES, T0 + 10 * WEEK).total for key in KEYS}
    assert len(totals) == 1
    (total,) = totals
    assert total.borrowed
    days = [
        account_of(ledger, Period(T0 + day * 86400, T0 + (day + 1) * 86400), "node", NAMES, T0 + 10 * WEEK).total
        for day in range(7)
    ]
    for name in ("held", "waited", "preempted", "borrowed", "preemptions", "measured", "busy"):
        assert sum(getattr(day, name) or 0 for day in days) == getattr(total, name), name


def test_three_recorders_that_each_saw_a_part_give_the_same_account() -> None:
    pods, chance = week(3), random.Random(3)  # noqa: S311
    whole = lines(pods)
    parts: list[list[str]] = [[], [], []]
    for line in whole:
        for part in chance.sample(parts, chance.randint(1, 3)):
            part.append(line)
    torn = [[*part, line_of_time(T0)[:9]] for part in parts]
    expected = account_of(read(whole), Period(T0, T0 + WEEK), "job", NAMES, T0 + 10 * WEEK)
    found = account_of(merged(map(read, torn)), Period(T0, T0 + WEEK), "job", NAMES, T0 + 10 * WEEK)
    assert found.rows == expected.rows


def test_a_pod_over_the_boundary_of_two_months_counts_in_both() -> None:
    hold = replace(HOLD, end=T0 + 1000)
    assert account([hold], T0 - 50, T0 + 400).held == 4 * 400
    assert account([hold], T0 + 400, T0 + 9000).held == 4 * 600


def test_a_pod_that_runs_counts_until_now_or_until_it_was_last_seen() -> None:
    now = T0 + 5000
    assert account([replace(HOLD, seen=now - 60)], T0, now, now).held == 4 * 5000
    lost = replace(HOLD, seen=now - FRESH_S - 1)
    ledger = Ledger({"a": lost})
    found = account_of(ledger, Period(T0, now), "user", NAMES, now)
    assert (found.total.held, found.unseen) == (4 * (5000 - FRESH_S - 1), 1)


def test_what_is_not_known_is_absent() -> None:
    found = account([replace(HOLD, end=T0 + 100, estimated=True)], T0, T0 + 100)
    assert found == Amounts(pods=1, held=400)
    both = account(
        [replace(HOLD, end=T0 + 100), replace(HOLD, uid="b", end=T0 + 100, queued=T0 - 9)], T0 - 100, T0 + 100
    )
    assert both.waited == 36


def test_busy_is_of_what_was_measured_and_divided_in_proportion() -> None:
    samples = (Sample(T0 + 1000, 2000, 4000), Sample(T0 + 2000, 2000, 8000))
    hold = replace(HOLD, end=T0 + 4000, reason="completed", samples=samples)
    whole = account([hold], T0, T0 + 4000)
    assert (whole.held, whole.measured, whole.busy) == (16_000, 8000, 2000)
    half = account([hold], T0 + 500, T0 + 1500)
    assert (half.held, half.measured, half.busy) == (4000, 4000, 1000)


@pytest.mark.parametrize(
    "samples",
    [(Sample(T0 + 100, 10**9, 10**9),), (Sample(T0 + 100, 300, 400), Sample(T0 + 200, 0, 0)), (Sample(T0 - 9, 1, 2),)],
)
def test_a_node_cannot_report_more_work_than_the_pod_held(samples: tuple[Sample, ...]) -> None:
    found = account([replace(HOLD, end=T0 + 300, samples=samples)], T0, T0 + 300)
    assert found.busy is not None
    assert found.measured is not None
    assert 0 <= found.busy <= found.measured <= found.held


def test_the_pods_that_came_last_borrow() -> None:
    first, last = replace(HOLD, end=T0 + 100), replace(HOLD, uid="b", user="bob", start=T0 + 40, end=T0 + 200)
    quotas = [Quota("default", T0 - 5, (("v", 6),)), Quota("default", T0 + 150, (("v", 1),))]
    ledger = Ledger({"a": first, "b": last}, frozenset(quotas))
    found = dict(account_of(ledger, Period(T0, T0 + 1000), "user", NAMES, T0 + WEEK).rows)
    assert found["alice"].borrowed == 0
    assert found["bob"].borrowed == 2 * 60 + 3 * 50


def test_borrowed_time_without_a_quota_is_unknown() -> None:
    hold = replace(HOLD, end=T0 + 100)
    assert account([hold], T0, T0 + 100).borrowed is None
    assert account([hold], T0, T0 + 100, quotas=[Quota("default", T0 + 60, (("v", 0),))]).borrowed == 4 * 40


def test_names_of_the_site() -> None:
    ledger = Ledger(
        {"a": replace(HOLD, end=T0 + 5), "b": replace(HOLD, uid="b", namespace="old", node="g9", end=T0 + 5)}
    )
    rows = {
        key: {name for name, _ in account_of(ledger, Period(T0, T0 + 9), key, NAMES, T0 + WEEK).rows} for key in KEYS
    }
    assert rows["group"] == {"Vision_1", "old"}
    assert rows["job"] == {"Vision_1/alice/train", "old/alice/train"}
    assert rows["sku"] == {"V100", ""}
