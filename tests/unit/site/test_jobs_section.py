"""What is kept of jobs, as services-configuration.yaml says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.site.load import CONFIG, LAYOUT, SERVICES, load_site, read_site
from pai_install.site_edit.starter import STARTER_LAYOUT, STARTER_SERVICES, starter_config

from .sites import write_site

LAYOUTS = Path(__file__).parents[3] / "layouts"


def test_what_is_said_and_what_is_not(tmp_path: Path) -> None:
    kept = load_site(write_site(tmp_path, services="jobs: {keep-days: 30, log-kib: 4}\n")).site.services.job_records
    assert (kept.keep_days, kept.keep_per_group, kept.log_kib) == (30, 500, 4)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{keep-days: 400}", "1:8 400 is not from 0 to 365; write a number from 0 to 365"),
        ("{keep-per-group: 0}", "1:8 0 is not from 1 to 5000; write a number from 1 to 5000"),
        ("{log-kib: many}", "1:8 many is not a whole number"),
        ("{keep: 3}", "1:8"),
        ("{unqueued: {cores: 0, memory: 1Gi}}", "1:19 0 is not from 1 to 1000000; write a number from 1 to 1000000"),
        ("{unqueued: {cores: 4}}", "1:8 is required"),
        ("{unqueued: {cores: 4, memory: 1}}", "1:29 1 means 1 bytes; write it as Kubernetes does, e.g. 64Gi"),
        ("{unqueued: {cores: 4, memory: 8Gi}}", "1:8 pods have no queue without virtual clusters"),
        ("{device-share-percent: 50}", "1:8 50 is not from 100 to 10000; write a percentage"),
        ("{device-share-percent: 150}", "1:8 the limit has no effect: this site has no virtual clusters"),
        ("{device-share-percent: 0}\nscheduler: {type: kueue}", "1:8 the limit has no effect: Kueue counts"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, text: str, says: str) -> None:
    found = read_site(write_site(tmp_path, services=f"jobs: {text}\n"))
    (told,) = [f"{item.line}:{item.column} {item.message}; {item.remedy}" for item in found.problems]
    assert told.startswith(says)


@pytest.mark.parametrize("layout", sorted(path.parent.name for path in LAYOUTS.glob("*/services-configuration.yaml")))
def test_a_layout_with_queues_limits_pods_outside_them(layout: str) -> None:
    services = load_site(LAYOUTS / layout).site.services
    limited = services.jobs is not None and services.jobs.unqueued is not None
    assert limited == (services.scheduler is not None)


def test_a_new_site_limits_pods_outside_queues(tmp_path: Path) -> None:
    for name, text in ((LAYOUT, STARTER_LAYOUT), (CONFIG, starter_config()), (SERVICES, STARTER_SERVICES)):
        (tmp_path / name).write_text(text)
    found = read_site(tmp_path)
    assert found.site is not None
    assert found.site.services.jobs is not None
    assert found.site.services.jobs.unqueued is not None
    assert [problem for problem in found.problems if problem.path.startswith("jobs")] == []
