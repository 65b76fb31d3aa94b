"""Every form of the report, whole, beside the tests: PAI_RECORD=1 writes the files anew; read the difference."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from pai_install.report.console import show_outcome
from pai_install.report.data import run_report
from pai_install.report.html import html
from pai_install.report.markdown import markdown
from pai_install.report.model import Outcome
from tests.unit.report.outcomes import FINE, TROUBLED

GOLDEN = Path(__file__).parent / "golden"


def console(outcome: Outcome) -> str:
    stream = io.StringIO()
    show_outcome(outcome, stream)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


FORMS = {
    "json": lambda outcome: json.dumps(run_report(outcome).as_json(), indent=2) + "\n",
    "md": lambda outcome: markdown(outcome, title="lab, 20260301T120000Z"),
    "html": lambda outcome: html(outcome, title="lab, 20260301T120000Z"),
    "txt": console,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "outcome"), [("fine", FINE), ("troubled", TROUBLED)])
def test_report(name: str, outcome: Outcome, form: str) -> None:
    path = GOLDEN / f"{name}.{form}"
    text = FORMS[form](outcome)
    if "PAI_RECORD" in os.environ:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
