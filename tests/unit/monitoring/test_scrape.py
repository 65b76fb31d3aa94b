"""What Prometheus keeps: every metric that an alert or a page reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import pytest

from pai_install.monitoring.dashboards import dashboards
from pai_install.monitoring.rules import RECORDED, alerts
from pai_install.monitoring.scrape import KEPT
from pai_install.monitoring.state import state_arguments

# strings, durations, labels and thresholds in braces, and labels after modifiers
LABELS = re.compile(
    r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}[smhd]?|\b[0-9]\S*|\b(by|on|ignoring|group_left|group_right)\s*\([^)]*\)'
)
FUNCTION = re.compile(r"\b\w+\s*(?=\()")
WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
OPERATORS = {"and", "or", "unless", "offset"}
# made by Prometheus itself
OWN = {"up", "ALERTS"}


def expressions() -> Iterator[tuple[str, str]]:
    """Yields the place of each expression, and its text."""
    for name, alert in chain.from_iterable(group.items() for group in alerts().values()):
        yield name, alert.when
    for name, board in dashboards().items():
        yield from ((f"{name}/{panel.title}", query) for panel in board.panels for query in panel.queries.values())
    yield from RECORDED.items()


def kept(metric: str) -> bool:
    """Whether the regular expression of a job keeps it. Prometheus matches the whole name."""
    allowed = next(word for word in state_arguments(volcano=True) if word.startswith("--metric-allowlist="))
    if metric in allowed.partition("=")[2].split(","):
        return True
    return any(re.fullmatch("|".join(names), metric) for names in KEPT.values() if names)


@pytest.mark.parametrize(
    "query", [query for board in dashboards().values() for panel in board.panels for query in panel.queries.values()]
)
def test_a_value_that_is_not_known_is_no_zero_on_a_page(query: str) -> None:
    # Prometheus makes the series of alerts itself, so that none means no alert
    assert "vector(" not in query or query.startswith("count(ALERTS{")


def test_only_labels_of_jobs_become_labels_of_metrics() -> None:
    """Users write annotations, and no alert reads any."""
    lists = [word for word in state_arguments() if word.startswith(("--metric-labels", "--metric-annotations"))]
    assert [word.partition("=")[2].partition("=")[0] for word in lists] == ["pods"]


@pytest.mark.parametrize(("place", "expression"), list(expressions()))
def test_an_expression_reads_metrics_that_are_kept(place: str, expression: str) -> None:
    metrics = set(WORD.findall(FUNCTION.sub(" ", LABELS.sub(" ", expression)))) - OPERATORS
    assert metrics or place == "Watchdog", place
    assert not [name for name in metrics - OWN - RECORDED.keys() if not kept(name)], place
