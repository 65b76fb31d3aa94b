"""Names for Kubernetes."""

from __future__ import annotations

import pytest

from pai_install.jobs.names import MAX_LABEL, kubernetes_name, too_long, unfit_job_name, unfit_role_name


@pytest.mark.parametrize(
    ("name", "job", "role"),
    [("Mnist_024", "", ""), ("024", "job-024", ""), ("_a", "a", "a"), ("a.b~", "a-b", "a_b"), ("__", "job", "role")],
)
def test_names_that_would_do(name: str, job: str, role: str) -> None:
    assert (unfit_job_name(name), unfit_role_name(name)) == (job, role)


def test_the_longest_name_of_a_pod() -> None:
    shorter = too_long("x" * 80, [("worker", 100)])
    assert len(f"{shorter}-worker-0-99-abcde") == MAX_LABEL
    assert too_long(shorter, [("worker", 100)]) == ""
    assert too_long("a", [("w" * 60, 1)]) == "-"
    assert kubernetes_name("A_b.c~d") == "a-b-c-d"
