"""The documentation of reports is that of the code; PAI_RECORD=1 writes the table of causes anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pai_install.errors import ExitCode
from pai_install.report.explain import known_causes
from pai_install.report.model import HostStatus

PAGE = Path(__file__).parents[3] / "docs" / "reports.md"
MARK = "<!-- causes: written by tests/unit/report/test_docs.py -->\n"


def test_table_of_causes_is_the_codes() -> None:
    rows = "".join(f"| {known.cause} | {known.remedy} |\n" for known in known_causes())
    head, _, _ = PAGE.read_text().partition(MARK)
    expected = f"{head}{MARK}\n| Cause | What to do |\n|---|---|\n{rows}"
    if "PAI_RECORD" in os.environ:
        PAGE.write_text(expected)
    assert PAGE.read_text() == expected


def test_every_exit_code_and_status_is_explained() -> None:
    text = PAGE.read_text()
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {int(code) for code in ExitCode}
    assert set(re.findall(r"^\| `(\w+)` \| (?!.*\[schema\])", text, re.MULTILINE)) >= {
        status.value for status in HostStatus
    }
