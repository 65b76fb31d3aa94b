"""What Volcano, Kubernetes' own scheduler and HiveD would do; and what the API server refuses before."""

from __future__ import annotations

from dataclasses import replace

from pai_install.schedulers.simulate.manifest import CELLS
from pai_install.schedulers.simulate.model import GangRole, NewJob
from pai_install.schedulers.simulate.verdict import simulate
from tests.unit.schedulers.simulate.clusters import gang, running, snapshot
from tests.virtual_clusters import cluster, gpus, share, site, with_backend

SUPPLY = gpus("a100", 4)
SITE = site(
    SUPPLY,
    clusters=(
        cluster("a", share(SUPPLY, 16), highest="prod"),
        cluster("b", share(SUPPLY, 8, lend=0, borrow=4)),
    ),
)
VOLCANO, DEFAULT, HIVED = (with_backend(SITE, it) for it in ("volcano", "default", "hived"))


class TestVolcano:
    """One quota per resource."""

    def test_starts_and_borrows(self) -> None:
        found = simulate(VOLCANO, snapshot(VOLCANO), gang("a", 3, 8))[1]
        assert found.outcome == "starts"
        assert found.why == ("a borrows 8 nvidia.com/gpu: who is guaranteed them may take them back",)

    def test_what_others_never_lend_is_out_of_reach(self) -> None:
        found = simulate(VOLCANO, snapshot(VOLCANO), gang("a", 4, 8))[1]
        assert (found.outcome, found.why) == ("never", ("asks for 32 nvidia.com/gpu, a may have 24 nvidia.com/gpu",))

    def test_a_limit_in_use_waits(self) -> None:
        found = simulate(VOLCANO, snapshot(VOLCANO, running(VOLCANO, "b", "x", {"a100-1": 8})), gang("b", 1, 8))[1]
        assert found.outcome == "waits"
        assert found.why == (
            "b may have 12 nvidia.com/gpu, 8 nvidia.com/gpu in use; the job asks for 8 nvidia.com/gpu",
        )

    def test_reclaims_whole_jobs_and_says_what_that_takes(self) -> None:
        jobs = (
            running(VOLCANO, "a", "x", {"a100-1": 8, "a100-2": 8}, priority=100),
            running(VOLCANO, "a", "y", {"a100-3": 8, "a100-4": 8}, priority=10),
        )
        found = simulate(VOLCANO, snapshot(VOLCANO, *jobs), gang("b", 1, 8))[1]
        assert found.outcome == "takes-back"
        assert [it.job for it in found.victims] == ["a/y"]
        assert any("PodEvicted -> RestartJob" in note for note in found.notes)

    def test_priority_takes_nothing_within_a_queue(self) -> None:
        full = running(VOLCANO, "b", "x", {"a100-1": 8, "a100-2": 4}, priority=-1)
        assert simulate(VOLCANO, snapshot(VOLCANO, full), gang("b", 1, 1, priority="crit"))[1].outcome == "waits"

    def test_only_its_own_jobs_start_whole(self) -> None:
        found = simulate(VOLCANO, snapshot(VOLCANO), gang("a", 2, 8))[1]
        assert any("may start one by one" in note for note in found.notes)
        whole = replace(gang("a", 2, 8), kind="Volcano Job")
        assert simulate(VOLCANO, snapshot(VOLCANO), whole)[1].notes == ()


class TestDefault:
    """A limit, and pod by pod."""

    def test_starts(self) -> None:
        assert simulate(DEFAULT, snapshot(DEFAULT), gang("a", 2, 8))[1].outcome == "starts"

    def test_beyond_the_limit(self) -> None:
        found = simulate(DEFAULT, snapshot(DEFAULT), gang("b", 3, 4))[1]
        assert (found.outcome, found.why) == (
            "never",
            ("b is limited to 8 nvidia.com/gpu, the job asks for 12 nvidia.com/gpu",),
        )

    def test_a_part_starts_all_the_same(self) -> None:
        found = simulate(DEFAULT, snapshot(DEFAULT, running(DEFAULT, "a", "x", {"a100-1": 8})), gang("a", 4, 4))[1]
        assert found.outcome == "waits"
        assert found.why == (
            "the quota of a is 16 nvidia.com/gpu, 8 nvidia.com/gpu in use; the job asks for 16 nvidia.com/gpu",
        )
        assert found.notes[0].startswith("2 of 4 pods start at once and hold what they have")

    def test_the_virtual_cluster_is_that_of_the_namespace(self) -> None:
        asked = NewJob("t", (GangRole("w", 1, {"nvidia.com/gpu": 1.0}),), namespace="b")
        told, found = simulate(DEFAULT, snapshot(DEFAULT), asked)
        assert (told.cluster, found.outcome) == ("b", "starts")


