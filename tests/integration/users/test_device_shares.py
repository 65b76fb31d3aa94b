"""Pods with devices request no more cores and memory than their devices come with, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

import pytest

from pai_install.jobs.model import Job, Resources
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.jobs import objects_of
from pai_install.scheduling.admission import clusters_at, priorities_at
from pai_install.scheduling.device_shares import share_rules
from pai_install.scheduling.job_kinds import JOB, POD, JobKind, kind_of
from pai_install.scheduling.job_queue import HIVED_MARKER, HIVED_SPEC
from pai_install.scheduling.model import Scheduling
from pai_install.users.policies import policies
from tests.integration.control_plane import Json
from tests.integration.users.attacks import templates_of
from tests.integration.users.conftest import NAMESPACES
from tests.integration.users.tenants import (
    APPLY,
    MERGE,
    SITE,
    SUPPLY,
    Tenants,
    good,
    kinds_of,
    path_of,
    refused,
    tenants,
)
from tests.unit.jobs.examples import OWNER as ALICE
from tests.unit.jobs.examples import role
from tests.virtual_clusters import cluster, cores, gpus, share, with_backend
from tests.waiting import until

__all__ = ["tenants"]

# an a100 comes with 11.7 cores and 115 GiB, a v100 with 5 cores and 20 GiB, a core with 4 GiB
SMALL = replace(gpus("v100", 2, 4), cpu_millis=5000, memory_bytes=20 * 2**30)
SAYS = "comes with"


def divided(tenants: Tenants) -> Scheduling:
    supply = {**SITE.supply, SMALL.sku: SMALL, "cpu": cores("cpu", 2)}
    return replace(with_backend(SITE, tenants.backend), supply=supply)


@pytest.fixture(scope="module")
def shared(tenants: Tenants) -> Tenants:
    """The site with several machine types, once the limit counts."""
    rules = share_rules(divided(tenants))
    if rules is None:
        assert tenants.backend == "kueue"
        pytest.skip("Kueue's quotas count cores and memory of each machine type")
    clusters = {place: [it.name for it in found] for place, found in clusters_at(SITE).items()}
    for one in policies(tenants.backend, NAMESPACES, clusters, priorities_at(SITE), shares=rules):
        tenants.admin.apply(one)
    for kind in kinds_of(tenants.backend):
        until(lambda kind=kind: SAYS in tried(tenants, kind, asking(tenants, kind, "30", "1Gi")))  # type: ignore[misc]
    return tenants


def tried(tenants: Tenants, kind: JobKind, made: Json) -> str:
    return tenants.of["alice"].refusal("POST", f"{path_of(kind)}?dryRun=All", made)


def asking(tenants: Tenants, kind: JobKind, cpu: str, memory: str, units: int = 1, *cells: str) -> Json:
    """A job whose pods have so many devices. cells: further lines of HiveD's annotation."""
    # roles of some kinds share a template
    made: Json = json.loads(json.dumps(good(tenants.backend, kind, "evil")))
    for pod in templates_of(kind, made):
        (main,) = pod["spec"]["containers"]
        name = HIVED_MARKER if tenants.backend == "hived" else "nvidia.com/gpu"
        devices = {name: "1" if tenants.backend == "hived" else str(units)}
        main["resources"] = {"requests": {"cpu": cpu, "memory": memory, **devices}, "limits": devices}
        if tenants.backend == "hived":
            notes = pod["metadata"]["annotations"]
            lines = notes[HIVED_SPEC].replace("leafCellNumber: 1", f"leafCellNumber: {units}")
            notes[HIVED_SPEC] = "\n".join((lines, *(cells or ("leafCellType: a100",))))
    return made


FITS = {
    "no requests": ("0", "0", 1),
    "the share": ("11.7", "115Gi", 1),
    "in other units": ("11700m", "120586240Ki", 1),
    "of three": ("35100m", "345Gi", 3),
    "all devices of the machine": ("200", "2Ti", 8),
}
EXCEEDS = {
    "a core more": ("12", "1Gi", 1),
    "a byte more": ("1", "123480309761", 1),
    "two of three": ("36", "1Gi", 3),
    "almost the machine": ("90", "1Gi", 7),
    "exponent": ("2e1", "1Gi", 1),
}


