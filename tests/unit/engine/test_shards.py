"""Several runs of Ansible together are one: every machine once, its events and counts, and one end."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from pai_install.engine.base import Event, EventKind, RunRequest
from pai_install.engine.shards import ShardedEngine, shards
from pai_install.plan.model import Inventory


@dataclass
class Ansible:
    """Answers for each machine; fails where one is called bad."""

    limits: list[tuple[str, ...]] = field(default_factory=list)
    closed: int = 0

    def run(self, request: RunRequest) -> Generator[Event]:
        self.limits.append(request.limit)
        try:
            for host in request.limit:
                yield Event(EventKind.OK, "task", host=host)
            bad = {host: 1 for host in request.limit if host == "bad"}
            yield Event(EventKind.DONE, result={"failures": bad, "dark": {}}, returncode=2 if bad else 0)
        finally:
            self.closed += 1


def request(*hosts: str, planes: tuple[str, ...] = ()) -> RunRequest:
    inventory = Inventory({"control_plane": planes, "workers": hosts}, {}, {host: {} for host in hosts})
    return RunRequest("site.yml", inventory, limit=hosts)


@given(st.lists(st.text("abc123", min_size=1), min_size=1, max_size=60, unique=True), st.integers(1, 20))
def test_every_machine_is_in_one_run(hosts: list[str], largest: int) -> None:
    engine = Ansible()
    events = list(ShardedEngine(engine, largest).run(request(*hosts)))
    assert sorted(host for limit in engine.limits for host in limit) == sorted(hosts)
    assert all(len(limit) <= largest for limit in engine.limits)
    assert sorted(event.host for event in events if event.host) == sorted(hosts)
    assert [event.kind for event in events].count(EventKind.DONE) == 1


def test_machines_that_serve_others_come_first() -> None:
    assert shards(request("w1", "w2", "m1", "w3", planes=("m1",)), 2) == (("m1", "w1"), ("w2", "w3"))


def test_a_request_that_fits_is_left_as_it_is() -> None:
    asked = request("w2", "m1", planes=("m1",))
    assert shards(asked, 2) == (("w2", "m1"),)
    assert shards(RunRequest("x.yml", asked.inventory), 5) == ((),)


def test_the_end_tells_of_all() -> None:
    *_, end = ShardedEngine(Ansible(), 1).run(request("one", "bad", "two"))
    assert end.returncode == 2
    assert end.result == {"failures": {"bad": 1}, "dark": {}}


def test_stopped_early_it_starts_no_further_run() -> None:
    engine = Ansible()
    events = ShardedEngine(engine, 1).run(request("one", "two"))
    next(events)
    events.close()
    assert (engine.limits, engine.closed) == ([("one",)], 1)
