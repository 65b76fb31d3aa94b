"""What Kueue would do, by the rules of cohorts."""

from __future__ import annotations

from dataclasses import replace

from pai_install.schedulers.simulate.model import Forecast, GangRole, NewJob, Term
from pai_install.schedulers.simulate.verdict import simulate
from pai_install.scheduling.model import Level
from tests.unit.schedulers.simulate.clusters import GPU, gang, running, snapshot
from tests.virtual_clusters import cluster, cores, gpus, share, site

SUPPLY = gpus("a100", 4)
# a is guaranteed 8 and borrows nothing, b 8 and borrows what is idle, c 8 and lends half; 8 are no one's
SITE = site(
    SUPPLY,
    clusters=(
        cluster("a", share(SUPPLY, 8, borrow=0)),
        cluster("b", share(SUPPLY, 8)),
        cluster("c", share(SUPPLY, 8, lend=4, borrow=4)),
    ),
)


def verdict(asked: NewJob, *jobs: object, away: tuple[str, ...] = ()) -> Forecast:
    """Of the site above, where these jobs run."""
    return simulate(SITE, snapshot(SITE, *jobs, away=away), asked)[1]  # type: ignore[arg-type]


def test_within_the_guarantee_it_starts() -> None:
    found = verdict(gang("a", 2, 4))
    assert (found.outcome, found.why) == ("starts", ())
    assert [(row.machine, row.pods) for row in found.placed] == [("a100-1", 2)]


def test_quota_in_use_and_no_borrowing_waits() -> None:
    found = verdict(gang("a", 1, 4), running(SITE, "a", "old", {"a100-1": 6}))
    assert found.outcome == "waits"
    assert found.why == (
        "a's quota of nvidia.com/gpu on a100 is 8, 6 in use, borrowing is off: 2 are available now, the job asks for 4",
    )


def test_more_than_may_ever_be_had_never_starts() -> None:
    assert verdict(gang("a", 2, 8)).why == (
        "asks for 16 nvidia.com/gpu of a100, a may have 8 nvidia.com/gpu (8 guaranteed, borrowing is off)",
    )
    found = verdict(gang("c", 2, 8))
    assert found.outcome == "never"
    assert "c may have 12 nvidia.com/gpu (8 guaranteed, it borrows up to 4)" in found.why[0]


def test_a_pod_larger_than_any_machine_never_starts() -> None:
    found = verdict(gang("b", 1, 16))
    assert found.outcome == "never"
    assert found.why == ("worker: asks for 16 nvidia.com/gpu per pod, the largest machine has 8 nvidia.com/gpu",)


def test_borrowing_is_said() -> None:
    found = verdict(gang("b", 2, 8))
    assert found.outcome == "starts"
    assert found.why == ("b borrows 8 nvidia.com/gpu of a100: who is guaranteed them may take them back",)


def test_what_is_not_lent_is_not_borrowed() -> None:
    """c keeps half of its own: of 32 devices b may have 28."""
    assert verdict(gang("b", 7, 4)).outcome == "starts"
    found = verdict(gang("b", 8, 4))
    assert found.outcome == "never"
    assert "b may have 28" in found.why[0]


def test_the_owner_takes_back_what_was_borrowed() -> None:
    lent = running(SITE, "b", "greedy", {"a100-1": 8, "a100-2": 8}, since="2026-01-01T00:00:00Z")
    later = running(SITE, "b", "late", {"a100-3": 8, "a100-4": 4}, since="2026-01-02T00:00:00Z")
    found = verdict(gang("a", 1, 8), lent, later)
    assert found.outcome == "takes-back"
    assert [(it.job, it.cluster, it.units[GPU], it.why) for it in found.victims] == [("b/late", "b", 12, "b borrows")]


def test_a_small_job_is_spared_when_a_later_one_gives_enough() -> None:
    small = running(SITE, "b", "small", {"a100-1": 2}, since="2026-01-03T00:00:00Z")
    large = running(SITE, "b", "large", {"a100-2": 8, "a100-3": 8, "a100-4": 6}, since="2026-01-01T00:00:00Z")
    found = verdict(gang("a", 1, 8), small, large)
    assert [it.job for it in found.victims] == ["b/large"]


def test_who_keeps_to_the_guarantee_is_spared_whatever_the_priority() -> None:
    lowest = running(SITE, "c", "modest", {"a100-1": 8}, priority=-1)
    highest = running(SITE, "b", "greedy", {"a100-2": 8, "a100-3": 8, "a100-4": 8}, priority=120)
    found = verdict(gang("a", 1, 8, priority="oppo"), lowest, highest)
    assert [it.job for it in found.victims] == ["b/greedy"]


def test_who_would_borrow_takes_from_no_other() -> None:
    theirs = running(SITE, "b", "borrows", {"a100-1": 8, "a100-2": 8, "a100-3": 8})
    found = verdict(gang("c", 3, 4, priority="crit"), theirs)
    assert found.outcome == "waits"
    assert "c's quota of nvidia.com/gpu on a100 is 8, 0 in use, it borrows up to 4" in found.why[0]


