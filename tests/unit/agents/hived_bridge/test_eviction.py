"""Who goes: only what HiveD named, whole gangs, and nothing while they are not all known."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pai_install.agents.common.api import with_token
from pai_install.agents.common.http import Endpoint
from pai_install.agents.common.log import Log
from pai_install.agents.hived_bridge.cluster import Cluster
from pai_install.agents.hived_bridge.eviction import Eviction, EvictionTargets, wanted
from pai_install.agents.hived_bridge.hived import Hived
from pai_install.agents.hived_bridge.messages import Gang
from pai_install.agents.hived_bridge.metrics import Metrics
from tests.unit.agents.hived_bridge.conftest import House, PlayedHived, in_the_way, recorded
from tests.unit.agents.hived_bridge.peers import ApiServer, Peer, Reply, first, slow

CONFLICT = (409, b"{}")


def deletions(house: House) -> list[str]:
    return [call for call in house.api.calls if call.startswith("DELETE")]


def test_gangs_of_the_named_go_whole() -> None:
    gangs = [
        Gang("a", frozenset({"a1", "a2"}), frozenset({"n1", "n2"})),
        Gang("b", frozenset({"b1"}), frozenset({"n3"})),
        Gang("empty", frozenset(), frozenset({"n4"})),
    ]
    who = wanted({"n1": frozenset({"a1", "unlisted"})}, gangs)
    assert who == EvictionTargets(frozenset({"a1", "a2", "unlisted"}), frozenset({"n1", "n2"}), ("a",))


def test_pod_of_the_same_name_that_came_later_stays(lent: House) -> None:
    """Between the list and the deletion: the UID is a precondition."""

    def replaced(peer: Peer, method: str, path: str) -> Reply | None:
        if method == "DELETE" and path.endswith("/lent-0"):
            lent.api.pods["default/lent-0"]["metadata"]["uid"] = "uid-of-the-next"
        return None

    lent.api.fault = replaced
    lent.filter()
    assert lent.api.deleted == ["uid-lent-1"]
    assert lent.count("hived_bridge_evictions_total", outcome="gone") == 1


def test_evicted_pods_are_preempted_and_not_failed(lent: House) -> None:
    """A Job counts a deleted pod as failed unless it has this condition."""
    lent.filter()
    assert sorted(lent.api.conditions) == sorted(lent.api.deleted) == ["uid-lent-0", "uid-lent-1"]
    (condition,) = lent.api.conditions["uid-lent-0"]
    assert (condition["type"], condition["status"]) == ("DisruptionTarget", "True")
    assert "default/owner" in condition["message"]


def test_pod_that_cannot_be_marked_as_preempted_stays(lent: House) -> None:
    def refused(peer: Peer, method: str, path: str) -> Reply | None:
        return (403, b"{}") if method == "PATCH" and "/lent-0/" in path else None

    lent.api.fault = refused
    lent.filter()
    assert lent.api.deleted == ["uid-lent-1"]
    assert lent.count("hived_bridge_evictions_total", outcome="failed") == 1


def test_pod_that_is_gone_is_no_failure(lent: House) -> None:
    def gone(peer: Peer, method: str, path: str) -> Reply | None:
        return (404, b"{}") if "/lent-0" in path else None

    lent.api.fault = gone
    lent.filter()
    assert lent.count("hived_bridge_evictions_total", outcome="gone") == 1
    assert lent.count("hived_bridge_evictions_total", outcome="failed") == 0


def test_pod_that_hived_knows_and_is_bound_to_no_node_yet_goes_too(lent: House) -> None:
    lent.api.pods["default/lent-0"]["spec"].pop("nodeName")
    lent.filter()
    assert sorted(lent.api.deleted) == ["uid-lent-0", "uid-lent-1"]


def test_pods_that_are_going_are_not_deleted_again(lent: House) -> None:
    lent.api.linger = True
    lent.filter()
    lent.filter()
    assert len(deletions(lent)) == 2


@pytest.mark.parametrize("status", [500, 503, 429, 403])
def test_api_server_that_fails_for_a_moment_is_asked_again(lent: House, status: int) -> None:
    lent.api.fault = first(1, (status, b"{}"))
    lent.filter()
    assert sorted(lent.api.deleted) == ["uid-lent-0", "uid-lent-1"]


@pytest.mark.parametrize("answer", [(500, b"{}"), (403, b"{}"), (200, b"garbage"), (200, b"[]")])
def test_nothing_goes_while_the_pods_cannot_be_found(lent: House, answer: Reply) -> None:
    def broken(peer: Peer, method: str, path: str) -> Reply | None:
        return answer if method == "GET" and "gpu-2" in path else None

    lent.api.fault = broken
    lent.filter()
    assert not deletions(lent)
    assert lent.count("hived_bridge_evictions_total", outcome="failed") == 2


def test_deletion_that_failed_is_made_good_at_the_next_call(lent: House) -> None:
    def broken(peer: Peer, method: str, path: str) -> Reply | None:
        return (500, b"{}") if method == "DELETE" and path.endswith("/lent-0") else None

    lent.api.fault = broken
    lent.filter()
    assert lent.api.deleted == ["uid-lent-1"]
    lent.api.fault = None
    lent.filter()
    assert lent.api.deleted == ["uid-lent-1", "uid-lent-0"]


def test_slow_api_server_does_not_hold_kube_scheduler_and_the_gang_still_goes(build: Callable[..., House]) -> None:
    house = in_the_way(build(eviction_wait_s=0.05))
    may_go_on = threading.Event()

    def held(peer: Peer, method: str, path: str) -> Reply | None:
        may_go_on.wait(60)
        return None

    house.api.fault = held
    assert house.filter() == recorded("filter preempt")
    house.filter()
    assert not house.api.deleted
    may_go_on.set()
    house.bridge.eviction.close()
    assert sorted(house.api.deleted) == ["uid-lent-0", "uid-lent-1"]
    assert len(deletions(house)) == 2


def test_late_api_server_is_one_that_does_not_answer(build: Callable[..., House]) -> None:
    house = in_the_way(build(api_timeout_s=0.2))
    house.api.fault = slow(0.5)
    house.filter()
    assert house.count("hived_bridge_api_errors_total", call="get") >= 1
    assert not house.api.deleted


@pytest.mark.parametrize("groups", [recorded("groups of a removed node"), (200, b"garbage"), (200, b"[]")])
def test_gangs_that_hived_cannot_list_go_node_by_node(lent: House, groups: Reply) -> None:
    lent.hived.says("groups", groups)
    lent.filter()
    assert lent.api.deleted == ["uid-lent-1"]
    assert any("node by node" in line["event"] for line in lent.lines())


def test_log_names_gang_and_pods(lent: House) -> None:
    lent.filter()
    (line,) = [line for line in lent.lines() if line["event"] == "evicted"]
    assert (line["gangs"], line["pods"], line["failed"]) == (["lent"], ["default/lent-0", "default/lent-1"], 0)


names = st.integers(0, 3)
gang_of_pods = st.lists(st.sampled_from(["n1", "n2", "n3", ""]), min_size=1, max_size=4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    placed=st.dictionaries(names, gang_of_pods, min_size=1, max_size=4),
    hit=st.sets(names),
    strangers=st.lists(st.sampled_from(["n1", "n2"]), max_size=3),
    faults=st.lists(st.sampled_from([None, None, (500, b"{}"), CONFLICT, (200, b"x")]), max_size=6),
)
def test_only_what_hived_named_and_never_half_a_gang(
    api: ApiServer, hived: PlayedHived, token: Any, placed: Any, hit: set[int], strangers: Any, faults: Any
) -> None:
    """Whatever the API server does at first: when it answers at last, the hit gangs are gone and all others whole."""
    api.pods.clear()
    api.deleted.clear()
    api.calls.clear()
    gangs = {f"g{number}": nodes for number, nodes in placed.items()}
    for name, nodes in gangs.items():
        for index, node in enumerate(nodes):
            api.add_pod(f"{name}-{index}", node=node)
    for index, node in enumerate(strangers):
        api.add_pod(f"stranger-{index}", node=node)
    there = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in api.pods.values()}
    # HiveD names pods by their nodes: of a gang without one none is in the way yet
    chosen = {f"g{number}" for number in hit & placed.keys() if any(placed[number])}
    meant = {f"uid-{name}-{index}" for name in chosen for index in range(len(gangs[name]))}
    # as HiveD: the victims of some node, of those that a hit gang is on
    named = [uid for uid in sorted(meant) if there[uid]]
    hived.says("groups", {"items": [_group(name, nodes) for name, nodes in gangs.items()]})
    metrics = Metrics()
    eviction = Eviction(
        Hived(Endpoint("127.0.0.1", hived.port, 2), metrics),
        Cluster(with_token(f"http://127.0.0.1:{api.port}", token, None), 2, metrics),
        metrics,
        Log(io.StringIO()),
        5,
    )
    left = list(faults)
    api.fault = lambda *_: left.pop() if left else None
    try:
        for uid in named:
            eviction.evict({there[uid]: frozenset({uid})}, "default/owner")
            assert set(api.deleted) <= meant
        left.clear()
        for uid in named:
            eviction.evict({there[uid]: frozenset({uid})}, "default/owner")
    finally:
        eviction.close()
    touched = {uid.rpartition("-")[0] for uid in api.deleted}
    assert not any(uid.rpartition("-")[0] in touched for uid in api.uids())
    assert api.uids() == there.keys() - meant


def _group(name: str, nodes: list[str]) -> dict[str, Any]:
    status = {
        "physicalPlacement": {node: [0] for node in nodes if node},
        "allocatedPods": [f"uid-{name}-{index}" for index in range(len(nodes))],
    }
    return {"metadata": {"name": name}, "status": status}


def test_played_groups_are_what_hived_says() -> None:
    """The property above rests on it."""
    real = json.loads(recorded("groups").body)["items"][0]
    assert _group("lent", ["gpu-1", "gpu-2"])["status"].keys() <= real["status"].keys()
    assert _group("lent", ["gpu-1", "gpu-2"])["status"]["allocatedPods"] == real["status"]["allocatedPods"]
