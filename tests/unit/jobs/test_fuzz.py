"""No file whatever gives a traceback: jobs, mutated, are read, checked against a site and shown.

PAI_FUZZ_EXAMPLES raises the number of examples (60).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pai_install.jobs.read import read_job_text
from pai_install.report.job import readings_report, readings_text
from pai_install.schedulers.job_check import check_job
from tests.unit.jobs.sites import research
from tests.unit.site.test_fuzz import Mutation, mutations

FILES = sorted(path for path in (Path(__file__).parent / "files").iterdir())


@settings(
    max_examples=int(os.environ.get("PAI_FUZZ_EXAMPLES", "60")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(path=st.sampled_from(FILES), changes=st.lists(mutations, min_size=1, max_size=4))
def test_mutated_files_never_give_a_traceback(path: Path, changes: list[Mutation]) -> None:
    data = path.read_bytes()
    for change in changes:
        data = change(data)
    reading = read_job_text(data.decode("utf-8", errors="replace"), path)
    checked = check_job(reading, research(), "Vision_1")
    for one in (reading, checked):
        assert one.job is not None or any(problem.is_error for problem in one.problems)
        assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in one.problems)
    assert "hunter2" not in json.dumps(readings_report([checked]).as_json()) + readings_text([checked])
