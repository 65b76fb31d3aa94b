"""1,000 nodes with 8 GPUs and 10,000 jobs in Chromium: pages are small, accessible, and one finds things in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.browser.driver import MOST, driven, person
from tests.perf.console_cluster import PASSWORD, BigConsole, big_console

MEMBER = "user3"
PAGES = (
    *("/", "/jobs", "/jobs?offset=4900", "/nodes", "/nodes?offset=900", "/nodes/gpu-7"),
    *("/virtual-clusters", "/virtual-clusters/research", "/virtual-clusters/default"),
)
JOB = "/jobs/user3~job_3"


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BigConsole]:
    with big_console(tmp_path_factory.mktemp("big")) as made:
        yield made


@pytest.fixture(scope="module")
def seen(big: BigConsole, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser found."""
    people = {
        "root": {**person("root", PASSWORD), "pages": [*PAGES, JOB, "/health"]},
        "member": {**person(MEMBER, PASSWORD), "pages": ["/", "/jobs", "/nodes", "/virtual-clusters/research", JOB]},
    }
    return driven("big.js", {"url": big.url, "people": people}, tmp_path_factory.mktemp("home"))


def test_all_pages_open(seen: Any) -> None:
    assert set(seen["status"].values()) == {200}
    assert (seen["errors"], seen["foreign"]) == ([], [])


def test_pages_are_small(seen: Any) -> None:
    assert {address: size for address, size in seen["sizes"].items() if size > MOST} == {}


def test_pages_are_accessible_and_fit(seen: Any) -> None:
    assert (seen["violations"], seen["wide"]) == ([], [])


@pytest.mark.parametrize("who", ["root", "member"])
def test_people_find_nodes_and_jobs(seen: Any, who: str) -> None:
    texts = seen["texts"]
    assert "Nodes 101 to 200" in texts[f"{who} next"]
    assert "gpu-99" in texts[f"{who} nodes"]
    assert "gpu-98" not in texts[f"{who} nodes"]
    assert "job_975" in texts[f"{who} jobs"]
    assert "worker" in texts[f"{who} job"]
