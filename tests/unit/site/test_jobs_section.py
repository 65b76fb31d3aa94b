"""What is kept of jobs, as services-configuration.yaml says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.site.load import load_site, read_site

from .sites import write_site


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
        ("{unqueued: {cores: 4, memory: 8Gi}}\nscheduler: {type: kueue}", "1:8 the limit is one of each group"),
        ("{device-share-percent: 50}", "1:8 50 is not from 100 to 10000; write a percentage"),
        ("{device-share-percent: 150}", "1:8 the limit has no effect: this site has no virtual clusters"),
        ("{device-share-percent: 0}\nscheduler: {type: kueue}", "1:8 the limit has no effect: Kueue counts"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, text: str, says: str) -> None:
    found = read_site(write_site(tmp_path, services=f"jobs: {text}\n"))
    (told,) = [f"{item.line}:{item.column} {item.message}; {item.remedy}" for item in found.problems]
    assert told.startswith(says)
