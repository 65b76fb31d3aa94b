"""Recorded streams of real runs become the right events."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pai_install.engine.base import Event, EventKind
from pai_install.engine.events import EXIT, read_stream, to_event
from tests.replay import load_stream

STREAMS = Path(__file__).parent / "streams"


def kinds(stream: str, host: str) -> list[str]:
    return [event.kind.value for event in load_stream(STREAMS / f"{stream}.jsonl") if event.host == host]


def one(stream: str, host: str, task: str) -> Event:
    found = [e for e in load_stream(STREAMS / f"{stream}.jsonl") if e.host == host and e.task == task]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("stream", sorted(path.stem for path in STREAMS.glob("*.jsonl")))
def test_every_stream_ends_with_done_and_nothing_else_is_done(stream: str) -> None:
    events = load_stream(STREAMS / f"{stream}.jsonl")
    assert [event.kind for event in events].count(EventKind.DONE) == 1
    assert events[-1].kind is EventKind.DONE


@pytest.mark.parametrize("stream", sorted(path.stem for path in STREAMS.glob("*.jsonl")))
def test_a_host_is_named_exactly_where_something_ended_on_it(stream: str) -> None:
    for event in load_stream(STREAMS / f"{stream}.jsonl"):
        assert bool(event.host) == (event.kind not in (EventKind.TASK_START, EventKind.DONE)), event
        assert bool(event.task) == (event.kind is not EventKind.DONE), event


def test_first_run_changes_and_skips() -> None:
    assert kinds("ok", "a") == ["ok", "changed", "skipped", "changed"]


def test_second_run_changes_only_what_claims_to_change_every_time() -> None:
    assert kinds("again", "a") == ["ok", "ok", "skipped", "changed"]


def test_role_is_part_of_the_task_name() -> None:
    event = one("ok", "b", "greeting : Greet")
    assert event.task_path == "/content/roles/greeting/tasks/main.yml:1"
    assert event.duration_s > 0


def test_task_start_has_the_same_name_as_its_results() -> None:
    events = load_stream(STREAMS / "ok.jsonl")
    begun = [event.task for event in events if event.kind is EventKind.TASK_START]
    ended = list(dict.fromkeys(event.task for event in events if event.host))
    assert begun == ended


def test_loop_is_one_event_with_its_items() -> None:
    event = one("ok", "a", "Loop")
    assert [item["item"] for item in event.result["results"]] == ["one", "two"]
    assert [item["changed"] for item in event.result["results"]] == [False, True]


def test_ignored_failure_is_no_failure() -> None:
    assert kinds("failed", "a") == ["ignored", "skipped", "skipped", "ok"]


def test_failed_host_stops_and_the_others_go_on() -> None:
    assert kinds("failed", "b") == ["ignored", "failed"]
    assert one("failed", "b", "Fail on b").result["rc"] == 100


def test_rescued_failure_is_in_ansibles_count_not_among_its_failures() -> None:
    done = load_stream(STREAMS / "failed.jsonl")[-1]
    assert done.result == {"failures": {"b": 1}, "dark": {}, "rescued": {"c": 1}}
    assert done.returncode == 2


def test_unreachable_host_says_why() -> None:
    event = next(e for e in load_stream(STREAMS / "unreachable.jsonl") if e.kind is EventKind.UNREACHABLE)
    assert event.host == "c"
    assert event.result["msg"] == "ssh: connect to host 127.0.0.1 port 1: Connection refused"
    assert Counter(kinds("unreachable", "c")) == {"unreachable": 1}


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (
            "Task failed: Failed to connect to the host via ssh: ssh: port 22: No route to host",
            "ssh: port 22: No route to host",
        ),
        ("Task failed: Missing sudo password", "Missing sudo password"),
        ("Failed to connect to the host via ssh: ", "Failed to connect to the host via ssh: "),
        ("apt says: Task failed: no", "apt says: Task failed: no"),
    ],
)
def test_what_ansible_puts_before_a_message_is_left_out(said: str, left: str) -> None:
    raw = {"event": "runner_on_failed", "event_data": {"task": "Ask", "host": "a", "res": {"msg": said}}}
    event = to_event(raw)
    assert event is not None
    assert event.result["msg"] == left


def test_no_log_task_is_censored() -> None:
    event = one("no_log", "a", "Fail with the secret")
    assert event.kind is EventKind.FAILED
    assert set(event.result) == {"censored"}


def test_check_run_carries_the_difference() -> None:
    diff = one("check", "a", "Write a file").result["diff"][0]
    assert diff["before"] == "password = old\n"
    assert diff["after_header"] == "/site/a.conf"


def test_stream_that_was_cut_off_has_no_done() -> None:
    lines = [json.loads(line) for line in (STREAMS / "ok.jsonl").read_text().splitlines()]
    events = list(read_stream(lines[:-1]))
    assert events
    assert all(event.kind is not EventKind.DONE for event in events)


def test_run_without_a_count_is_done_without_a_count() -> None:
    (done,) = read_stream([{"event": EXIT, "rc": 4}])
    assert done == Event(EventKind.DONE, result={}, returncode=4)


@pytest.mark.parametrize("name", ["verbose", "playbook_on_start", "runner_on_start", "runner_item_on_ok", "EOF", None])
def test_talk_is_no_event(name: str | None) -> None:
    assert to_event({"event": name, "event_data": {"host": "a", "task": "t"}}) is None


def test_arguments_and_bookkeeping_are_not_kept() -> None:
    result: dict[str, Any] = {"invocation": {"module_args": {"password": "x"}}, "_ansible_no_log": False, "rc": 0}
    raw = {
        "event": "runner_on_ok",
        "event_data": {"host": "a", "res": {**result, "results": [dict(result), "odd"]}},
    }
    event = to_event(raw)
    assert event is not None
    assert event.result == {"rc": 0, "results": [{"rc": 0}, "odd"]}


@pytest.mark.parametrize("data", [None, {}, [], {"res": None}, {"res": "text", "duration": None, "host": None}])
def test_event_with_holes_is_still_an_event(data: object) -> None:
    event = to_event({"event": "runner_on_ok", "event_data": data})
    assert event is not None
    assert (event.kind, event.duration_s, event.result) == (EventKind.OK, 0.0, {})
