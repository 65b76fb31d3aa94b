"""One table of kinds of jobs: what each reader of it makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.scheduling.job_kinds import KINDS, WITH_PODS, kind_of, template_ways, templates

POD = {"spec": {"containers": [{"name": "a"}]}}
# kind -> spec of an object with roles, and what they are: role, how many at once, and how many are numbered together
SPECS: dict[tuple[str, str], tuple[dict[str, Any], list[tuple[str, int, int]]]] = {
    ("batch/v1", "Job"): ({"parallelism": 3, "completions": 2, "template": POD}, [("", 2, 2)]),
    ("kubeflow.org/v1", "TFJob"): (
        {"tfReplicaSpecs": {"PS": {"template": POD}, "Worker": {"replicas": 2, "template": POD}}},
        [("ps", 1, 1), ("worker", 2, 2)],
    ),
    ("kubeflow.org/v1", "PyTorchJob"): (
        {"pytorchReplicaSpecs": {"Worker": {"replicas": 4, "template": POD}}},
        [("worker", 4, 4)],
    ),
    ("kubeflow.org/v1", "XGBoostJob"): (
        {"xgbReplicaSpecs": {"Master": {"template": POD}, "Worker": {"replicas": 2, "template": POD}}},
        [("master", 1, 1), ("worker", 2, 2)],
    ),
    ("kubeflow.org/v1", "PaddleJob"): (
        {"paddleReplicaSpecs": {"Worker": {"replicas": 2, "template": POD}}},
        [("worker", 2, 2)],
    ),
    ("kubeflow.org/v1", "JAXJob"): (
        {"jaxReplicaSpecs": {"Worker": {"replicas": 2, "template": POD}}},
        [("worker", 2, 2)],
    ),
    ("kubeflow.org/v1", "MPIJob"): ({"mpiReplicaSpecs": {"Launcher": {"template": POD}}}, [("launcher", 1, 1)]),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): (
        {
            "replicatedJobs": [
                {"name": "ps", "template": {"spec": {"template": POD}}},
                {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": POD}}},
            ]
        },
        [("ps", 1, 1), ("w", 6, 3)],
    ),
    ("batch.volcano.sh/v1alpha1", "Job"): ({"tasks": [{"replicas": 2, "template": POD}]}, [("0", 2, 2)]),
}


def test_every_kind_is_tried() -> None:
    assert set(SPECS) == {(kind.api, kind.name) for kind in KINDS}


@pytest.mark.parametrize("which", SPECS)
def test_where_the_pods_of_each_are(which: tuple[str, str]) -> None:
    spec, roles = SPECS[which]
    item = {"apiVersion": which[0], "kind": which[1], "spec": spec}
    kind = kind_of(item)
    assert kind is not None
    assert (kind.api, kind.name) == which
    parts = list(kind.parts(item))
    assert [(part.role, part.count, part.each) for part in parts] == roles
    assert all(part.template is POD for part in parts)
    for way in template_ways(item, kind):
        found: Any = item
        for key in way:
            found = found[key]
        assert found is POD
    assert len(list(template_ways(item, kind))) == len(roles)


def test_what_comes_in_turns_is_numbered_through() -> None:
    turns = {"parallelism": 2, "completions": 5, "template": POD}
    for item, total in (
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": turns}, 5),
        (
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "spec": {"replicatedJobs": [{"name": "w", "replicas": 3, "template": {"spec": turns}}]},
            },
            15,
        ),
    ):
        kind = kind_of(item)
        assert kind is not None
        (part,) = kind.parts(item)
        assert (part.count, part.total, part.each) == (total // 5 * 2, total, 5)


def test_a_pod_is_its_own_template() -> None:
    item = {"apiVersion": "v1", "kind": "Pod", **POD}
    kind = kind_of(item)
    assert kind is not None
    assert [part.template for part in kind.parts(item)] == [item]
    assert list(template_ways(item, kind)) == [()]


def test_what_is_no_job() -> None:
    assert kind_of({"apiVersion": "apps/v1", "kind": "Deployment"}) is None
    assert kind_of({"apiVersion": "example.com/v1", "kind": "Pod"}) is None


def test_templates_as_the_api_server_finds_them() -> None:
    entries, rows = "object.spec.tfReplicaSpecs", "object.spec.replicatedJobs"
    steps = ("r.template", "r.template.spec", "r.template.spec.template")
    assert [templates(kind) for kind in WITH_PODS if kind.name in {"Job", "TFJob", "JobSet", "Pod"}] == [
        "[object.spec.template]",
        f"has({entries}) ? {entries}.map(r, has({entries}[r].template), {entries}[r].template) : []",
        f"has({rows}) ? {rows}.map(r, {' && '.join(f'has({step})' for step in steps)}, {steps[-1]}) : []",
        "has(object.spec.tasks) ? object.spec.tasks.map(r, has(r.template), r.template) : []",
        "[object]",
    ]
