"""Each operation of a member on each kind of jobs, with each scheduler: what would harm others is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from urllib.error import HTTPError

import pytest

from pai_install.scheduling.job_kinds import JOB, POD, JobKind
from pai_install.scheduling.job_queue import CLUSTER_LABEL, QUEUE_LABEL
from pai_install.users.kinds import kinds_at
from pai_install.users.model import OWNER
from tests.integration.control_plane import Api, Json
from tests.integration.users.attacks import (
    ADOPTED,
    CHANGES,
    FORBIDDEN,
    GANGS,
    GOOD_GANG,
    JOBS,
    NUMBERS,
    OF_JOBS,
    OF_PODS,
    ORPHANS,
    OWN,
    PARTS,
    PODS,
    STARTED,
    SUBRESOURCES,
    UNQUEUED,
    Change,
    again,
    containers,
    context,
    metadata,
    pods,
    templates_of,
    too_many,
)
from tests.integration.users.tenants import (
    APPLY,
    MERGE,
    Tenants,
    good,
    kinds_of,
    path_of,
    refused,
    tenants,
)
from tests.integration.users.test_rights import gone
from tests.waiting import until

__all__ = ["tenants"]


def evil(tenants: Tenants, kind: JobKind, change: Change) -> Json:
    made = good(tenants.backend, kind, "evil")
    change(made, kind)
    return made


def tried(tenants: Tenants, kind: JobKind, made: Json) -> str:
    return tenants.of["alice"].refusal("POST", f"{path_of(kind)}?dryRun=All", made)


def all_refused(found: Iterator[tuple[str, str]]) -> None:
    """Names the attacks that succeed, or that fail for another reason than what was asked."""
    wrong = [f"{name}: {answer[:300] or 'succeeds'}" for name, answer in found if not refused(answer)]
    assert not wrong, "\n".join(wrong)


# what jobs need, in the largest size
LARGE = {"command": ["sh", "-c", "a" * 60_000], "env": [{"name": "A", "value": "b" * 2_000}]}


def test_good_jobs_pass(tenants: Tenants) -> None:
    def answers(change: Change) -> dict[str, str]:
        kinds = kinds_of(tenants.backend)
        return {kind.full_name: tried(tenants, kind, evil(tenants, kind, change)) for kind in kinds}

    for change in (metadata(), containers(**LARGE), context(seccompProfile={"type": "Unconfined"})):
        assert answers(change) == dict.fromkeys(answers(change), "")


def test_create(tenants: Tenants) -> None:
    def found() -> Iterator[tuple[str, str]]:
        for kind in kinds_of(tenants.backend):
            for name, change in {**PODS, **JOBS}.items():
                if kind is not JOB or name not in OF_JOBS:
                    yield f"{kind.full_name} {name}", tried(tenants, kind, evil(tenants, kind, change))

    all_refused(found())


def test_a_pod_without_a_priority_is_above_all_jobs_of_hived(tenants: Tenants) -> None:
    def without(made: Json, kind: JobKind) -> None:
        for one in templates_of(kind, made):
            one["spec"].pop("priorityClassName", None)
            one["spec"].pop("schedulerName", None)
            one["metadata"].pop("annotations", None)
            one["spec"]["containers"][0].pop("resources", None)

    kinds = [kind for kind in kinds_of(tenants.backend) if kind in (JOB, POD)]
    answers = [tried(tenants, kind, evil(tenants, kind, without)) for kind in kinds]
    assert answers
    assert [refused(answer) for answer in answers] == [tenants.backend == "hived"] * len(answers), answers


@contextmanager
def victim(tenants: Tenants, kind: JobKind) -> Iterator[tuple[str, Json]]:
    """The path of a job of alice's that is there, and how it was made."""
    path, made = path_of(kind, "victim"), good(tenants.backend, kind, "victim")
    assert tenants.of["alice"].refusal("POST", path_of(kind), made) == ""
    try:
        yield path, made
    finally:
        tenants.admin.ask("DELETE", f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")
        gone(tenants.admin, path)


def test_change(tenants: Tenants) -> None:
    alice = tenants.of["alice"]

    def of(kind: JobKind) -> Iterator[tuple[str, str]]:
        with victim(tenants, kind) as (path, made):
            before = alice.ask("GET", path)[1]
            for name, change in CHANGES.items():
                put, applied = deepcopy(before), deepcopy(made)
                change(put, kind)
                change(applied, kind)
                if put == before or (kind is JOB and name in OF_JOBS):
                    continue
                yield f"{kind.full_name} {name} PUT", alice.refusal("PUT", f"{path}?dryRun=All", put)
                yield f"{kind.full_name} {name} PATCH", alice.refusal("PATCH", f"{path}?dryRun=All", put, MERGE)
                by_other = f"{path}?dryRun=All&fieldManager=other&force=true"
                yield f"{kind.full_name} {name} APPLY", alice.refusal("PATCH", by_other, applied, APPLY)

    all_refused(one for kind in kinds_of(tenants.backend) for one in of(kind))


def test_running_pod_changes_hands(tenants: Tenants) -> None:
    """The controller of a colleague's job would adopt it and end it. That of no job would leave it out of all lists."""
    alice = tenants.of["alice"]

    def of_a_job(made: Json, kind: JobKind) -> None:
        JOBS["fake-owner"](made, kind)
        metadata(labels={"batch.kubernetes.io/job-name": "own"})(made, kind)
        made["spec"]["nodeName"] = "worker"

    def found(path: str) -> Iterator[tuple[str, str]]:
        before = alice.ask("GET", path)[1]
        theirs = [{**OWN, "name": "bobs", "uid": "00000000-0000-0000-0000-000000000002", "controller": True}]
        changes = {name: PODS[name] for name in ADOPTED}
        for name, change in {**changes, "other-owner": metadata(ownerReferences=theirs)}.items():
            put = deepcopy(before)
            change(put, POD)
            yield f"{name} PUT", alice.refusal("PUT", f"{path}?dryRun=All", put)
            yield f"{name} PATCH", alice.refusal("PATCH", f"{path}?dryRun=All", {"metadata": put["metadata"]}, MERGE)
        nobodys: Json = {"metadata": {"ownerReferences": None}}
        yield "no-owner PATCH", alice.refusal("PATCH", f"{path}?dryRun=All", nobodys, MERGE)

    with pod_there(tenants, of_a_job) as path:
        all_refused(found(path))


def test_job_leaves_its_queue(tenants: Tenants) -> None:
    """Its pods would go on, and nobody counts them."""
    alice = tenants.of["alice"]

    def of(kind: JobKind) -> Iterator[tuple[str, str]]:
        with victim(tenants, kind) as (path, _):
            before = alice.ask("GET", path)[1]
            for name, labels in UNQUEUED.items():
                put, there = deepcopy(before), before["metadata"]["labels"].keys()
                for label in labels:
                    put["metadata"]["labels"].pop(label, None)
                if put == before:
                    continue
                nothing: Json = {"metadata": {"labels": dict.fromkeys(there & set(labels))}}
                yield f"{kind.full_name} {name} PUT", alice.refusal("PUT", f"{path}?dryRun=All", put)
                yield f"{kind.full_name} {name} PATCH", alice.refusal("PATCH", f"{path}?dryRun=All", nothing, MERGE)

    all_refused(one for kind in kinds_of(tenants.backend) for one in of(kind))


def test_suspended_job_gets_devices_before_it_begins(tenants: Tenants) -> None:
    """A queue would count it without devices, and its pods would have four."""
    alice, path = tenants.of["alice"], path_of(JOB, "victim")

    def without_devices(made: Json, labels: tuple[str, ...]) -> Json:
        for label in labels:
            made["metadata"]["labels"].pop(label, None)
        for one in templates_of(JOB, made):
            one["spec"]["containers"][0].pop("resources", None)
        return made

    for labels in ((), (QUEUE_LABEL, CLUSTER_LABEL)):
        made = without_devices(good(tenants.backend, JOB, "victim"), labels)
        answers = [alice.refusal("POST", path_of(JOB), made)]
        if not answers[0]:
            grown = alice.ask("GET", path)[1]
            again(grown, JOB)
            answers += [alice.refusal("PUT", path, grown)]
            answers += [alice.refusal("PATCH", path, {"spec": {"suspend": False}}, MERGE)]
            tenants.admin.ask("DELETE", f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")
            gone(tenants.admin, path)
        assert refused(answers[0] or answers[1]), answers


def test_suspend(tenants: Tenants) -> None:
    """A member may suspend a job and resume it, but Kueue alone does so with one that names a virtual cluster."""
    alice, kueue = tenants.of["alice"], kueues(tenants.admin)
    for kind in kinds_at(tenants.backend):
        if kind.group == "batch.volcano.sh":
            continue
        with victim(tenants, kind) as (path, _):
            queued = tenants.backend == "kueue" and "kueue" in kind.queued
            for suspend in (True, False, True):
                change: Json = {"suspend": suspend}
                if kind is not JOB and kind.name != "JobSet":
                    change = {"runPolicy": change}
                found = alice.refusal("PATCH", path, {"spec": change}, MERGE)
                # a batch Job was suspended before
                if queued and not (kind is JOB and suspend and found == ""):
                    assert "Kueue alone suspends and resumes" in found, (kind, suspend)
                    kueue.ask("PATCH", path, {"spec": change}, MERGE)
                else:
                    assert found == "", kind


def kueues(admin: Api) -> Api:
    """Kueue's controller, with more rights than it has: the policies count."""
    name = "system:serviceaccount:pai-kueue:kueue-controller-manager"
    admin.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kueue-in-tests"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        }
    )
    found = admin.in_the_name_of(name)
    until(lambda: answers(found))
    return found


def answers(api: Api) -> bool:
    """Whether it may read."""
    try:
        api.ask("GET", "/api/v1/namespaces")
    except HTTPError:
        return False
    return True


def test_scale_and_status(tenants: Tenants) -> None:
    """Only controllers say how a job does; no policy sees what a subresource changes."""
    alice = tenants.of["alice"]

    def of(kind: JobKind) -> Iterator[tuple[str, str]]:
        with victim(tenants, kind) as (path, _):
            for name in OF_PODS if kind is POD else SUBRESOURCES:
                for method, how in (("PUT", "application/json"), ("PATCH", MERGE), ("PATCH", APPLY)):
                    yield f"{kind.full_name} {method} {name}", alice.refusal(method, f"{path}/{name}", {}, how)
            for name in STARTED if kind is POD else ():
                yield f"POST {name}", alice.refusal("POST", f"{path}/{name}", {})
            yield f"{kind.full_name} DELETE all", alice.refusal("DELETE", path_of(kind))

    all_refused(one for kind in kinds_of(tenants.backend) for one in of(kind))


def test_a_status_of_a_member_is_dropped(tenants: Tenants) -> None:
    """A job that says that it ended would be counted by no queue."""
    ended = {"conditions": [{"type": "Complete", "status": "True"}], "phase": "Succeeded", "nodeName": "master"}
    for kind in kinds_of(tenants.backend):
        made = {**good(tenants.backend, kind, "evil"), "status": ended}
        status, found = tenants.of["alice"].ask("POST", f"{path_of(kind)}?dryRun=All", made)
        assert status < 300, found
        assert found.get("status", {}).get("conditions", []) == []
        assert found.get("status", {}).get("phase", "Pending") == "Pending"


def test_orphan(tenants: Tenants) -> None:
    """Pods that outlive their job would use devices that no queue counts."""
    alice = tenants.of["alice"]

    def of(kind: JobKind) -> Iterator[tuple[str, str]]:
        with victim(tenants, kind) as (path, _):
            for name, (query, body) in ORPHANS.items():
                if kind is JOB or name != "orphan-by-default-of-batch":
                    yield f"{kind.full_name} {name}", alice.refusal("DELETE", f"{path}{query}", body)
            assert alice.refusal("DELETE", f"{path}?dryRun=All&propagationPolicy=Background") == ""

    all_refused(one for kind in kinds_at(tenants.backend) for one in of(kind))


def test_a_part_of_a_job(tenants: Tenants) -> None:
    """JobSet makes a deleted Job of its own again, and resumes a suspended one, while the pods of that still end."""
    alice, made = tenants.of["alice"], good(tenants.backend, JOB, "part")
    made["metadata"]["ownerReferences"] = [{**OWN, "controller": True}]
    path = path_of(JOB, "part")
    assert tenants.admin.create(made) == ""

    def found() -> Iterator[tuple[str, str]]:
        yield "delete", alice.refusal("DELETE", f"{path}?dryRun=All&propagationPolicy=Background")
        for field, value in PARTS.items():
            yield field, alice.refusal("PATCH", f"{path}?dryRun=All", {"spec": {field: value}}, MERGE)

    try:
        all_refused(found())
    finally:
        tenants.admin.ask("DELETE", f"{path}?propagationPolicy=Background")
        gone(tenants.admin, path)


def test_gang_of_another_namespace(tenants: Tenants) -> None:
    """HiveD gives a pod a free place of the gang that it names, without a look at its virtual cluster."""
    if tenants.backend == "hived":
        for way in GANGS.values():
            assert refused(tried(tenants, POD, evil(tenants, POD, way)))
        assert tried(tenants, POD, evil(tenants, POD, GOOD_GANG)) == ""


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_an_object_that_nobody_could_delete(tenants: Tenants, kind: str) -> None:
    labels = {"name": "alice.x", "namespace": "vision", "labels": {OWNER: "alice"}}
    made = {"apiVersion": "v1", "kind": kind, "metadata": {**labels, "finalizers": ["example.com/keep"]}}
    assert refused(tenants.of["alice"].refusal("POST", f"/api/v1/namespaces/vision/{kind.lower()}s?dryRun=All", made))


@contextmanager
def pod_there(tenants: Tenants, change: Change) -> Iterator[str]:
    """The path of a pod of alice's, as a controller made it."""
    made, path = good(tenants.backend, POD, "there"), path_of(POD, "there")
    change(made, POD)
    assert tenants.admin.create(made) == ""
    try:
        yield path
    finally:
        tenants.admin.ask("DELETE", f"{path}?gracePeriodSeconds=0")
        gone(tenants.admin, path)


@pytest.mark.parametrize("way", ["query", "body"])
def test_a_pod_that_ends_later_than_its_queue_counts_it(tenants: Tenants, way: str) -> None:
    # one that waits for a node ends at once
    with pod_there(tenants, pods(nodeName="worker")) as path:
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 1_000_000}
        query, body = ("?gracePeriodSeconds=1000000", None) if way == "query" else ("", options)
        assert refused(tenants.of["alice"].refusal("DELETE", path + query, body))


