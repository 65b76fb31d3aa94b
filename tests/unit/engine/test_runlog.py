"""Ansible's output is kept without secrets and terminal codes."""

from __future__ import annotations

import stat
from pathlib import Path

from pai_install.engine.runlog import RunLog
from pai_install.redact import MASK, Redactor


def test_log_is_private_masked_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "ansible.log"
    for text in ("\x1b[0;32mok: hunter22\x1b[0m\r\n", "again"):
        with RunLog(path, Redactor(["hunter22"])) as log:
            log.write(text)
    assert path.read_text() == f"ok: {MASK}\nagain\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_tail_holds_the_last_lines_also_without_a_file() -> None:
    with RunLog(None, Redactor(())) as log:
        log.write("")
        log.write("\n")
        for number in range(100):
            log.write(f"line {number}")
        assert log.tail().splitlines()[0] == "line 70"
        assert log.tail().splitlines()[-1] == "line 99"
