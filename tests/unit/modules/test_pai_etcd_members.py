"""When may a control plane join, and when may one stop for a moment? From members as etcd shows them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

# as etcd's gateway answers; the last one was added and has not started yet
LISTED: list[dict[str, Any]] = [
    {"ID": "1", "name": "a", "peerURLs": ["https://10.0.0.1:2380"], "clientURLs": ["https://10.0.0.1:2379"]},
    {"ID": "2", "name": "b", "peerURLs": ["https://10.0.0.2:2380"], "clientURLs": ["https://10.0.0.2:2379"]},
    {"ID": "3", "name": "c", "peerURLs": ["https://10.0.0.3:2380"], "clientURLs": ["https://10.0.0.3:2379"]},
    {"ID": "4", "peerURLs": ["https://10.0.0.4:2380"], "isLearner": True},
]


def three(etcd: Any) -> list[dict[str, Any]]:
    return [etcd.parse_member(entry) for entry in LISTED[:3]]


def test_a_member_that_never_started_is_called_by_its_address(etcd: Any) -> None:
    names = [etcd.label(etcd.parse_member(entry)) for entry in LISTED]
    assert names == ["a", "b", "c", "10.0.0.4"]


def test_members_are_found_by_address_not_by_part_of_it(etcd: Any) -> None:
    assert [member["name"] for member in etcd.at(three(etcd), ["10.0.0.2", "10.0.0.30"])] == ["b"]
    assert etcd.at(three(etcd), ["10.0.0"]) == []


def test_learners_and_members_without_an_address_do_not_count(etcd: Any) -> None:
    learner = etcd.parse_member(LISTED[3])
    assert "catching up" in etcd.sickness(learner)
    assert "never started" in etcd.sickness({**learner, "learner": False})


@pytest.mark.parametrize(
    ("answer", "why"),
    [({"health": "true"}, ""), ({"health": "false", "reason": "NO LEADER"}, "NO LEADER"), ({}, "is not healthy")],
)
def test_health_is_what_the_member_says(
    etcd: Any, monkeypatch: pytest.MonkeyPatch, answer: dict[str, str], why: str
) -> None:
    answers = {"https://10.0.0.2:2379/health": answer}
    monkeypatch.setattr(etcd, "_request", lambda url: answers[url])
    assert etcd.sickness(three(etcd)[1]) == why


def test_silence_is_sickness(etcd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(url: str) -> dict[str, str]:
        raise etcd.EtcdError(f"{url} does not answer")

    monkeypatch.setattr(etcd, "_request", silent)
    assert etcd.sickness(three(etcd)[0]).endswith("does not answer")


def test_an_answer_that_is_nested_without_end_is_sickness(etcd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Opener:
        def open(self, *_words: object, **_named: object) -> io.BytesIO:
            return io.BytesIO(b"[" * 100_000)

    class Context:
        def load_cert_chain(self, *_words: object) -> None:
            pass

    monkeypatch.setattr(etcd.ssl, "create_default_context", lambda **_: Context())
    monkeypatch.setattr(etcd.urllib.request, "HTTPSHandler", lambda **_: None)
    monkeypatch.setattr(etcd.urllib.request, "build_opener", lambda *_: Opener())
    assert "does not answer" in etcd.sickness(three(etcd)[0])
    assert etcd._message(b"[" * 2000) == "[" * 2000


def test_nobody_joins_while_a_member_is_sick(etcd: Any, snapshot: SnapshotAssertion) -> None:
    assert etcd.join_problem(three(etcd), {}) == ""
    assert etcd.join_problem(three(etcd), {"2": "is silent"}) == snapshot
    assert etcd.join_problem(three(etcd)[:1], {"2": "is silent"}) == ""  # b was taken out


@pytest.mark.parametrize(
    ("count", "sick", "own", "may"),
    [
        (1, {}, "10.0.0.1", True),
        (3, {}, "10.0.0.1", True),
        (3, {"2": "x"}, "10.0.0.1", False),
        (3, {"2": "x"}, "10.0.0.2", True),  # down already
        (3, {"1": "x", "2": "x"}, "10.0.0.3", False),
        (2, {}, "10.0.0.1", True),  # between the first join and the second
        (2, {"2": "x"}, "10.0.0.1", False),
        (4, {}, "10.0.0.1", True),  # the fourth is a learner
        (4, {"4": "x"}, "10.0.0.1", True),
    ],
)
def test_who_may_stop_for_a_moment(etcd: Any, count: int, sick: dict[str, str], own: str, may: bool) -> None:
    found = [etcd.parse_member(entry) for entry in LISTED[:count]]
    assert (etcd.stop_problem(found, sick, own) == "") is may


@pytest.mark.parametrize("sick", [(4,), (4, 5), (3, 4, 5)])
def test_five_members_bear_one_loss_beside_the_one_that_stops(etcd: Any, sick: tuple[int, ...]) -> None:
    found = [
        {"id": str(n), "name": f"m{n}", "peers": [f"https://10.0.0.{n}:2380"], "clients": ["x"], "learner": False}
        for n in range(1, 6)
    ]
    problem = etcd.stop_problem(found, {str(n): "gone" for n in sick}, "10.0.0.1")
    assert (problem == "") is (len(sick) < 2)
    assert all(f"m{n}" in problem for n in sick) or not problem


def members_of(etcd: Any, count: int) -> list[dict[str, Any]]:
    """A cluster of so many, at 10.0.0.1 and on."""
    entries = (
        {"ID": str(number), "name": f"m{number}", "peerURLs": [f"https://10.0.0.{number}:2380"]}
        for number in range(1, count + 1)
    )
    return [etcd.parse_member(entry) for entry in entries]


@pytest.mark.parametrize(
    ("count", "sick", "leaving", "words"),
    [
        (3, (), (3,), ""),
        (3, (3,), (3,), ""),
        (5, (), (4, 5), ""),
        (3, (), (2, 3), ""),
        (5, (4, 5), (5,), ""),
        (3, (), (), ""),
        (3, (2,), (), ""),
        (3, (), (1,), "cannot leave by its own word"),
        (3, (2,), (3,), "first restore or remove what is not well: etcd of m2"),
        (3, (2, 3), (3,), "etcd has no quorum"),
    ],
)
def test_who_may_leave(etcd: Any, count: int, sick: tuple[int, ...], leaving: tuple[int, ...], words: str) -> None:
    why = {str(number): "does not answer" for number in sick}
    said = etcd.leave_problem(members_of(etcd, count), why, [f"10.0.0.{number}" for number in leaving], "10.0.0.1")
    assert words in said
    assert bool(words) == bool(said)


def test_none_may_be_left_over(etcd: Any, snapshot: SnapshotAssertion) -> None:
    found = members_of(etcd, 1)
    assert etcd.leave_problem(found, {}, ["10.0.0.1"], "10.0.0.9") == snapshot


@given(
    count=st.integers(1, 7),
    sick=st.sets(st.integers(1, 7)),
    leaving=st.lists(st.integers(1, 7), unique=True),
    own=st.integers(1, 7),
)
def test_whoever_leaves_the_quorum_stays(etcd: Any, count: int, sick: set[int], leaving: list[int], own: int) -> None:
    """One at a time, never the one that is asked, and each time a majority of those that are left is well."""
    found = members_of(etcd, count)
    why = {str(number): "does not answer" for number in sick if number <= count}
    places = [f"10.0.0.{number}" for number in leaving]
    while True:
        if etcd.leave_problem(found, why, places, f"10.0.0.{own}"):
            return
        going = etcd.in_order(found, why, places)
        if not going:
            break
        assert etcd.addresses(going[0]) != {f"10.0.0.{own}"}
        well_before = sum(member["id"] not in why for member in found)
        assert well_before > len(found) // 2
        found = [member for member in found if member is not going[0]]
        well = sum(member["id"] not in why for member in found)
        assert well > len(found) // 2
    assert found
    assert not etcd.at(found, places)
