"""The cache's counters as the distribution registry prints them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from syrupy.assertion import SnapshotAssertion

Library = Callable[[str], Any]

# recorded from distribution 3.1.2 in proxy mode, /metrics of its debug listener
PRINTED = """# HELP registry_proxy_hits_total The number of total proxy request hits
# TYPE registry_proxy_hits_total counter
registry_proxy_hits_total{type="blob"} 2
registry_proxy_hits_total{type="manifest"} 1
# HELP registry_proxy_misses_total The number of total proxy request misses
# TYPE registry_proxy_misses_total counter
registry_proxy_misses_total{type="blob"} 2
registry_proxy_misses_total{type="manifest"} 1
registry_proxy_pulled_bytes_total{type="blob"} 1.095055e+06
registry_proxy_pulled_bytes_total{type="manifest"} 405
registry_proxy_pushed_bytes_total{type="blob"} 2.19011e+06
registry_proxy_pushed_bytes_total{type="manifest"} 810
registry_proxy_requests_total{type="blob"} 4
registry_storage_action_seconds_count{action="Stat"} 12
"""


def test_counters_of_blobs_and_manifests_are_one_number(library: Library, snapshot: SnapshotAssertion) -> None:
    module = library("pai_registry_status")
    seen = module.counters(PRINTED)
    assert (seen["hits"], seen["misses"]) == (3.0, 3.0)
    assert module.words(seen) == snapshot


def test_what_is_no_metrics_page_counts_nothing(library: Library, snapshot: SnapshotAssertion) -> None:
    module = library("pai_registry_status")
    assert module.words(module.counters("<html>")) == snapshot


def test_size_of_what_is_kept(library: Library, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").write_bytes(b"x" * 100_000)
    assert 90_000 < library("pai_registry_status").size(str(tmp_path)) < 200_000
