"""The replay engine behaves as the real one where the executor can tell."""

from __future__ import annotations

from pathlib import Path

from pai_install.engine.base import EventKind, RunRequest
from pai_install.engine.replay import ReplayEngine, load_stream
from pai_install.plan.model import Inventory
from tests.errors import raises

STREAMS = Path(__file__).parent / "streams"
EMPTY = Inventory({}, {}, {})


def test_only_hosts_within_the_limit_are_replayed() -> None:
    engine = ReplayEngine({"ok.yml": load_stream(STREAMS / "ok.jsonl")})
    events = list(engine.run(RunRequest("ok.yml", EMPTY, limit=("b",))))
    assert {event.host for event in events} == {"", "b"}
    assert events[-1].kind is EventKind.DONE


def test_without_a_limit_every_host_is_replayed() -> None:
    engine = ReplayEngine({"ok.yml": load_stream(STREAMS / "ok.jsonl")})
    assert {event.host for event in engine.run(RunRequest("ok.yml", EMPTY))} == {"", "a", "b", "c"}


def test_requests_are_remembered_and_unknown_playbooks_refused() -> None:
    engine = ReplayEngine({})
    request = RunRequest("missing.yml", EMPTY)
    with raises("recording-missing", "missing.yml"):
        list(engine.run(request))
    assert engine.requests == [request]