@pytest.mark.parametrize("name", FITS)
def test_the_share_of_the_devices_is_allowed(shared: Tenants, name: str) -> None:
    cpu, memory, units = FITS[name]
    kinds = kinds_of(shared.backend)
    answers = {kind.full_name: tried(shared, kind, asking(shared, kind, cpu, memory, units)) for kind in kinds}
    assert answers == dict.fromkeys(answers, "")


@pytest.mark.parametrize("name", EXCEEDS)
def test_more_than_the_share_is_refused(shared: Tenants, name: str) -> None:
    cpu, memory, units = EXCEEDS[name]
    kinds = kinds_of(shared.backend)
    answers = {kind.full_name: tried(shared, kind, asking(shared, kind, cpu, memory, units)) for kind in kinds}
    assert [kind for kind, why in answers.items() if SAYS not in why] == []


LARGE = {"cpu": "12", "memory": "1Gi"}
PLACES: Mapping[str, Json] = {
    "limits": {"containers": {"limits": LARGE}},
    "first container": {"initContainers": [{"name": "a", "image": "none", "resources": {"requests": LARGE}}]},
    "sidecars": {
        "initContainers": [
            {"name": name, "image": "none", "restartPolicy": "Always", "resources": {"requests": {"cpu": "6"}}}
            for name in ("a", "b")
        ]
    },
    "two containers": {"more": [{"name": "b", "image": "none", "resources": {"requests": {"cpu": "11"}}}]},
    "the pod": {"resources": {"requests": LARGE}},
    "limit of the pod": {"resources": {"limits": LARGE}},
}


@pytest.mark.parametrize("place", PLACES)
def test_no_request_is_left_out(shared: Tenants, place: str) -> None:
    passed = []
    for kind in kinds_of(shared.backend):
        made = asking(shared, kind, "1", "1Gi")
        for pod in templates_of(kind, made):
            change = deepcopy(PLACES[place])
            (main,) = pod["spec"]["containers"]
            if place == "limit of the pod":
                main["resources"].pop("requests")
            if "containers" in change:
                devices = main["resources"]["limits"]
                main["resources"] = {"limits": {**change.pop("containers")["limits"], **devices}}
            pod["spec"]["containers"] += change.pop("more", [])
            pod["spec"] |= change
        why = tried(shared, kind, made)
        # a kind whose definition does not know a field drops it
        dropped = place in ("the pod", "limit of the pod") and why == "" and "." in kind.group
        if SAYS not in why and not dropped:
            passed.append(f"{kind.full_name}: {why}")
    assert passed == []


def test_devices_of_first_containers_do_not_add_up(shared: Tenants) -> None:
    """The scheduler gives a pod the devices of its largest container before the others, and not of all."""
    if shared.backend == "hived":
        pytest.skip("the annotation has the number")
    made = asking(shared, POD, "23", "1Gi")
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    made["spec"]["initContainers"] = [{"name": name, "image": "none", "resources": limits} for name in ("a", "b")]
    assert SAYS in tried(shared, POD, made)


def test_a_pod_without_devices_has_another_limit(shared: Tenants) -> None:
    made = asking(shared, POD, "64", "1Gi")
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
    if shared.backend == "hived":
        made["metadata"].pop("annotations")
        made["spec"].pop("schedulerName")
    assert tried(shared, POD, made) == ""


