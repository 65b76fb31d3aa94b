"""The limit of a virtual cluster on the pods of a job counts with every scheduler, for every kind of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pai_install.schedulers.compile import objects_of
from pai_install.scheduling.job_kinds import JOB
from pai_install.scheduling.job_queue import CLUSTER_LABEL
from pai_install.users.kinds import kinds_at
from tests.integration.control_plane import Json
from tests.integration.users.attacks import roles_of, too_many
from tests.integration.users.tenants import SITE, Tenants, good, path_of, tenants
from tests.virtual_clusters import with_backend
from tests.waiting import until

__all__ = ["tenants"]

LIMITS = {"vision": 4, "spare": 2}
JOBS = "/apis/batch/v1/namespaces/vision/jobs"


def of_pods(tenants: Tenants, count: int, **labels: str) -> Iterator[tuple[str, str]]:
    """Kind -> why a job with as many pods is refused. Its roles have equal numbers of pods."""
    for kind in kinds_at(tenants.backend):
        made = good(tenants.backend, kind, "large")
        too_many(-(-count // max(1, len(roles_of(made["spec"])))))(made, kind)
        made["metadata"]["labels"] |= labels
        if not labels:
            del made["metadata"]["labels"][CLUSTER_LABEL]
        yield kind.full_name, tenants.of["alice"].refusal("POST", f"{path_of(kind)}?dryRun=All", made)


@pytest.fixture
def limited(tenants: Tenants) -> Tenants:
    clusters = tuple(replace(one, pods_per_job=LIMITS.get(one.name)) for one in SITE.clusters)
    for one in objects_of(replace(with_backend(SITE, tenants.backend), clusters=clusters)):
        if "pods-per-job" in one["metadata"]["name"]:
            tenants.admin.apply(one)
    until(lambda: all(answer for _, answer in of_pods(tenants, 5, **{CLUSTER_LABEL: "vision"})))
    return tenants


def test_without_a_limit_nothing_is_made() -> None:
    assert not [one for one in objects_of(SITE) if "pods-per-job" in one["metadata"]["name"]]


def test_every_kind_has_the_limit_of_its_virtual_cluster(limited: Tenants) -> None:
    of_vision = {CLUSTER_LABEL: "vision"}
    assert {kind: why for kind, why in of_pods(limited, 4, **of_vision) if why} == {}
    assert {kind: why for kind, why in of_pods(limited, 5, **of_vision) if "at most 4 pods" not in why} == {}
    # no label is no way around: the lowest of the group's limits counts
    assert {kind: why for kind, why in of_pods(limited, 2) if why} == {}
    assert {kind: why for kind, why in of_pods(limited, 3) if "at most 2 pods" not in why} == {}


def test_a_part_of_a_job_is_not_refused_when_its_limit_falls(limited: Tenants) -> None:
    """A controller makes it again after a failure. Administrators decide themselves."""

    def part(**metadata: object) -> Json:
        made = good("default", JOB, "part")
        too_many(64)(made, JOB)
        made["metadata"] |= {"labels": {}, **metadata}
        made["spec"]["template"]["spec"]["containers"][0].pop("resources", None)
        return made

    controller = limited.admin.in_the_name_of("system:serviceaccount:kube-system:cronjob-controller")
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "a", "uid": "b", "controller": True}
    assert "at most 2 pods" in controller.create(part())
    assert controller.create(part(ownerReferences=[owner])) == ""
    limited.admin.ask("DELETE", f"{JOBS}/part?propagationPolicy=Background")
    assert limited.admin.create(part()) == ""
    limited.admin.ask("DELETE", f"{JOBS}/part?propagationPolicy=Background")
