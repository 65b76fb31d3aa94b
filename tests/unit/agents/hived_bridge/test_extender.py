"""kube-scheduler's calls through a running bridge: what goes to HiveD, what comes back, and who is evicted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from pai_install.agents.hived_bridge.extender import Waiting
from tests.unit.agents.hived_bridge.conftest import (
    TOKEN,
    House,
    PlayedHived,
    bind_args,
    filter_args,
    preempt_args,
    recorded,
)
from tests.unit.agents.hived_bridge.peers import encoded, first, listening, slow


@pytest.mark.parametrize("name", ["filter placed", "filter waits", "filter bad spec", "filter without pod"])
def test_answer_is_hiveds_own(house: House, name: str) -> None:
    house.hived.says("filter", recorded(name))
    assert house.filter() == recorded(name)
    assert house.hived.bodies == [encoded(filter_args())]
    assert house.hived.asked("preempt") == 0


GANG_SPEC = """\
virtualCluster: research
affinityGroup:
  name: default.train
  members:
  - podNumber: 2
    leafCellNumber: 1
"""
# the bridge's words in a URL, the pod's annotation
GANGS = {"its own": ("default%2Fowner", ""), "one that it names": ("default.train", GANG_SPEC)}


@pytest.mark.parametrize("name", GANGS)
def test_pod_waits_while_the_node_of_its_cells_cannot_take_it(house: House, name: str) -> None:
    """HiveD would bind the pod by itself, and the kubelet would refuse it."""
    path, spec = GANGS[name]
    house.hived.has_gang(path, "gpu-1", "gpu-2")
    house.hived.says("filter", recorded("filter placed"))
    status, body = house.post("filter", filter_args(nodes=("gpu-2",), spec=spec))
    answer = json.loads(body)
    assert (status, answer["NodeNames"], answer["Error"]) == (200, None, "")
    assert "gpu-1" in answer["FailedNodes"]["hived-bridge"]
    (asked,) = house.hived.bodies
    assert json.loads(asked) == filter_args(nodes=("gpu-2", "gpu-1"), spec=spec)
    assert house.count("hived_bridge_calls_total", verb="filter", outcome="held") == 1


def test_pod_of_a_gang_is_placed_once_its_node_can_take_it(house: House) -> None:
    house.hived.has_gang("default.train", "gpu-1", "gpu-2")
    house.hived.says("filter", recorded("filter placed"))
    house.post("filter", filter_args(nodes=("gpu-2",), spec=GANG_SPEC))
    assert house.post("filter", filter_args(spec=GANG_SPEC)) == recorded("filter placed")
    assert house.post("filter", filter_args(nodes=("gpu-1",), spec=GANG_SPEC)) == recorded("filter placed")


@pytest.mark.parametrize("answer", [(500, b"panic"), (200, b"garbage"), (200, b"[]"), (400, b'"no such group"')])
def test_call_goes_on_as_it_is_if_hived_does_not_show_the_gang(house: House, answer: tuple[int, bytes]) -> None:
    house.hived.answers["GET /v1/inspect/affinitygroups/default.train"] = [answer]
    house.hived.says("filter", recorded("filter placed"))
    assert house.post("filter", filter_args(spec=GANG_SPEC)) == recorded("filter placed")
    assert house.hived.bodies == [encoded(filter_args(spec=GANG_SPEC))]


def test_bind_is_given_on(house: House) -> None:
    house.hived.says("bind", recorded("bind"))
    assert house.post("bind", bind_args()) == recorded("bind")
    assert house.hived.bodies == [encoded(bind_args())]


def test_gang_in_the_way_is_evicted_whole_and_nothing_else(lent: House) -> None:
    assert lent.filter() == recorded("filter preempt")
    assert sorted(lent.api.deleted) == ["uid-lent-0", "uid-lent-1"]
    assert lent.api.uids() == {"uid-other-0", "uid-other-1"}
    assert lent.count("hived_bridge_evictions_total", outcome="evicted") == 2
    assert lent.count("hived_bridge_gangs_evicted_total") == 1


def test_hived_is_asked_for_victims_with_the_nodes_of_the_call(lent: House) -> None:
    lent.filter()
    asked = json.loads(lent.hived.bodies[1])
    assert asked["Pod"] == filter_args()["Pod"]
    assert set(asked["NodeNameToMetaVictims"]) == {"gpu-1", "gpu-2"}


def test_victims_that_kube_scheduler_asks_for_go_with_their_gang(lent: House) -> None:
    assert lent.post("preempt", preempt_args()) == recorded("preempt")
    assert sorted(lent.api.deleted) == ["uid-lent-0", "uid-lent-1"]


def test_no_pod_goes_where_room_appeared_meanwhile(lent: House) -> None:
    lent.hived.says("preempt", {"NodeNameToMetaVictims": None})
    lent.filter()
    assert not lent.api.deleted


@pytest.mark.parametrize("answer", [(400, b'"no"'), (200, b"garbage"), (200, b'{"NodeNameToMetaVictims": 7}')])
def test_no_pod_goes_when_hived_does_not_say_which(lent: House, answer: tuple[int, bytes]) -> None:
    lent.hived.says("preempt", answer)
    assert lent.filter() == recorded("filter preempt")
    assert not lent.api.deleted


def test_waiting_pod_is_asked_for_after_a_delay_and_a_new_one_at_once(house: House) -> None:
    house.hived.says("filter", recorded("filter waits"))
    house.filter("owner")
    assert house.slept == []
    house.filter("owner")
    house.filter("another")
    assert house.slept == [0.05]
    assert house.count("hived_bridge_delays_total", reason="waiting") == 1


def test_pod_that_was_placed_waits_no_longer(house: House) -> None:
    house.hived.says("filter", recorded("filter waits"), recorded("filter placed"))
    for _ in range(3):
        house.filter()
    assert house.slept == [0.05]


def test_bound_pod_waits_no_longer(house: House) -> None:
    house.hived.says("filter", recorded("filter waits"))
    house.hived.says("bind", recorded("bind"))
    house.filter()
    house.post("bind", bind_args())
    house.filter()
    assert house.slept == []


def test_delay_may_be_none(build: Callable[..., House]) -> None:
    house = build(delay_s=0)
    house.hived.says("filter", recorded("filter waits"))
    house.filter()
    house.filter()
    assert house.slept == []


def test_pod_that_hiveds_informer_has_not_seen_is_asked_for_again(house: House) -> None:
    house.hived.says("filter", recorded("filter uninformed"), recorded("filter uninformed"), recorded("filter placed"))
    assert house.filter() == recorded("filter placed")
    assert house.slept == [0.05, 0.05]


def test_pod_that_hived_never_sees_is_an_error_in_the_end(house: House) -> None:
    house.hived.says("filter", recorded("filter uninformed"))
    assert house.filter() == recorded("filter uninformed")
    assert house.hived.asked("filter") == 4


@pytest.mark.parametrize("verb", ["filter", "bind"])
def test_hived_that_is_too_slow_is_an_error_that_kube_scheduler_reads(build: Callable[..., House], verb: str) -> None:
    house = build(hived_timeout_s=0.4)
    house.hived.fault = slow(20)
    started = time.monotonic()
    status, body = house.post(verb, filter_args() if verb == "filter" else bind_args())
    assert time.monotonic() - started < 15
    assert (status, "no answer within 0.4 s" in json.loads(body)["Error"]) == (200, True)
    assert house.count("hived_bridge_hived_errors_total", call=verb) == 1


def test_preempt_has_no_field_for_an_error(build: Callable[..., House]) -> None:
    house = build(hived_timeout_s=0.4)
    house.hived.fault = slow(20)
    assert house.post("preempt", preempt_args())[0] == 503


def test_error_of_hived_to_preempt_is_given_on(house: House) -> None:
    house.hived.says("preempt", recorded("preempt without pod"))
    assert house.post("preempt", preempt_args()) == recorded("preempt without pod")


@pytest.mark.parametrize("garbage", [b"", b"<html>", b"[]", b'{"FailedNodes": 3}'])
def test_garbage_of_hived_is_not_given_on(house: House, garbage: bytes) -> None:
    house.hived.says("filter", (200, garbage))
    status, body = house.filter()
    assert (status, "hived-bridge" in json.loads(body)["Error"]) == (200, True)


def test_hived_restarts_in_the_middle(build: Callable[..., House], hived: PlayedHived) -> None:
    """Between its filter answer and the question for victims it is gone; the next call finds it again."""
    house = build()
    port = hived.port
    house.api.add_pod("lent-1", node="gpu-2")
    assert hived.server is not None
    hived.says("filter", recorded("filter preempt"))
    hived.says("preempt", recorded("preempt"))
    hived.says("groups", (500, b'"recovering"'))
    hived.fault = first(1, (200, recorded("filter preempt").body))
    hived.server.shutdown()
    hived.server.server_close()
    assert "hived-bridge" in json.loads(house.filter()[1])["Error"]
    assert not house.api.deleted
    with listening(hived, port):
        assert house.filter() == recorded("filter preempt")
    assert house.api.deleted == ["uid-lent-1"]


@pytest.mark.parametrize(
    ("verb", "body"),
    [("filter", b"{}"), ("filter", b"x"), ("preempt", b'{"Pod": 1}'), ("bind", b"{}"), ("filter", b"")],
)
def test_what_is_not_kube_schedulers_never_reaches_hived(house: House, verb: str, body: bytes) -> None:
    status, answer = house.raw(f"/v1/extender/{verb}", body)
    assert (status, "hived-bridge" in json.loads(answer)["Error"]) == (400, True)
    assert not house.hived.bodies
    assert house.count("hived_bridge_calls_total", verb=verb, outcome="refused") == 1


@pytest.mark.parametrize(
    "path", ["/", "/v1/extender/prioritize", "/v1/extender/../inspect", "/v1/inspect/clusterstatus"]
)
def test_other_paths_are_not_there(house: House, path: str) -> None:
    assert house.raw(path, encoded(filter_args()))[0] == 404
    assert not house.hived.bodies


def test_calls_are_counted_and_timed(lent: House) -> None:
    lent.filter()
    text = lent.get("/metrics")[1].decode()
    assert 'hived_bridge_calls_total{verb="filter",outcome="preempt"} 1' in text
    assert 'hived_bridge_call_seconds_count{verb="filter"} 1' in text


def test_secrets_are_in_no_log_and_no_answer(lent: House) -> None:
    lent.api.fault = first(50, (500, TOKEN.encode()))
    lent.filter()
    lent.raw("/v1/extender/filter", f'{{"Pod": "{TOKEN}"}}'.encode())
    told = lent.log.getvalue() + lent.get("/metrics")[1].decode()
    assert len(lent.lines()) > 1
    assert TOKEN not in told


def test_oldest_of_too_many_waiting_pods_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.agents.hived_bridge.extender._MOST_WAITING", 2)
    waiting = Waiting()
    for uid in ("a", "b", "a", "c"):
        waiting.note(uid, waits=True)
    assert [uid for uid in "abc" if uid in waiting] == ["a", "c"]