def test_a_higher_priority_takes_from_a_lower_one_of_its_own() -> None:
    low = running(SITE, "a", "low", {"a100-1": 8}, priority=-1)
    assert verdict(gang("a", 1, 8, priority="oppo"), low).outcome == "waits"
    found = verdict(gang("a", 1, 8, priority="prod"), low)
    assert [(it.job, it.why) for it in found.victims] == [("a/low", "its priority is lower (-1 < 100)")]


def test_quota_without_a_machine_that_has_it_waits() -> None:
    """Every machine has 2 devices in use, by virtual clusters that keep to their guarantee."""
    jobs = [running(SITE, name, "x", {f"a100-{number}": 2}) for number, name in enumerate("abbc", 1)]
    found = verdict(gang("a", 1, 6), *jobs, away=("a100-1", "a100-2", "a100-3"))
    assert found.outcome == "starts"
    found = verdict(gang("b", 1, 8), *jobs, away=("a100-4",))
    assert found.outcome == "waits"
    assert found.why[0].startswith("b's quota") or "no room for all of it at once" in found.why[0]
    found = verdict(gang("b", 1, 4), running(SITE, "c", "x", {"a100-1": 8}), away=("a100-2", "a100-3", "a100-4"))
    assert found.why == ("the machines have no room for all of it at once (1 x 4 nvidia.com/gpu); free: none",)
    assert found.notes == tuple(f"a100-{number} is cordoned and takes no pods" for number in (2, 3, 4))


def test_flavors_in_turn_and_roles_apart() -> None:
    """Processors first: a parameter server without devices takes no machine that has some."""
    plain = cores("cpu", 1)
    where = site(SUPPLY, plain, clusters=(cluster("a", share(SUPPLY, 8), share(plain, 20)),))
    roles = (GangRole("ps", 1, {"cpu": 4.0}), GangRole("worker", 1, {GPU: 8.0, "cpu": 8.0}))
    asked = NewJob("train", roles, "a", "a", "test")
    found = simulate(where, snapshot(where), asked)[1]
    assert [(row.role, row.machine) for row in found.placed] == [("ps", "cpu-1"), ("worker", "a100-1")]


def test_its_own_machines_come_first_and_are_no_others() -> None:
    where = site(SUPPLY, clusters=(cluster("a", share(SUPPLY, 8), pinned=("a100-4",)), cluster("b", share(SUPPLY, 8))))
    assert simulate(where, snapshot(where), gang("a", 1, 8))[1].placed[0].machine == "a100-4"
    found = simulate(where, snapshot(where), gang("b", 4, 8))[1]
    assert found.outcome == "never"


def test_processors_are_quota_too() -> None:
    found = verdict(NewJob("train", (GangRole("w", 1, {GPU: 1.0, "cpu": 200.0}),), "a", "a", "test"))
    assert found.outcome == "never"
    assert found.why == ("asks for 200 cores of a100, a may have 93.6 cores (93.6 guaranteed, borrowing is off)",)


def test_a_resource_of_no_quota_is_none_of_any_job() -> None:
    found = verdict(NewJob("train", (GangRole("w", 1, {GPU: 1.0, "example.com/card": 1.0}),), "a", "a", "test"))
    assert found.why == ("w: asks for 1 example.com/card per pod, no machine has any",)


def test_a_gang_asked_to_be_in_one_rack_is() -> None:
    where = replace(SITE, levels=(Level("rack", "example.com/rack"),))
    found = snapshot(where, running(where, "a", "x", {"a100-1": 2}))
    racks = tuple(
        replace(it, labels={"example.com/rack": "left" if it.name in {"a100-1", "a100-2"} else "right"})
        for it in found.machines
    )
    role = GangRole("worker", 4, {GPU: 4.0}, within="example.com/rack")
    told = simulate(where, replace(found, machines=racks), NewJob("train", (role,), "b", "b", "test"))[1]
    assert {row.machine for row in told.placed} == {"a100-3", "a100-4"}
    larger = replace(role, count=5)
    told = simulate(where, replace(found, machines=racks), NewJob("train", (larger,), "b", "b", "test"))[1]
    assert told.outcome == "never"


def test_selectors_and_taints_count() -> None:
    found = snapshot(SITE)
    kept = tuple(
        replace(it, taints=(("team", "x", "NoSchedule"),)) if it.name != "a100-2" else it for it in found.machines
    )
    told = simulate(SITE, replace(found, machines=kept), gang("a", 1, 8))[1]
    assert [row.machine for row in told.placed] == ["a100-2"]
    here = (Term("kubernetes.io/hostname", "In", ("a100-3",)),)
    role = GangRole("worker", 1, {GPU: 8.0}, (here,))
    told = simulate(SITE, replace(found, machines=kept), NewJob("t", (role,), "a", "a", "test"))[1]
    assert told.outcome == "never"
    told = simulate(
        SITE,
        replace(found, machines=kept),
        NewJob("t", (replace(role, tolerates=(("team", "", ""),)),), "a", "a", "test"),
    )[1]
    assert [row.machine for row in told.placed] == ["a100-3"]
