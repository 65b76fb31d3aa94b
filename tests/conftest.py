"""What holds for all tests."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from syrupy.assertion import SnapshotAssertion

from tests import leftovers, suites

# what differs from run to run, and its name in recorded texts
VARYING = (
    (r"\b20\d{6}T\d{6}Z(-\d+)?\b", "RUN"),
    (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00", "TIME"),
    (r"\bprocess \d+\b", "process N"),
    (r"\b\d+\.\d s\b", "N s"),
    (r'"duration_s": [\d.]+', '"duration_s": N'),
)
# The machines that run the tests are shared: how long an example takes says nothing about our code.
settings.register_profile(
    "shared",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    max_examples=int(os.environ.get("PAI_FUZZ_EXAMPLES", "100")),
    derandomize=True,
)
settings.load_profile("shared")


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option for all recorded texts: those of syrupy, and tests/golden/site/invalid."""
    parser.addoption("--update-snapshots", action="store_true", dest="update_snapshots", help="Rewrite recorded texts")


def pytest_configure() -> None:
    """Before the workers start."""
    suites.note_cold()
    suites.note_seed()


def pytest_report_header() -> str:
    """The seed repeats a run's choice of cases."""
    return f"{suites.SEED}={os.environ[suites.SEED]}"


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """A test that changed it would give the files of all later tests of its worker other modes."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    after = os.umask(before)
    assert after == before


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion, tmp_path: Path) -> SnapshotAssertion:
    """Recorded texts: in __snapshots__ beside the test; `pytest --update-snapshots` writes them."""

    def stable(data: Any, **_: Any) -> Any:
        if not isinstance(data, str):
            return data
        text = data.replace(str(tmp_path), "TMP")
        for pattern, name in VARYING:
            text = re.sub(pattern, name, text)
        return text

    return snapshot.with_defaults(matcher=stable)


def pytest_sessionstart(session: pytest.Session) -> None:
    """A run that was ended by force left its lab behind, and its addresses are this run's."""
    if not hasattr(session.config, "workerinput"):
        leftovers.remove_leftovers()


def pytest_make_parametrize_id(val: object) -> str | None:
    return suites.name_of_case(val)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long suites begin first."""
    suites.arrange(items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> suites.Groups:
    """Several workers (-n) share the tests so that each group of them stays together."""
    config.option.loadscopereorder = False
    return suites.Groups(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How long each suite took, before pytest's own last lines."""
    spent = [
        suites.Spent(suites.path_of(report.nodeid), report.when == "call", report.duration)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    if spent:
        terminalreporter.section("time of each suite")
        for line in suites.table(spent):
            terminalreporter.write_line(line)