def test_a_pod_that_no_queue_counts_while_it_ends(tenants: Tenants) -> None:
    """Without its object nothing counts the pod, and the kubelet still grants it its grace period."""
    with pod_there(tenants, pods(nodeName="worker")) as path:
        assert refused(tenants.of["alice"].refusal("DELETE", f"{path}?gracePeriodSeconds=0"))
        tenants.admin.ask("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}}, MERGE)
        assert tenants.of["alice"].refusal("DELETE", f"{path}?gracePeriodSeconds=0&dryRun=All") == ""


def test_a_pod_of_a_job_that_would_be_replaced_while_it_ends(tenants: Tenants) -> None:
    """The Job makes another at once, and the deleted one holds its devices for as long as it likes to."""
    with pod_there(tenants, JOBS["fake-owner"]) as path:
        assert refused(tenants.of["alice"].refusal("DELETE", path))


def test_a_job_that_adopts_pods_of_others(tenants: Tenants) -> None:
    made = good(tenants.backend, JOB, "evil")
    made["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {OWNER: "alice"}}}
    assert refused(tried(tenants, JOB, made))


LOST = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
NEEDED: Mapping[str, Change] = {
    "a taint of the site": pods(tolerations=[{"key": "team", "operator": "Exists", "effect": "NoSchedule"}]),
    "a lost node": pods(tolerations=[LOST]),
    "a probe of itself": containers(livenessProbe={"httpGet": {"port": 80}}),
}


@pytest.mark.parametrize("what", NEEDED)
def test_what_members_need_stays_possible(tenants: Tenants, what: str) -> None:
    alice, path = tenants.of["alice"], path_of(POD, "evil")
    assert alice.refusal("POST", path_of(POD), evil(tenants, POD, NEEDED[what])) == ""
    assert alice.refusal("DELETE", f"{path}?gracePeriodSeconds=0") == ""
    gone(tenants.admin, path)


def test_number_of_pods(tenants: Tenants) -> None:
    def found() -> Iterator[tuple[str, str]]:
        for kind in kinds_at(tenants.backend):
            for name, change in NUMBERS.items():
                yield f"{kind.full_name} {name}", tried(tenants, kind, evil(tenants, kind, change))

    all_refused(found())
    for kind in kinds_at(tenants.backend):
        assert tried(tenants, kind, evil(tenants, kind, too_many(2_000))) == ""


def test_a_job_that_grows_by_itself(tenants: Tenants) -> None:
    """The training-operator would make a HorizontalPodAutoscaler."""
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
    grows = {"maxReplicas": 64, "metrics": metrics}
    for kind in kinds_at(tenants.backend):
        if kind.name == "PyTorchJob":
            made = good(tenants.backend, kind, "evil")
            made["spec"]["elasticPolicy"] = grows
            assert refused(tried(tenants, kind, made))
            made["spec"]["elasticPolicy"] = {"maxReplicas": 1}
            assert tried(tenants, kind, made) == ""


def test_objects_of_no_member(tenants: Tenants) -> None:
    alice = tenants.of["alice"]
    all_refused((f"{method} {path}", alice.refusal(method, path, {})) for path, method in FORBIDDEN)
