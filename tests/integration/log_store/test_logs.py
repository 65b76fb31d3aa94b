"""Logs of pods through the real programs: whose they are, who may send and read them, and their bounds."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_install.console.log_reader import LogReader
from pai_install.monitoring.log_store import (
    Parameters,
    StoredLog,
    all_lines,
    files_query,
    last_lines,
    lines_query,
    logs_in,
    query_program,
    texts,
)
from pai_install.ports import LOG_STORE_PORT
from tests.integration.log_store.conftest import Stack
from tests.waiting import until

FORGED = {
    "_msg": "forged",
    "_time": "2001-01-01T00:00:00Z",
    "file": "/var/log/pods/speech_other-0_x/main/0.log",
    "node": "evil",
    "kubernetes.pod_namespace": "speech",
    "_stream": '{file="/var/log/pods/speech_other-0_x/main/0.log"}',
}


def written(*lines: str, mark: str = "F") -> str:
    """Lines as the runtime writes them."""
    now = datetime.now(UTC)
    return "".join(f"{now:%Y-%m-%dT%H:%M:%S.%f}000Z stdout {mark} {line}\n" for line in lines)


def shown(stack: Stack, namespace: str, pod: str, lines: int = 0) -> list[str]:
    log = StoredLog(namespace, pod)
    return list(texts(last_lines(stack.ask, log, lines) if lines else all_lines(stack.ask, log)))


@pytest.fixture
def whole(stack: Stack) -> Stack:
    stack.start_store()
    stack.start_front()
    stack.start_collector()
    return stack


def test_lines_of_a_pod_that_is_gone(whole: Stack) -> None:
    file = whole.log("vision", "train-0")
    file.write_text(written(*(f"step {number}" for number in range(1000))))
    with file.open("a") as more:
        more.write(
            written("a" * 10, mark="P") + written("b" * 10, mark="P") + written("c", "\x1b]0;evil\x07", "", " x ")
        )
    wanted = [*(f"step {number}" for number in range(1000)), "a" * 10 + "b" * 10 + "c", "\x1b]0;evil\x07", "", " x "]
    until(lambda: len(shown(whole, "vision", "train-0")) == len(wanted))
    file.unlink()
    file.parent.rmdir()
    assert shown(whole, "vision", "train-0") == wanted
    assert shown(whole, "vision", "train-0", lines=2) == ["", " x "]
    assert logs_in(whole.ask(files_query("train-0"))) == (StoredLog("vision", "train-0", "main"),)
    assert logs_in(whole.ask(files_query("train-0", "speech"))) == ()


def test_a_short_pod_loses_nothing(whole: Stack) -> None:
    whole.log("vision", "first").write_text(written("x"))
    until(lambda: shown(whole, "vision", "first"))
    file = whole.log("vision", "short")
    file.write_text(written("one", "two"))
    time.sleep(10)  # the collector looks for files each second
    file.unlink()
    until(lambda: shown(whole, "vision", "short") == ["one", "two"])


def test_no_line_names_another_pod_time_or_node(whole: Stack) -> None:
    whole.log("vision", "train-0").write_text(
        written(json.dumps(FORGED), "x\\n2026-01-01T00:00:00Z stdout F y") + json.dumps(FORGED)[1:] + "\n"
    )
    until(lambda: len(shown(whole, "vision", "train-0")) == 3)
    assert shown(whole, "vision", "train-0")[0] == json.dumps(FORGED)
    assert shown(whole, "speech", "other-0") == []
    for line in whole.ask({"query": "*"}):
        found = json.loads(line)
        assert found["node"] == "g1"
        assert found["file"].startswith("/var/log/pods/vision_train-0_")
        assert abs(datetime.fromisoformat(found["_time"]).timestamp() - time.time()) < 60


def test_a_query_sees_one_namespace(whole: Stack) -> None:
    for namespace, pod in (("vision", "a"), ("vision-2", "a"), ("x-vision", "a"), ("speech", "a")):
        whole.log(namespace, pod).write_text(written(f"of {namespace}"))
    until(lambda: len(whole.ask({"query": "*"})) == 4)
    assert shown(whole, "vision", "a") == ["of vision"]
    forced = lines_query(StoredLog("vision", "a"), 0)["extra_stream_filters"]
    for query in ("*", "* or _msg:secret", '{file=~".*"} or {file=~".*speech.*"}', "_time:1d or *"):
        found = [json.loads(line)["_msg"] for line in whole.ask({"query": query, "extra_stream_filters": forced})]
        assert [line.rpartition(" F ")[2] for line in found] == ["of vision"]
    # other namespaces cannot come by a subquery either
    inner = '_msg:in({file=~".*"} | fields _msg)'
    found = whole.ask({"query": inner, "extra_stream_filters": forced})
    assert len(found) == 1


@pytest.mark.parametrize("name", ["a|b", ".*", 'a"} or {file=~".*', "A", "", "a_b", "a/b", "a\n"])
def test_names_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name of Kubernetes"):
        lines_query(StoredLog(name, "a"), 0)
    with pytest.raises(ValueError, match="name of Kubernetes"):
        lines_query(StoredLog("a", name), 0)


def test_only_collectors_send_and_nobody_reads_through_the_front(stack: Stack) -> None:
    stack.start_store()
    stack.start_front()
    assert stack.identity.scraper is not None
    (stack.folder / "scraper").mkdir()
    (stack.folder / "scraper/tls.pem").write_text(stack.identity.scraper.chain)
    assert stack.sent(b"", None)[0] == 0
    assert stack.sent(b"", "scraper")[0] == 403
    # a certificate for servers
    assert stack.sent(b"", "server")[0] == 0
    for path in (
        "/select/logsql/query?query=*",
        "/insert/jsonline",
        "/delete/run_task",
        "/insert/native/../../metrics",
    ):
        assert stack.sent(b"query=*", "client", path)[0] == 403
    assert stack.sent(b"", "client")[0] in (200, 204)


def test_who_only_connects_keeps_no_other_one_away(stack: Stack) -> None:
    stack.start_store()
    stack.start_front()
    with ExitStack() as opened:
        for _ in range(100):
            opened.enter_context(
                socket.create_connection(("127.0.0.1", stack.front_port), source_address=("127.0.0.2", 0))
            )
        # One thread of HAProxy may answer before another one has counted its connections.
        until(lambda: stack.sent(b"", "client", source="127.0.0.2")[0] == 0)
        assert stack.sent(b"", "client", source="127.0.0.3")[0] in (200, 204)
    until(lambda: stack.sent(b"", "client", source="127.0.0.2")[0] in (200, 204))


def test_a_store_that_is_killed_loses_no_line(stack: Stack) -> None:
    store = stack.start_store()
    stack.start_front()
    stack.start_collector()
    file = stack.log("vision", "train-0")
    file.write_text(written("before"))
    until(lambda: shown(stack, "vision", "train-0") == ["before"])
    time.sleep(20)  # the store writes its newest lines to the disk within 10 seconds
    store.kill()
    store.wait()
    with file.open("a") as more:
        more.write(written("meanwhile"))
    time.sleep(3)
    stack.start_store()
    until(lambda: shown(stack, "vision", "train-0") == ["before", "meanwhile"], 90)


def test_the_program_of_a_machine_and_the_console_read_the_same(stack: Stack) -> None:
    stack.start_store()
    rows = [
        {
            "_time": datetime.now(UTC).isoformat(),
            "_msg": f"2026-11-27T10:00:00Z stdout F of {space} \u2028\x1b é {n}",
            "file": f"/var/log/pods/{space}_train-0_1/main/0.log",
        }
        for space in ("vision", "speech")
        for n in range(3)
    ]
    url = f"http://127.0.0.1:{stack.port}/insert/jsonline?_stream_fields=file"
    body = "\n".join(map(json.dumps, rows)).encode()
    sent = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    urllib.request.urlopen(sent, timeout=60).close()  # noqa: S310 - ours
    wanted = [f"of vision \u2028\x1b é {n}" for n in range(3)]

    def by_program(parameters: Parameters) -> list[str]:
        words = [word.replace(f":{LOG_STORE_PORT}/", f":{stack.port}/") for word in query_program(parameters)]
        return subprocess.run(words, capture_output=True, text=True, check=True, encoding="utf-8").stdout.split("\n")

    log = StoredLog("vision", "train-0")
    until(lambda: list(texts(all_lines(by_program, log))) == wanted)
    reader = LogReader(f"http://127.0.0.1:{stack.port}")
    assert reader.text("vision", "train-0", -1).split("\n") == wanted
    assert reader.text("vision", "train-0", 1) == wanted[-1]
    assert reader.text("vision", "train", -1) == ""
    assert reader.text("vision_train-0", "x", -1) == ""
    assert LogReader("http://127.0.0.1:1").text("vision", "train-0", -1) == ""


def filler(random_: random.Random, lines: int) -> Sequence[str]:
    return [random_.randbytes(100).hex() for _ in range(lines)]


def size(folder: Path) -> int:
    found = 0
    # the store deletes files and folders meanwhile, which `walk` passes over
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                found += Path(place, name).stat().st_size
    return found


def test_three_times_the_bound_ends_at_the_bound(stack: Stack) -> None:
    """Days of the past, as they came day by day."""
    bound, made, today = 8_000_000, random.Random(1), datetime.now(UTC)  # noqa: S311 - a fixed sequence
    stack.start_store(retention__maxDiskSpaceUsageBytes=str(bound))
    for back in range(9, -1, -1):
        day = today - timedelta(days=back)
        rows = (json.dumps({"_time": day.isoformat(), "_msg": line, "file": "f"}) for line in filler(made, 24_000))
        url = f"http://127.0.0.1:{stack.port}/insert/jsonline?_stream_fields=file"
        sent = urllib.request.Request(url, "\n".join(rows).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(sent, timeout=60).close()  # noqa: S310 - ours

    def left() -> set[str]:
        return {json.loads(line)["_time"][:10] for line in stack.ask({"query": "* | uniq by (_time)"})}

    # on a slow host the store deletes while it is still filled, so its size alone says nothing
    until(lambda: len(left()) < 9 and size(stack.folder / "data") <= bound, 120)
    assert len(left()) >= 2
    assert f"{today:%Y-%m-%d}" in left()


def test_a_machine_that_floods_gets_its_share_and_harms_no_other(stack: Stack) -> None:
    """A pod writes what no one can compress, far above the share of its machine."""
    share = 400_000
    stack.start_store()
    stack.start_front(one_per_minute=share)
    made = random.Random(2)  # noqa: S311 - a fixed sequence
    flood, quiet = stack.log("vision", "flood"), stack.log("speech", "quiet")
    quiet.write_text(written("begin"))
    stack.start_collector()
    until(lambda: shown(stack, "speech", "quiet") == ["begin"])
    began = time.monotonic()
    with flood.open("a") as more:
        for _ in range(40):
            more.write(written(*filler(made, 1000)))
            time.sleep(0.5)
    stack.get("/internal/force_flush")
    stored = len(stack.ask({"query": "* | fields file"}))
    passed = (time.monotonic() - began) / 60
    # half of the text is entropy; a block of a second may pass at once
    assert 0 < stored * 100 <= share * (passed + 1) * 1.5 + 1_000_000
    assert stored < 30_000
    assert size(stack.folder / "data") <= 2 * share * (passed + 1) + 2_000_000
