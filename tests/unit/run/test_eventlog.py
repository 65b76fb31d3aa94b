"""Every finished task is one JSON line in a private file."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from pai_install.run.eventlog import EventLog


def test_tasks_are_written_and_secrets_are_not(tmp_path: Path, kit: Any) -> None:
    path = tmp_path / "events.jsonl"
    events = kit.done(kit.event("ok", "one", out=kit.secret), kit.event("failed", "two", msg="x"), failures=["two"])
    with EventLog(path) as log:
        kit.run(kit.plan(kit.phase("base", "one", "two")), kit.engine({"base.yml": events}), [log])
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["host"], line["outcome"]) for line in written] == [("one", "ok"), ("two", "failed")]
    assert written[0]["result"] == {"out": "********"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
