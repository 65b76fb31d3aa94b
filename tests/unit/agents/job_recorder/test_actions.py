"""What is done about a job: the requests, and what refuses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.agents.common.api import JSON, ApiError, Client, with_token
from pai_install.agents.job_recorder.actions import Actor
from pai_install.agents.job_recorder.idle import WARNED, Action, Job, Lower, Stop, Warn
from pai_install.scheduling.model import PRIORITIES
from pai_install.users.recorder import MYSELF

JOB = Job(
    "uid-1",
    ("vision", "alice", "batch", "train"),
    "batch/jobs",
    "batch/v1",
    "train",
    "",
    "",
    notebook=False,
    warned=None,
)
POD = Job("uid-2", ("vision", "alice", "", "alone"), "pods", "v1", "alone", "", "", notebook=False, warned=None)
PATH = "/apis/batch/v1/namespaces/vision/jobs/train"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/vision/workloads"


@dataclass(frozen=True)
class Recorded(Client):
    """Keeps what it is asked. answers: by path; one that is an error is raised."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    def json(self, method: str, path: str, body: Any = None, kind: str = JSON, accept: str = JSON) -> Mapping[str, Any]:
        del accept
        self.asked.append((method, path, body))
        assert (kind == "application/merge-patch+json") == (method == "PATCH")
        found: Mapping[str, Any] = self.answers.get(path.partition("?")[0], {})
        if isinstance(found, ApiError):
            raise found
        return found


def done(action: Action, answers: Mapping[str, Any] | None = None) -> tuple[list[tuple[str, str, Any]], list[str]]:
    said: list[str] = []
    client = Recorded(with_token("http://none", Path("none"), None), answers=answers or {})
    Actor(client, said.append).run(action)
    return client.asked, said


def test_it_is_told_by_its_uid() -> None:
    asked, said = done(Warn(JOB, "so"))
    assert asked == [("PATCH", PATH, {"metadata": {"uid": "uid-1", "annotations": {WARNED: "so"}}})]
    assert said == []
    assert done(Warn(POD, None))[0][0][1] == "/api/v1/namespaces/vision/pods/alone"


def test_it_says_who_stops_it_before_it_is_deleted(snapshot: SnapshotAssertion) -> None:
    asked, said = done(Stop(JOB, "its GPUs did nothing"))
    notes = {"pai-install/stopped-by": MYSELF, "pai-install/stopped-why": "its GPUs did nothing"}
    options = {"propagationPolicy": "Background", "preconditions": {"uid": "uid-1"}}
    assert asked == [("PATCH", PATH, {"metadata": {"uid": "uid-1", "annotations": notes}}), ("DELETE", PATH, options)]
    assert said == snapshot


def test_what_kueue_made_of_it_gets_the_lowest_priority(snapshot: SnapshotAssertion) -> None:
    found = {"metadata": {"name": "job-train-1"}}
    answers = {"/apis/kueue.x-k8s.io": {"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2"}}}
    asked, _ = done(Lower(JOB, "so"), {**answers, WORKLOADS: {"items": [found]}})
    assert [path for _, path, _ in asked] == [
        "/apis/kueue.x-k8s.io",
        f"{WORKLOADS}?labelSelector=kueue.x-k8s.io%2Fjob-uid%3Duid-1",
        f"{WORKLOADS}/job-train-1",
        PATH,
    ]
    assert asked[2][2] == {"spec": {"priority": PRIORITIES["oppo"]}}
    asked, said = done(Lower(JOB, "so"), answers)
    assert len(asked) == 2
    assert said == snapshot


@pytest.mark.parametrize(("status", "says"), [(403, ["refused"]), (404, [])])
def test_what_is_refused_is_said_and_what_is_gone_is_not(status: int, says: list[str]) -> None:
    asked, said = done(Stop(JOB, "so"), {PATH: ApiError("refused", status)})
    assert len(asked) == 1
    assert said == says
