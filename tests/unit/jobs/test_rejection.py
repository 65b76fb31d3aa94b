"""What a webhook or the API server says of a job -> the field of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.documents.problem import dotted
from pai_install.jobs.kubernetes import KubernetesFile
from pai_install.jobs.read import read_job_text
from pai_install.jobs.rejection import rejected_field

TEXT = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: mpi}
spec:
  minAvailable: 9
  tasks:
    - replicas: 1
      name: master
      template: {spec: {containers: [{name: a, image: b}]}}
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("denied the request: spec.tasks[0].replicas: Invalid value: 0", "spec.tasks[0].replicas"),
        ("spec.task[0].template.spec.containers[0].image: Required value;", "spec.tasks[0].template.spec.containers[0].image"),  # noqa: E501
        ("spec.tasks[0].maxRetry: Invalid value", "spec.tasks[0]"),
        ("spec.tasks[7].name: Duplicate value", "spec.tasks"),
        ("job 'minAvailable' should not be greater than total replicas in tasks", "spec.minAvailable"),
        ("minAvailable should not be greater than total replicas", "spec.minAvailable"),
        ("pods is forbidden: exceeded quota", ""),
        ("spec: Invalid value", ""),
    ],
)  # fmt: skip
def test_field_that_is_named_is_found(words: str, expected: str) -> None:
    job = read_job_text(TEXT, Path("job.yaml")).job
    assert isinstance(job, KubernetesFile)
    assert dotted(rejected_field(job.jobs[0].document, words)) == expected


def test_hostile_words_end_soon() -> None:
    job = read_job_text(TEXT, Path("job.yaml")).job
    assert isinstance(job, KubernetesFile)
    assert rejected_field(job.jobs[0].document, "spec" + ".a" * 100_000 + "[99999]") == ()
