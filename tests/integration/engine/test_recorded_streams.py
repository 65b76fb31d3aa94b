"""The recorded streams that the unit tests replay are what Ansible really says.

`PAI_RECORD=1 pytest tests/integration/engine/test_recorded_streams.py` writes them anew. Only what the installer
reads is kept, and nothing of this machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pai_install.engine.base import Event, RunRequest
from pai_install.engine.events import RawEvent, read_stream

STREAMS = Path(__file__).parents[2] / "unit" / "engine" / "streams"
UNREACHABLE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
EVENTS = (
    "runner_on_ok", "runner_on_failed", "runner_on_skipped", "runner_on_unreachable", "runner_item_on_ok",
    "playbook_on_task_start", "playbook_on_stats", "pai_exit",
)  # fmt: skip
KEPT = (
    "task", "role", "task_path", "host", "duration", "res", "ignore_errors", "failures", "dark", "rescued", "name",
)  # fmt: skip
DROPPED = (
    "uid", "gid", "owner", "group", "size", "start", "end", "delta", "src", "exception", "secontext", "invocation",
)  # fmt: skip


@pytest.mark.parametrize(
    ("stream", "playbook"),
    [
        ("ok", "ok.yml"),
        ("again", "ok.yml"),
        ("check", "ok.yml"),
        ("failed", "failed.yml"),
        ("unreachable", "unreachable.yml"),
        ("no_log", "no_log.yml"),
        ("findings", "findings.yml"),
        ("facts", "facts.yml"),
    ],
)
def test_recording_is_what_ansible_says(bench: Any, monkeypatch: Any, stream: str, playbook: str) -> None:
    inventory = bench.inventory("a", "b", "c", **({"c": UNREACHABLE} if stream == "unreachable" else {}))
    for name in "abc" if stream in ("again", "check") else "":
        (bench.folder / f"{name}.conf").write_text(f"password = {bench.password}\n")
        (bench.folder / f"{name}.conf").chmod(0o600)
    if stream == "check":
        (bench.folder / "a.conf").write_text("password = old\n")
    request = RunRequest(playbook, inventory, check=stream == "check")

    raws: list[RawEvent] = []
    monkeypatch.setattr("pai_install.engine.runner.read_stream", lambda live: read_stream(_tee(live, raws)))
    with bench.engine() as engine:
        found = list(engine.run(request))

    lines = [json.dumps(_clean(raw, bench)) for raw in raws if raw.get("event") in EVENTS]
    recording = STREAMS / f"{stream}.jsonl"
    if "PAI_RECORD" in os.environ:
        recording.write_text("\n".join(lines) + "\n")
    assert _shape(found) == _shape(read_stream(json.loads(line) for line in recording.read_text().splitlines()))


def _tee(live: Iterable[RawEvent], raws: list[RawEvent]) -> Iterator[RawEvent]:
    for raw in live:
        raws.append(raw)
        yield raw


def _shape(events: Iterable[Event]) -> Counter[tuple[Any, ...]]:
    """Hosts answer in any order: the same events in another order are the same."""
    return Counter((event.kind, event.task, event.host, event.returncode) for event in events)


def _clean(raw: RawEvent, bench: Any) -> Any:
    data = {key: value for key, value in raw.get("event_data", {}).items() if key in KEPT}
    kept = {key: value for key, value in raw.items() if key in ("event", "rc")}
    text = json.dumps({**kept, "event_data": _without(data)} if data else kept)
    for path, word in ((bench.folder, "/site"), (bench.content, "/content"), (Path(sys.executable).parent, "/bin")):
        text = text.replace(str(path), word)
    return json.loads(text)


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in DROPPED}
    return [_without(item) for item in value] if isinstance(value, list) else value
