"""Pods outside queues have a limit of cores and memory per group, with every scheduler, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from pai_install.jobs.code import StoredCode
from pai_install.jobs.code_pod import owned, upload_pod
from pai_install.jobs.place import Claim, JobPlace
from pai_install.scheduling.admission import clusters_at, priorities_at
from pai_install.scheduling.job_kinds import JOB, POD, VOLCANO_JOB, JobKind
from pai_install.scheduling.job_queue import CLUSTER_LABEL, QUEUE_LABEL, QUEUE_NOTE
from pai_install.scheduling.model import UnqueuedLimit
from pai_install.scheduling.unqueued import CLASS, QUOTA, unqueued_objects, unqueued_rules
from pai_install.users.policies import policies
from tests.integration.control_plane import Json
from tests.integration.users.attacks import templates_of
from tests.integration.users.conftest import NAMESPACES
from tests.integration.users.tenants import (
    MERGE,
    SITE,
    Tenants,
    good,
    kinds_of,
    path_of,
    refused,
    tenants,
)
from tests.unit.jobs.examples import OWNER as ALICE
from tests.virtual_clusters import with_backend
from tests.waiting import until

__all__ = ["tenants"]

PODS = "/api/v1/namespaces/vision/pods"
QUOTAS = "/api/v1/namespaces/vision/resourcequotas"
LIMIT = UnqueuedLimit(2, 4 * 2**30)


@pytest.fixture(scope="module")
def limited(tenants: Tenants) -> Tenants:
    """The site with the limit, once it counts. No program of this cluster begins to count by itself."""
    scheduling = replace(with_backend(SITE, tenants.backend), unqueued=LIMIT)
    clusters = {place: [it.name for it in found] for place, found in clusters_at(SITE).items()}
    rules = unqueued_rules(scheduling, NAMESPACES)
    made = [*unqueued_objects(scheduling, NAMESPACES)]
    for one in (*made, *policies(tenants.backend, NAMESPACES, clusters, priorities_at(SITE), rules)):
        tenants.admin.apply(one)
    for kind in kinds_of(tenants.backend):
        until(lambda kind=kind: CLASS in tried(tenants, kind, outside(tenants, kind)))  # type: ignore[misc]
    counts_again(tenants)
    large = pods_outside(tenants, "large", cpu="3")
    until(lambda: "exceeded quota" in tenants.of["alice"].refusal("POST", f"{PODS}?dryRun=All", large))
    return tenants


def counts_again(tenants: Tenants) -> None:
    """What the controller of quotas would see in a namespace without such pods."""
    hard = tenants.admin.ask("GET", f"{QUOTAS}/{QUOTA}")["spec"]["hard"]
    status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    tenants.admin.ask("PATCH", f"{QUOTAS}/{QUOTA}/status", status, MERGE)


def outside(tenants: Tenants, kind: JobKind, **spec: object) -> Json:
    """A job without devices that names no queue."""
    made = good(tenants.backend, kind, "evil")
    made["metadata"]["labels"].pop(QUEUE_LABEL, None)
    made["metadata"]["labels"].pop(CLUSTER_LABEL, None)
    for name in ("runPolicy", "priorityClassName", *(["suspend"] if kind is JOB else [])):
        made["spec"].pop(name, None)
    if kind is VOLCANO_JOB:
        made["spec"]["schedulerName"] = "default-scheduler"
    for pod in templates_of(kind, made):
        pod["metadata"].pop("annotations", None)
        for name in ("schedulerName", "priorityClassName"):
            pod["spec"].pop(name, None)
        pod["spec"]["containers"][0].pop("resources", None)
        # the training-operator adds the scheduler of its gangs where no other is named
        pod["spec"] |= {"schedulerName": "default-scheduler", **spec}
    return made


def remedied(tenants: Tenants, kind: JobKind, cpu: str = "1", memory: str = "1Gi") -> Json:
    """What the messages ask for."""
    made = outside(tenants, kind, priorityClassName=CLASS)
    for pod in templates_of(kind, made):
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
    return made


def pods_outside(tenants: Tenants, name: str, **asked: str) -> Json:
    made = remedied(tenants, POD, **asked)
    return {**made, "metadata": {**made["metadata"], "name": name}}


def tried(tenants: Tenants, kind: JobKind, made: Json) -> str:
    return tenants.of["alice"].refusal("POST", f"{path_of(kind)}?dryRun=All", made)


def test_jobs_in_queues_are_as_before(limited: Tenants) -> None:
    kinds = [kind for kind in kinds_of(limited.backend) if limited.backend != "kueue" or "kueue" in kind.queued]
    answers = {kind.full_name: tried(limited, kind, good(limited.backend, kind, "queued")) for kind in kinds}
    assert answers == dict.fromkeys(answers, "")


def test_pods_outside_queues_name_their_class_and_what_they_ask_for(limited: Tenants) -> None:
    for kind in kinds_of(limited.backend):
        why = tried(limited, kind, outside(limited, kind))
        assert refused(why), kind
        assert f"priorityClassName: {CLASS}" in why, kind
        for name in ("test", "oppo"):
            why = tried(limited, kind, outside(limited, kind, priorityClassName=name))
            # with Kueue pods have no other classes
            assert CLASS in why or "no PriorityClass" in why, kind
        why = tried(limited, kind, outside(limited, kind, priorityClassName=CLASS))
        assert refused(why), kind
        assert "resources.requests.cpu" in why, kind
        assert tried(limited, kind, remedied(limited, kind)) == "", kind


def hidden(made: Json, kind: JobKind) -> Iterator[tuple[str, Json]]:
    """Fields that look like a queue, and are none."""

    def changed(**metadata: Mapping[str, str]) -> Json:
        return {**made, "metadata": {**made["metadata"], **metadata}}

    labels = made["metadata"]["labels"]
    yield "label without a queue", changed(labels={**labels, QUEUE_LABEL: ""})
    yield "note of a queue", changed(annotations={QUEUE_NOTE: "vision"})
    if kind is VOLCANO_JOB:
        yield "scheduler of the job alone", {**made, "spec": {**made["spec"], "schedulerName": "volcano"}}


def test_nothing_else_looks_like_a_queue(limited: Tenants) -> None:
    wrong = [
        f"{kind.full_name} {name}"
        for kind in kinds_of(limited.backend)
        for name, made in hidden(outside(limited, kind), kind)
        if CLASS not in tried(limited, kind, made)
    ]
    assert not wrong
    assert tried(limited, POD, outside(limited, POD, priority=-1))


def test_the_quota_ends_at_its_limit_and_does_not_count_queued_pods(limited: Tenants) -> None:
    alice = limited.of["alice"]
    maker = limited.admin.in_the_name_of("system:serviceaccount:kube-system:job-controller")
    try:
        for name in ("one", "two"):
            assert alice.refusal("POST", PODS, pods_outside(limited, name)) == ""
        assert f"exceeded quota: {QUOTA}" in alice.refusal("POST", PODS, pods_outside(limited, "three", cpu="10m"))
        # a controller makes the pods of a Job outside queues
        assert f"exceeded quota: {QUOTA}" in maker.create(pods_outside(limited, "part", cpu="10m"))
        # and those of a queued one, with as many cores as they like
        queued = good("default" if limited.backend == "kueue" else limited.backend, POD, "queued")
        queued["spec"].pop("priorityClassName") if limited.backend == "kueue" else None
        queued["spec"]["containers"][0].setdefault("resources", {})["requests"] = {"cpu": "64", "memory": "512Gi"}
        assert maker.create(queued) == ""
    finally:
        for name in ("one", "two", "queued"):
            limited.admin.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        counts_again(limited)


@pytest.mark.parametrize("where", ["pod", "init", "memory", "limits"])
def test_no_request_is_left_out(limited: Tenants, where: str) -> None:
    made = pods_outside(limited, "large")
    (main,) = made["spec"]["containers"]
    large = {"cpu": "3", "memory": "1Gi"}
    if where == "pod":
        made["spec"]["resources"] = {"requests": large}
    elif where == "init":
        made["spec"]["initContainers"] = [{**main, "name": "first", "resources": {"requests": large}}]
    elif where == "memory":
        main["resources"] = {"requests": {"cpu": "1", "memory": "5Gi"}}
    else:
        main["resources"] = {"limits": large}
    assert f"exceeded quota: {QUOTA}" in tried(limited, POD, made)


def test_code_is_still_uploaded(limited: Tenants) -> None:
    scheduling = replace(with_backend(SITE, limited.backend), unqueued=LIMIT)
    place = JobPlace(scheduling, scheduling.cluster("vision"), "test", ALICE, {"data": Claim("data", "alice")})
    pod = owned(upload_pod(StoredCode("a" * 64, "data", 1, 1), place, "1", "image", 30, ()))
    until(lambda: tried(limited, POD, dict(pod)) == "")