def test_no_change_gets_more(shared: Tenants) -> None:
    """Created with the share, and changed while the job waits: by PUT, PATCH, and apply, and by subresources."""
    alice, passed = shared.of["alice"], []
    for kind in kinds_of(shared.backend):
        made = asking(shared, kind, "1", "1Gi")
        if kind is JOB:
            made["spec"]["suspend"] = True
        name = made["metadata"]["name"]
        assert alice.refusal("POST", path_of(kind), made) == "", kind
        large = asking(shared, kind, "64", "1Gi")
        _, now = alice.ask("GET", path_of(kind, name))
        large["metadata"] |= {"resourceVersion": now["metadata"]["resourceVersion"], "uid": now["metadata"]["uid"]}
        ways = {
            "put": alice.refusal("PUT", path_of(kind, name), large),
            "patch": alice.refusal("PATCH", path_of(kind, name), {"spec": large["spec"]}, MERGE),
            "apply": alice.refusal(
                "PATCH", f"{path_of(kind, name)}?fieldManager=evil&force=true", asking(shared, kind, "64", "1Gi"), APPLY
            ),
            "scale": alice.refusal("PUT", f"{path_of(kind, name)}/scale", {"spec": {"replicas": 9}}),
            "resize": alice.refusal("PATCH", f"{path_of(kind, name)}/resize", {"spec": large["spec"]}, MERGE),
        }
        passed += [f"{kind.full_name} {way}" for way, why in ways.items() if not why]
        shared.admin.ask("DELETE", f"{path_of(kind, name)}?propagationPolicy=Background&gracePeriodSeconds=0")
    assert passed == []


CELLS = {
    "share of a larger type": ("8", "1Gi", 1, ("leafCellType: v100",)),
    "core of a device": ("2", "1Gi", 1, ("leafCellType: cpu",)),
    "any type": ("2", "1Gi", 1, ("lazyPreemptionEnable: false",)),
    "old name of the key": ("2", "1Gi", 1, ("gpuType: cpu",)),
    "two names of the key": ("2", "1Gi", 1, ("gpuType: a100", "leafCellType: cpu")),
    "comment": ("2", "1Gi", 1, ("leafCellType: cpu # a100",)),
    "two numbers": ("23", "1Gi", 1, ("leafCellType: a100", "gpuNumber: 8")),
    "no cells": ("1", "1Gi", 0, ("leafCellType: a100",)),
    "more than a machine of a pinned cell": ("24", "1Gi", 2, ("pinnedCellId: a",)),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_of_hived_come_with_the_share_of_their_type(shared: Tenants, name: str) -> None:
    if shared.backend != "hived":
        pytest.skip("cells are HiveD's")
    cpu, memory, units, lines = CELLS[name]
    assert SAYS in tried(shared, POD, asking(shared, POD, cpu, memory, units, *lines))


@pytest.mark.parametrize(
    ("cpu", "units", "line"),
    [
        ("1", 1, "leafCellType: cpu"),
        ("10", 2, "leafCellType: 'v100'"),
        ("30", 4, "leafCellType: v100"),
        ("23", 2, "pinnedCellId: a"),
        ("1", 1, "gpuType: cpu"),
        ("1", 1, "lazyPreemptionEnable: false"),
    ],
)
def test_cells_of_hived_may_be_of_any_type(shared: Tenants, cpu: str, units: int, line: str) -> None:
    if shared.backend != "hived":
        pytest.skip("cells are HiveD's")
    assert tried(shared, POD, asking(shared, POD, cpu, "4Gi", units, line)) == ""


@pytest.mark.parametrize(("cpu", "units"), [(1, 0), (11, 1), (23, 2), (100, 8), (40, 0)])
def test_jobs_of_openpai_pass(shared: Tenants, cpu: int, units: int) -> None:
    """With HiveD, a job holds as many cells as its cores and memory need. Otherwise `job validate` tells of it."""
    scheduling = replace(divided(shared), clusters=(cluster("vision", share(SUPPLY, 16), groups=("vision",)),))
    resources = Resources(cpu, 4096, units, sku=None, shm_mb=64)
    place = JobPlace(scheduling, scheduling.cluster("vision"), "test", ALICE)
    job = Job("mine", (replace(role("main", gpus=units), resources=resources),))
    own, *_ = objects_of(job, place)
    kind = kind_of(own)
    assert kind is not None
    assert tried(shared, kind, own) == ""


def test_controllers_and_administrators_have_no_limit(shared: Tenants) -> None:
    made = asking(shared, POD, "64", "1Gi")
    assert not refused(shared.admin.create({**made, "metadata": {**made["metadata"], "name": "of-the-admin"}}))
    shared.admin.ask("DELETE", f"{path_of(POD, 'of-the-admin')}?gracePeriodSeconds=0")
