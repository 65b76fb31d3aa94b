"""Questions to the store of logs, and what of its answers is printed, hostile ones too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from pai_install.monitoring import log_store
from pai_install.monitoring.log_store import (
    MAX_LINE,
    Parameters,
    StoredLog,
    all_lines,
    files_query,
    last_lines,
    lines_in,
    lines_query,
    logs_in,
    texts,
)

LOG = StoredLog("vision.a", "train-0")
FILE = "/var/log/pods/vision.a_train-0_1-2/main/0.log"


def row(content: str, file: str = FILE, at: str = "2026-11-26T10:00:00.1Z") -> str:
    return json.dumps({"_time": at, "_msg": content, "file": file}) + "\n"


def test_a_question_is_of_one_namespace_and_one_pod() -> None:
    asked = lines_query(LOG, 5, "2026-11-26T10:00:00Z")
    files = '{file=~"^/var/log/pods/vision[.]a_train-0_[^/]+/[^/]+/[0-9]+[.]log$"}'
    assert asked["query"] == f"{files} | sort by (_time desc) limit 5 | fields _time, _msg, file"
    assert asked["extra_stream_filters"] == '{file=~"^/var/log/pods/vision[.]a_.+$"}'
    assert asked["start"] == "2026-11-26T10:00:00Z"
    assert "start" not in lines_query(LOG, 5)
    assert "/main/" in lines_query(StoredLog("a", "b", "main"), 5)["query"]
    assert "extra_stream_filters" not in files_query("train-0")
    assert "extra_stream_filters" in files_query("train-0", "vision")


@pytest.mark.parametrize("name", ["", ".*", "a|b", 'a"', "a_b", "a/b", "A", "-a", "a\n", "a" * 254])
def test_other_names_are_no_question(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        lines_query(StoredLog(name, "a"), 5)
    with pytest.raises(ValueError, match="no name"):
        lines_query(StoredLog("a", name), 5)
    with pytest.raises(ValueError, match="no name"):
        files_query(name)


def test_texts_are_those_of_the_pod() -> None:
    answer = [
        row("2026-11-26T10:00:00.1Z stdout F one"),
        row("2026-11-26T10:00:00.2Z stdout P two "),
        row("2026-11-26T10:00:00.2Z stderr F other", "/var/log/pods/vision.a_train-0_1-2/side/0.log"),
        row("2026-11-26T10:00:00.3Z stdout F parts"),
        row("2026-11-26T10:00:00.4Z stdout F"),
        row("2026-11-26T10:00:00.4Z stdout F \x1b[2J\n2026-11-26T10:00:00.4Z stdout F x"),
        row("what the runtime never writes"),
        row("2026-11-26T10:00:00.5Z stdout P without an end"),
    ]
    assert list(texts(lines_in(answer))) == [
        *("one", "other", "two parts", "", "\x1b[2J\n2026-11-26T10:00:00.4Z stdout F x"),
        *("what the runtime never writes", "without an end"),
    ]


def test_lines_before_a_time_are_left_out() -> None:
    since = datetime(2026, 11, 26, 10, tzinfo=UTC).timestamp()
    answer = [row(f"{day}T10:00:00.123456789Z stdout F {day}") for day in ("2026-11-25", "2026-11-26", "someday")]
    assert list(texts(lines_in(answer), since)) == ["2026-11-26", "someday"]


@pytest.mark.parametrize("line", ["", "{", "[]", "null", "1", "{}", '{"_msg": 1}' + "[" * 1000, "{" * 100_000])
def test_an_answer_that_is_none_stops_nothing(line: str) -> None:
    found = lines_in([line, row("2026-11-26T10:00:00.1Z stdout F one")])
    assert [text for text in texts(found) if text] == ["one"]


def test_a_line_without_an_end_has_a_limit() -> None:
    parts = (row(f"2026-11-26T10:00:00.1Z stdout P {'x' * 16_000}") for _ in range(100))
    assert [len(text) for text in texts(lines_in(parts))] == [MAX_LINE]


def test_containers_of_files() -> None:
    files = [FILE, FILE, "/var/log/pods/a_b_c/side/3.log", "/var/log/pods/a_b_c/0.log", "/etc/passwd", ""]
    assert logs_in([json.dumps({"file": file}) for file in files]) == (
        StoredLog("a", "b", "side"),
        StoredLog("vision.a", "train-0", "main"),
    )


class Store:
    """Answers as the store does: lines in order of their time, several at the same time."""

    def __init__(self, lines: int, at_once: int) -> None:
        self.rows = [(f"2026-11-26T10:00:00.{n // at_once:09}Z", n) for n in range(lines)]
        self.asked = 0

    def __call__(self, parameters: Parameters) -> Iterable[str]:
        self.asked += 1
        wanted = [it for it in self.rows if it[0] >= parameters.get("start", "")]
        page = wanted[: log_store.PAGE]
        if "desc" in parameters["query"]:
            page = wanted[:-6:-1]
        return [row(f"2026-11-26T10:00:00Z stdout F {number}", at=at) for at, number in page]


@pytest.mark.parametrize(("lines", "at_once"), [(0, 1), (9, 1), (10, 1), (11, 1), (95, 3), (100, 5)])
def test_all_lines_come_page_by_page_each_once(monkeypatch: pytest.MonkeyPatch, lines: int, at_once: int) -> None:
    monkeypatch.setattr(log_store, "PAGE", 10)
    store = Store(lines, at_once)
    assert list(texts(all_lines(store, LOG))) == [str(number) for number in range(lines)]


def test_more_lines_of_one_moment_than_a_page_has_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_store, "PAGE", 10)
    assert len(list(texts(all_lines(Store(100, 50), LOG)))) == 10


def test_last_lines_are_in_order() -> None:
    assert list(texts(last_lines(Store(100, 1), LOG, 5))) == ["95", "96", "97", "98", "99"]
