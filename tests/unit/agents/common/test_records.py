"""Records as ConfigMaps: bounded, and read back by `job show` as the job was."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.agents.common.records import JOB, RECORD, Preemption, Record, Removed, logs_map, read_record, state_map
from pai_install.agents.job_recorder.objects import MARKS, USER, kept_job, kept_pod
from pai_install.jobs.compile import names
from pai_install.jobs.history import completed, kept_jobs, selector
from pai_install.jobs.state import JobState, states_of
from pai_install.report.jobs import job_text
from pai_install.schedulers.jobs import objects_of
from pai_install.scheduling.job_kinds import KINDS
from pai_install.scheduling.model import Backend
from pai_install.site.groups import RECORD_LABEL
from tests.unit.agents.job_recorder.objects import Object, complete, job, pod
from tests.unit.jobs.examples import servers_and_workers, single, somewhere, whole
from tests.unit.schedulers.test_defaulting import JOB as NATIVE_JOB
from tests.unit.schedulers.test_defaulting import POD, TASKS, TFJOB, made

MOST = 1024 * 1024


def recorded(own: Object, *pods: Object, removed: Removed | None = None) -> Object:
    """The ConfigMap of a job with these pods, as the API server gives it back."""
    found = Record(kept_job(own), {str(number): kept_pod(it) for number, it in enumerate(pods)}, removed)
    again: Object = json.loads(json.dumps(state_map(found)))
    return again


def read(item: Object) -> JobState:
    (kept,) = kept_jobs([item])
    return kept.job


def test_labels_are_those_that_the_rest_of_the_product_looks_for() -> None:
    assert (USER, RECORD, JOB) == (names.USER, RECORD_LABEL, names.JOB)
    marks = {(kind.group, kind.marks.job, kind.marks.role, kind.marks.numbers) for kind in KINDS if kind.marks}
    assert set(MARKS) == marks


COMPILED = [
    pytest.param(of, backend, id=f"{of.name}-{backend}")
    for backend in ("kueue", "volcano", "default", "hived")
    for of in (single(), whole(servers_and_workers()))
]


@pytest.mark.parametrize(("of", "backend"), COMPILED)
def test_what_is_kept_of_an_object_says_the_same_of_it(of: Any, backend: Backend) -> None:
    (own,) = (it for it in objects_of(of, somewhere(backend)) if "Set" in it["kind"] or it["kind"] == "Job")
    same(dict(own))


@pytest.mark.parametrize(
    ("text", "backend"), [(NATIVE_JOB, "kueue"), (TASKS, "volcano"), (TFJOB, "volcano"), (POD, "volcano")]
)
def test_and_of_kubernetes_own(text: str, backend: Backend) -> None:
    same(made(text, backend))


def same(own: Object) -> None:
    (before,), (after,) = states_of([own], (), ()), states_of([kept_job(own)], (), ())
    assert after == before
    assert sum(role.wanted for role in after.roles) > 0
    assert "command" not in json.dumps(kept_job(own)), "and no more than that"


def test_a_job_that_ended_and_went() -> None:
    pods = (pod(0, phase="Succeeded", code=0), pod(1, phase="Succeeded", code=0))
    found = read(recorded(job(status=complete()), *pods, removed=Removed(1767225700)))
    assert (found.state, found.gone, found.user) == ("SUCCEEDED", "2026-01-01T00:01:40Z", "alice")
    assert [(one.index, one.machine, one.exit_code, one.gone) for one in found.instances] == [
        (0, "g1", 0, True),
        (1, "g1", 0, True),
    ]
    assert [role.gpus for role in found.roles] == [2]


def test_a_job_that_was_stopped(snapshot: SnapshotAssertion) -> None:
    found = read(recorded(job(), pod(0), removed=Removed(1767225700, "root", "the machine is needed")))
    assert (found.state, found.stopped_by, found.stopped_why) == snapshot
    assert [one.state for one in found.instances] == ["STOPPED"], "what ran ran until then"
    just_now = read(recorded(job(), pod(0)))
    assert (just_now.state, just_now.gone) == ("STOPPED", "a moment ago"), "the recorder has not heard of it yet"


def test_pods_of_a_job_that_is_there_but_has_ended() -> None:
    ended = [pod(0, phase="Succeeded", code=0), pod(1, phase="Failed", code=1)]
    (kept,) = kept_jobs([recorded(job(status=complete()), *ended)])
    (now,) = states_of([job(status=complete())], [pod(1, phase="Succeeded", code=0)], ())
    whole_now = completed(now, kept)
    assert [(one.index, one.exit_code, one.gone) for one in whole_now.instances] == [(0, 0, True), (1, 0, False)]


def test_read_back_by_the_recorder() -> None:
    record = Record(kept_job(job()), {"/0": kept_pod(pod(0))}, Removed(5.0, "root", "because"))
    assert read_record(json.loads(json.dumps(state_map(record)))) == record
    assert read_record(state_map(replace(record, removed=None))) == replace(record, removed=None)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "3", '{"version": 2}', '{"version": 1}', '{"version": 1, "job": {"kind": "Job"}}']
)
def test_what_is_no_record_is_none(content: str) -> None:
    metadata = {"name": "job-a", "namespace": "vision"}
    item = {"kind": "ConfigMap", "metadata": metadata, "data": {"record": content}}
    assert read_record(item) is None
    assert kept_jobs([item, {"kind": "ConfigMap", "metadata": metadata}]) == ()


def test_a_record_speaks_for_its_own_namespace_alone() -> None:
    item = recorded(job(), removed=Removed(5.0))
    item["metadata"]["namespace"] = "speech"
    assert kept_jobs([item]) == ()


def test_records_fit_in_their_objects() -> None:
    wide = job(status={"conditions": [{"type": "X", "message": "x" * 99_999}], "uncountedTerminatedPods": "x" * 99_999})
    wide["spec"]["template"]["spec"]["containers"] *= 2000
    pods = {str(number): kept_pod(pod(number, phase="Failed", code=1)) for number in range(5000)}
    item = state_map(Record(kept_job(wide), pods))
    assert len(json.dumps(item)) < MOST
    body = json.loads(item["data"]["record"])
    assert body["left_out"] == 5000 - len(body["pods"]) > 0
    assert len(json.dumps(logs_map(job(), {str(number): "x" * 16_384 for number in range(100)}))) < MOST


def test_a_record_has_the_label_by_which_it_is_found() -> None:
    for name in ("train", "a" * 80, "a" * 62 + ".b"):
        item = state_map(Record(kept_job(job(name))))
        labels = ",".join(f"{key}={item['metadata']['labels'][key]}" for key in (RECORD, JOB))
        assert selector(name) == labels
        assert len(item["metadata"]["labels"][JOB]) <= 63
        assert USER not in item["metadata"]["labels"], "what has a user's label is that user's to change"


def test_volcanos_restarts_after_a_preemption_are_no_retries() -> None:
    own = dict(objects_of(whole(servers_and_workers()), somewhere("volcano"))[0])
    own["metadata"] = {**own["metadata"], "uid": "job-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    own["status"] = {"state": {"phase": "Running"}, "retryCount": 3}
    taken = tuple(Preemption(f"2026-01-01T0{hour}:00:00Z", "reclaim", "vision/owner") for hour in (1, 2))
    (kept,) = kept_jobs([json.loads(json.dumps(state_map(Record(kept_job(own), {}, None, taken))))])
    (live,) = states_of([own], [], [])
    shown = completed(live, kept)
    assert (shown.retries, shown.preemptions) == (1, taken)
    assert all(one.by in job_text(shown) and one.at in job_text(shown) for one in taken)
