"""The documentation of reports explains all that a report says."""

from __future__ import annotations

import re
from pathlib import Path

from pai_install.errors import ExitCode
from pai_install.report.model import HostStatus

PAGE = Path(__file__).parents[3] / "docs" / "reports.md"


def test_every_exit_code_and_status_is_explained() -> None:
    text = PAGE.read_text()
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {int(code) for code in ExitCode}
    assert set(re.findall(r"^\| `(\w+)` \| (?!.*\[schema\])", text, re.MULTILINE)) >= {
        status.value for status in HostStatus
    }
