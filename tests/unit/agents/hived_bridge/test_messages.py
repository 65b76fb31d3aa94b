"""What is kube-scheduler's, what is HiveD's, and what its answers mean: held against a real HiveD's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.agents.common.http import Response
from pai_install.agents.hived_bridge.messages import (
    Gang,
    RefusedError,
    bind_call,
    filter_call,
    gangs,
    preempt_call,
    preemption_of,
    verdict,
    victims,
)
from tests.unit.agents.hived_bridge.conftest import bind_args, filter_args, pod_of, preempt_args, recorded
from tests.unit.agents.hived_bridge.peers import encoded

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Pod", "NodeNames", "metadata", "uid", "NodeNameToMetaVictims", "Pods", "items", "status"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("filter placed", "placed"),
        ("filter waits", "wait"),
        ("filter preempt", "preempt"),
        ("filter preempting", "preempt"),
        ("filter uninformed", "uninformed"),
        ("filter bad spec", "error"),
        ("filter without pod", "error"),
    ],
)
def test_what_hived_answers_to_a_filter_call(name: str, meaning: str) -> None:
    assert verdict(recorded(name)) == meaning


def test_wait_reason_that_only_mentions_preemption_evicts_no_pod() -> None:
    reason = "Pod is waiting: node(x) has preemptible Pods: is what a virtual cluster is called"
    assert verdict(Response(200, encoded({"FailedNodes": {"hivedscheduler": reason}}))) == "wait"


def test_status_that_is_not_success_is_an_error() -> None:
    assert verdict(Response(500, recorded("filter preempt").body)) == "error"


def test_victims_by_node() -> None:
    assert victims(recorded("preempt")) == {"gpu-2": frozenset({"uid-lent-1"})}


def test_no_victims_where_room_appeared() -> None:
    assert victims(Response(200, b'{"NodeNameToMetaVictims":null}')) == {}
    assert victims(Response(200, b'{"NodeNameToMetaVictims":{"gpu-1":{"Pods":null}}}')) == {}


def test_gangs_with_where_they_are() -> None:
    lent, owner = gangs(recorded("groups preempting"))
    assert lent == Gang("lent", frozenset({"uid-lent-0", "uid-lent-1"}), frozenset({"gpu-1", "gpu-2"}))
    assert not owner.pods


@pytest.mark.parametrize("name", ["preempt without pod", "groups of a removed node"])
def test_answer_that_is_an_error_names_no_pod(name: str) -> None:
    with pytest.raises(RefusedError, match="HTTP"):
        victims(recorded(name))
    with pytest.raises(RefusedError, match="HTTP"):
        gangs(recorded(name))


def test_calls_of_kube_scheduler() -> None:
    call = filter_call(encoded(filter_args()))
    assert (call.uid, call.nodes, call.pod) == ("uid-owner", ("gpu-1", "gpu-2"), pod_of("owner"))
    assert preempt_call(encoded(preempt_args())).nodes == ("gpu-1",)
    assert bind_call(encoded(bind_args())) == "uid-owner"


def test_hived_is_asked_for_the_same_pod_on_the_same_nodes() -> None:
    asked = json.loads(preemption_of(filter_call(encoded(filter_args()))))
    assert asked == {"Pod": pod_of("owner"), "NodeNameToMetaVictims": {"gpu-1": {"Pods": []}, "gpu-2": {"Pods": []}}}
    assert preempt_call(encoded(asked)).uid == "uid-owner"


def without(args: dict[str, Any], *path: str) -> bytes:
    *outer, last = path
    inner = args
    for word in outer:
        inner = inner[word]
    del inner[last]
    return encoded(args)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not an object"),
        (without(filter_args(), "Pod"), "Pod is not an object"),
        (without(filter_args(), "Pod", "metadata"), "has no name"),
        (without(filter_args(), "Pod", "metadata", "uid"), "UID"),
        (without(filter_args(), "Pod", "metadata", "name"), "name"),
        (without(filter_args(), "Pod", "metadata", "namespace"), "namespace"),
        (without(filter_args(), "NodeNames"), "NodeNames"),
        (encoded(filter_args() | {"NodeNames": "gpu-1"}), "NodeNames"),
        (encoded(filter_args() | {"NodeNames": [1]}), "NodeNames"),
        (encoded({**filter_args(), "Pod": {"metadata": {"name": "a", "namespace": "b", "uid": "../x"}}}), "UID"),
    ],
)
def test_filter_call_of_someone_else_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        filter_call(body)


@pytest.mark.parametrize("name", ["PodName", "PodNamespace", "PodUID", "Node"])
@pytest.mark.parametrize("value", ["", None, 1])
def test_bind_call_of_someone_else_is_refused(name: str, value: object) -> None:
    with pytest.raises(RefusedError, match=name):
        bind_call(encoded(bind_args() | {name: value}))


@given(anything | st.binary(max_size=30))
def test_no_garbage_is_more_than_refused(value: object) -> None:
    body = value if isinstance(value, bytes) else encoded(value)
    for read in (filter_call, preempt_call, bind_call):
        _refused_at_most(lambda read=read: read(body))
    for ask in (verdict, victims, gangs):
        _refused_at_most(lambda ask=ask: ask(Response(200, body)))


def _refused_at_most(read: Any) -> None:
    try:
        read()
    except RefusedError:
        return


def test_malformed_gang_hides_no_other() -> None:
    good = {"metadata": {"name": "a"}, "status": {"allocatedPods": ["uid-1", 7], "physicalPlacement": {"g1": [0]}}}
    found = gangs(Response(200, encoded({"items": [1, {"status": {"allocatedPods": 1}}, good]})))
    assert [gang for gang in found if gang.pods] == [Gang("a", frozenset({"uid-1"}), frozenset({"g1"}))]
