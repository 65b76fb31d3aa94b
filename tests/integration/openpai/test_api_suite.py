"""OpenPAI's own API test against a console on a real API server: what fails is in expected-failures.yaml."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import yaml

from tests.integration.control_plane import Api
from tests.integration.openpai.api_suite import NEEDS_SUITE, run_suite
from tests.integration.openpai.conftest import Console, console, quickstart

__all__ = ["console", "quickstart"]
LEAST = 60
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2"
EXPECTED = Path(__file__).with_name("expected-failures.yaml")


def expected() -> dict[str, str]:
    """Full title of a case -> reason of its failure."""
    return {
        f"{path} {case}": entry["reason"]
        for entry in yaml.safe_load(EXPECTED.read_text())
        for path, cases in entry["cases"].items()
        for case in cases
    }


@contextmanager
def collector(api: Api, seconds: float) -> Iterator[None]:
    """Ends deleted jobs after some time, as controllers do once the pods are gone. There are none here."""
    done, since = Event(), dict[str, float]()

    def collect() -> None:
        while not done.wait(0.2):
            with suppress(OSError):  # the job is gone, or the API server does not answer: it is asked again
                for one in api.ask("GET", f"{JOBSETS}/jobsets")["items"]:
                    place = one["metadata"]
                    if "deletionTimestamp" in place and time.monotonic() > since.setdefault(place["uid"], soon()):
                        path = f"{JOBSETS}/namespaces/{place['namespace']}/jobsets/{place['name']}"
                        api.ask("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")

    def soon() -> float:
        return time.monotonic() + seconds

    thread = Thread(target=collect)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_each_expected_failure_has_a_reason() -> None:
    found = expected()
    assert all(reason.strip() for reason in found.values())
    assert len(found) <= 73 - LEAST


@NEEDS_SUITE
def test_the_suite_fails_as_expected(console: Console, tmp_path: Path) -> None:
    """A failure that is not in the list fails, and so does a listed case that passes."""
    listed = expected()
    paths = [path for entry in yaml.safe_load(EXPECTED.read_text()) for path in entry["cases"]]
    with collector(console.admin, 1):
        result = run_suite(console, tmp_path / "suite", "root", paths)
    assert len(set(result.cases)) == len(result.cases) == 73
    failed = set(result.cases) - result.passed
    assert failed - set(listed) == set(), result.errors
    assert set(listed) - failed == set(), "passes: remove it from expected-failures.yaml"
    assert len(result.passed) >= LEAST