class TestHived:
    """Cells."""

    def test_a_guarantee_is_no_more_than_it_is(self) -> None:
        found = simulate(HIVED, snapshot(HIVED), gang("b", 2, 8, resource=CELLS))[1]
        assert found.outcome == "never"
        assert found.why == ("a100: b is guaranteed 8 devices, in cells that do not hold this job",)
        assert simulate(HIVED, snapshot(HIVED), gang("b", 1, 8))[1].outcome == "starts"

    def test_the_lowest_priority_uses_what_is_idle_and_goes_first(self) -> None:
        found = simulate(HIVED, snapshot(HIVED), gang("b", 4, 8, priority="oppo", resource=CELLS))[1]
        assert found.outcome == "starts"
        idle = running(HIVED, "a", "guest", {f"a100-{number}": 8 for number in (1, 2, 3, 4)}, -1, borrows=True)
        found = simulate(HIVED, snapshot(HIVED, idle), gang("b", 1, 8, priority="test"))[1]
        assert [(it.job, it.why) for it in found.victims] == [("a/guest", "it is of priority oppo")]
        again = simulate(HIVED, snapshot(HIVED, idle), gang("b", 1, 8, priority="oppo", resource=CELLS))[1]
        assert again.outcome == "waits"

    def test_within_a_virtual_cluster_priority_decides(self) -> None:
        full = running(HIVED, "b", "x", {"a100-1": 8}, priority=10)
        found = simulate(HIVED, snapshot(HIVED, full), gang("b", 1, 4, priority="test"))[1]
        assert found.outcome == "waits"
        assert "the cells of b are 8 devices, 8 devices in use" in found.why[0]
        found = simulate(HIVED, snapshot(HIVED, full), gang("b", 1, 4, priority="prod"))[1]
        assert [it.job for it in found.victims] == ["b/x"]

    def test_a_broken_machine_is_no_whole_cell(self) -> None:
        held = running(HIVED, "a", "x", {"a100-1": 1, "a100-2": 1})
        found = simulate(HIVED, snapshot(HIVED, held), gang("a", 1, 8))[1]
        assert found.outcome == "waits"

    def test_pinned_machines_are_used_by_name(self) -> None:
        where = with_backend(site(SUPPLY, clusters=(cluster("a", pinned=("a100-2",)), cluster("b"))), "hived")
        named = replace(gang("a", 1, 8), pinned="a100-2")
        assert simulate(where, snapshot(where), named)[1].placed[0].machine == "a100-2"
        assert simulate(where, snapshot(where), gang("a", 1, 8))[1].outcome == "never"
        found = simulate(where, snapshot(where), replace(named, cluster="b", namespace="b"))[1]
        assert found.why == ("a100-2 is not pinned to b",)


class TestRefused:
    """Before any scheduler."""

    def test_no_virtual_cluster(self) -> None:
        found = simulate(SITE, snapshot(SITE), gang("", 1, 1))[1]
        assert found.outcome == "refused"
        assert found.why == (
            "it names no virtual cluster, and has to name one of a, b by the label kueue.x-k8s.io/queue-name (or --vc)",
        )
        assert simulate(SITE, snapshot(SITE), gang("x", 1, 1))[1].why[0].startswith("x is no virtual cluster")

    def test_a_namespace_of_others(self) -> None:
        found = simulate(SITE, snapshot(SITE), gang("a", 1, 1, namespace="b"))[1]
        assert found.why == ("jobs of a are in the namespaces of its groups (a), this one is in b",)

    def test_a_namespace_that_is_left_open(self) -> None:
        told, found = simulate(SITE, snapshot(SITE), replace(gang("a", 1, 1), namespace=""))
        assert (told.namespace, found.outcome) == ("a", "starts")
        assert found.notes == ("it names no namespace: a is taken",)

    def test_a_priority_above_the_highest(self) -> None:
        found = simulate(SITE, snapshot(SITE), gang("a", 1, 1, priority="crit"))[1]
        assert found.why == ("a allows no jobs of priority crit, only prod, test, oppo",)
        number = replace(gang("a", 1, 1, priority=""), number=110)
        assert simulate(HIVED, snapshot(HIVED), number)[1].why == (
            "a allows no jobs of priority 110: the highest is 100 (prod)",
        )

    def test_a_pod_beside_kueue(self) -> None:
        found = simulate(SITE, snapshot(SITE), replace(gang("a", 1, 1), kind="Pod"))[1]
        assert found.why == ("Kueue queues Job and JobSets here: a Pod that asks for devices is refused",)

    def test_who_waits_already_is_said(self) -> None:
        waiting = replace(snapshot(SITE), waiting={"a": 2})
        found = simulate(SITE, waiting, gang("a", 1, 1))[1]
        assert found.notes == ("2 jobs wait in a already: one of the same or a higher priority that fits goes first",)
