"""The page stands alone and takes no text for markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from pai_install.checks.report.html import ReportMachine
from pai_install.report.html import html
from pai_install.report.model import Counts, HostResult, HostStatus, Outcome, PhaseResult
from tests.unit.report.outcomes import FINE, TROUBLED

VOID = {"meta", "br", "link", "img"}


class Balance(HTMLParser):
    """Fails on a tag that is closed wrongly; keeps the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens a tag."""
        del attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Closes the last one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keeps text."""
        self.text += data


def test_page_is_well_formed_and_holds_the_words_as_words() -> None:
    page = Balance()
    page.feed(html(TROUBLED, title="<lab>"))
    assert page.open == []
    for words in ("<lab>", "base : Install <packages>", "``` & <b>", "Wait until it is done", "2 s | off"):
        assert words in page.text


def test_page_needs_nothing_from_elsewhere() -> None:
    page = html(TROUBLED, title="x")
    assert not re.search(r"src=|<link|@import|url\(|<script|https?://", page)
    # what lies beside the page in the run's folder
    assert set(re.findall(r'href="([^"]*)"', page)) == {"report.json", "report.md", "events.jsonl", "../"}


def test_failures_come_first_with_their_remedy_and_passes_are_folded_away() -> None:
    page = html(TROUBLED, title="x")
    order = [
        page.index(words) for words in ("Wait until it is done", "swapoff -a", "check chrony", "<h2>Machines</h2>")
    ]
    assert order == sorted(order)
    folded = html(FINE, title="x").partition("<h2>What passes</h2>")[2]
    assert folded.index("<details>") < folded.index("answers from a pod")


def test_machines_have_role_sku_and_address() -> None:
    page = html(TROUBLED, title="x", machines=[ReportMachine("one", ("worker",), "a100-8", "10.0.0.2")])
    row = page.partition('<td class="name">one</td><td class="one">worker</td>')[2]
    assert row.startswith('<td class="one">a100-8</td>')
    assert "10.0.0.2" in row
    assert "master" in page


def test_a_verdict_is_a_word_and_a_sign_not_a_colour_alone() -> None:
    page = html(TROUBLED, title="x")
    assert all(word in page for word in ("✖ FAIL", "! WARN", "✖ unreachable", "✖ failed"))


def test_thousand_machines_fit_on_a_page() -> None:
    hosts = {f"node-{number}": HostResult(HostStatus.OK, Counts(ok=9, tasks=9)) for number in range(1000)}
    phases = tuple(PhaseResult(f"p{number}", f"Phase {number}", 1.0, hosts) for number in range(8))
    page = html(Outcome(1.0, phases), title="large")
    assert page.count('<tr><td class="name">node-') == 1000
    assert len(page) < 1_500_000
