"""`job list` and `job show` of clusters with hostile objects: each bad object affects no other job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import jsonschema  # type: ignore[import-untyped]
import pytest

from pai_install.agents.common.records import Record, Removed, state_map
from pai_install.agents.job_recorder.objects import kept_job, kept_pod
from pai_install.cluster.http import ApiResponse
from pai_install.cluster.http_api import safe_object
from pai_install.jobs.anomalies import abnormal, unknown
from pai_install.jobs.history import completed, kept_jobs
from pai_install.jobs.state import JobState, states_of
from pai_install.json_schema import schema_of
from pai_install.kube.objects import rows
from pai_install.report.job_models import JobsReport
from pai_install.report.jobs import job_text, jobs_report, jobs_text
from pai_install.scheduling.model import Backend
from tests.unit.agents.hostile import DEEP, VERY_DEEP, Object, encoded, hostile
from tests.unit.jobs.test_anomalies import LIMITS
from tests.unit.jobs.test_state import holds, job, pod

NOW = datetime(2026, 1, 2, tzinfo=UTC)
BACKENDS: Sequence[Backend] = ("kueue", "volcano", "hived", "default")


def named(item: Object, name: str, **notes: str) -> Object:
    metadata = {**item["metadata"], "name": name, "uid": f"uid-{name}", "namespace": "vision"}
    metadata["annotations"] = {**metadata.get("annotations", {}), **notes}
    return {**item, "metadata": metadata}


def listed(items: Sequence[Object]) -> list[Object]:
    """Objects as the API server lists them."""
    answer = ApiResponse("master", 200, encoded({"kind": "List", "items": items}))
    return [dict(item) for item in rows(safe_object(answer, "list jobs").get("items"))]


def shown(jobs: Sequence[JobState]) -> None:
    """All forms of `job list`, `job list --abnormal`, and `job show`."""
    odd = abnormal(jobs, NOW, lambda _: LIMITS)
    assert unknown(jobs, NOW) is not None
    assert jobs_text(jobs)
    jsonschema.validate(json.loads(json.dumps(jobs_report((*jobs, *odd)).as_json())), schema_of(JobsReport))
    assert all(map(job_text, jobs))


@pytest.mark.parametrize("note", ["pai-install/roles", "pai-install/warned"])
@pytest.mark.parametrize("value", [DEEP, '{"a":' * 50_000, '{"worker": ' + "[" * 3000 + "]" * 3000 + "}", "[1]", "7"])
def test_annotation_of_one_job_hides_no_other(note: str, value: str) -> None:
    jobs = states_of(listed([named(job(), "bad", **{note: value}), named(job(), "good")]), (), ())
    assert {one.label for one in jobs} == {"bad", "good"}
    shown(jobs)


def test_a_negative_number_of_gpus_is_none() -> None:
    """A member writes the annotation; the soak found that it broke the published form."""
    names = [part["name"] for part in job()["spec"]["replicatedJobs"]]
    note = json.dumps({name: {"gpus": -1} for name in names})
    jobs = states_of(listed([named(job(), "bad", **{"pai-install/roles": note})]), (), ())
    assert [role.gpus for one in jobs for role in one.roles] == [0] * len(names)
    shown(jobs)


def test_deeply_nested_object_hides_no_other() -> None:
    jobs = states_of(listed([named({**job(), "status": VERY_DEEP}, "bad"), named(job(), "good")]), (), ())
    assert {one.label for one in jobs} == {"bad", "good"}


def test_forged_and_deeply_nested_records_are_not_read() -> None:
    record = state_map(Record(kept_job(named(job(), "kept")), {}, Removed(1.0)))
    deep = {**record, "data": {"record": DEEP}}
    other = {**record, "metadata": {**record["metadata"], "name": "job-other"}}
    elsewhere = {**record, "metadata": {**record["metadata"], "namespace": "speech"}}
    assert [one.job.label for one in kept_jobs(listed([deep, other, elsewhere, record]))] == ["kept"]


def feed(count: int) -> None:
    """The reading functions, with so many hostile objects."""
    jobs = [named(job(backend), "seed") for backend in BACKENDS]
    pods = [pod("workers", 0), pod("ps", 1, "Failed", state={"terminated": {"exitCode": 3}})]
    said = [{"kind": "Workload", "metadata": jobs[0]["metadata"], "status": {"conditions": [holds("Evicted", "so")]}}]
    record = state_map(Record(kept_job(jobs[0]), {"0": kept_pod(pods[0])}, Removed(1.0)))
    for number in range(count // 400 + 1):
        bad_jobs, bad_pods, bad_said, bad_records = (
            listed(list(hostile(seeds, 100, 4 * number + place)))
            for place, seeds in enumerate((jobs, pods, said, [record]))
        )
        found = states_of([*bad_jobs, named(job(), "good")], bad_pods, bad_said)
        assert "good" in {one.label for one in found}
        kept = kept_jobs([*bad_records, record])
        assert any(one.record == record["metadata"]["name"] for one in kept)
        shown((*found, *(one.job for one in kept)))
        shown([completed(one, kept[0]) for one in found])


def test_job_list_takes_hostile_objects() -> None:
    feed(2000)


@pytest.mark.soak
def test_job_list_takes_100000_hostile_objects() -> None:
    feed(100_000)
