"""Whether a cluster holds what virtual clusters compile to, and what their scheduler says of it."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings

from pai_install.checks.verdict import Verdict
from pai_install.schedulers.compile import labels_of, objects_of
from pai_install.schedulers.queue_status import (
    ObjectState,
    ObjectStatus,
    difference,
    findings,
    holds,
    name_of,
    object_statuses,
    unsure,
)
from pai_install.schedulers.rollback import LABELS, leftovers, relabelled, restored
from pai_install.scheduling.model import BACKENDS, SKU_LABEL, Scheduling
from tests.addons import addon_action
from tests.unit.scheduling.sites import divided_sites
from tests.virtual_clusters import CASES, cluster, gpus, share, site, two_teams, with_backend

ACTIVE = {"conditions": [{"type": "Active", "status": "True", "observedGeneration": 2}]}
GOOD = {
    "ClusterQueue": ACTIVE,
    "LocalQueue": ACTIVE,
    "Queue": {"state": "Open"},
}


def held(scheduling: Scheduling) -> list[dict[str, Any]]:
    """The objects as a cluster has them whose scheduler has taken them."""
    found: list[dict[str, Any]] = json.loads(json.dumps(objects_of(scheduling)))
    for entry in found:
        entry["metadata"] |= {"uid": "x", "generation": 2}
        hard = {"status": {"hard": entry["spec"]["hard"]}} if entry["kind"] == "ResourceQuota" else {}
        entry.update({"status": GOOD[entry["kind"]]} if entry["kind"] in GOOD else hard)
    return found


def bad(scheduling: Scheduling, seen: list[Any]) -> list[ObjectStatus]:
    """Those that do not stand as they should."""
    return [it for it in object_statuses(objects_of(scheduling), seen) if it.state is not ObjectState.GOOD]


def queue_of(seen: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(entry for entry in seen if entry["kind"] == kind)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_what_was_applied_and_taken_is_good(case: str, backend: Any) -> None:
    scheduling = with_backend(CASES[case](), backend)
    found = object_statuses(objects_of(scheduling), held(scheduling))
    assert bad(scheduling, held(scheduling)) == []
    assert holds(found)
    assert not unsure(found)
    assert [it.verdict for it in findings(found)] == [Verdict.PASS]


@settings(max_examples=15)
@given(divided_sites())
def test_any_change_of_any_object_is_seen(scheduling: Scheduling) -> None:
    for number, entry in enumerate(held(scheduling)):
        seen: list[Any] = held(scheduling)
        seen[number] = None
        assert [str(it.of.name) for it in bad(scheduling, seen)] == [entry["metadata"]["name"]]
        assert not holds(object_statuses(objects_of(scheduling), seen))


@pytest.mark.parametrize(
    ("wanted", "found", "where"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, ""),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b"),
        ({"a": {"b": 1}}, {"a": 1}, "a.b"),
        ({"a": [{"n": "x", "q": "1024Mi"}]}, {"a": [{"n": "x", "q": "1Gi", "more": 1}]}, ""),
        ({"a": [{"n": "x", "q": "1500m"}]}, {"a": [{"n": "x", "q": 1.5}]}, ""),
        ({"a": [{"n": "x"}]}, {"a": [{"n": "x"}, {"n": "y"}]}, "a[1]"),
        ({"a": [1, 2]}, {"a": [1]}, "a[1]"),
        ({"a": {}, "b": "", "c": [], "d": 0}, {}, ""),
        ({"a": "x"}, None, "a"),
        ({"a": True}, {"a": False}, "a"),
    ],
)
def test_the_first_field_that_differs(wanted: Any, found: Any, where: str) -> None:
    assert difference(wanted, found) == where


@pytest.mark.parametrize(
    ("change", "stand", "words"),
    [
        ({"status": {}}, ObjectState.UNSURE, "was not looked at by Kueue yet"),
        ({"metadata": {"generation": 3}}, ObjectState.UNSURE, "was not looked at by Kueue yet"),
        (
            {"status": {"conditions": [{"type": "Active", "status": "False", "message": "flavor gone"}]}},
            ObjectState.UNSURE,
            "is not active: flavor gone",
        ),
        ({"spec": {"stopPolicy": "HoldAndDrain"}}, ObjectState.HELD, "is held: stopPolicy HoldAndDrain"),
        ({"metadata": {"deletionTimestamp": "now"}}, ObjectState.UNSURE, "is being deleted"),
        ({"spec": {"cohortName": "other"}}, ObjectState.WRONG, "has another spec.cohortName"),
    ],
)
def test_what_kueue_says_of_a_queue(change: dict[str, Any], stand: ObjectState, words: str) -> None:
    seen = held(two_teams())
    queue = queue_of(seen, "ClusterQueue")
    for key, value in change.items():
        queue[key] = {**queue[key], **value} if key != "status" else value
    (found,) = bad(two_teams(), seen)
    assert (found.state, found.why) == (stand, words)
    (finding,) = findings([found])
    assert finding.verdict is (Verdict.WARN if stand is ObjectState.HELD else Verdict.FAIL)
    assert str(found) == f"clusterqueue/{queue['metadata']['name']} {words}" == finding.message
    assert unsure([found]) is (stand is ObjectState.UNSURE)


def test_a_local_queue_says_nothing_that_its_queue_does_not_say() -> None:
    seen = held(two_teams())
    queue_of(seen, "LocalQueue")["status"] = {
        "conditions": [{"type": "Active", "status": "False", "reason": "ClusterQueueIsInactive"}]
    }
    assert bad(two_teams(), seen) == []


@pytest.mark.parametrize(
    ("status", "stand"),
    [({}, ObjectState.UNSURE), ({"state": "Unknown"}, ObjectState.UNSURE), ({"state": "Closed"}, ObjectState.HELD)],
)
def test_what_volcano_says_of_a_queue(status: Any, stand: ObjectState) -> None:
    scheduling = with_backend(two_teams(), "volcano")
    seen = held(scheduling)
    queue_of(seen, "Queue")["status"] = status
    assert [it.state for it in bad(scheduling, seen)] == [stand]


def test_a_quota_that_is_not_counted_yet() -> None:
    scheduling = with_backend(two_teams(), "default")
    seen = held(scheduling)
    queue_of(seen, "ResourceQuota")["status"] = {}
    assert [it.state for it in bad(scheduling, seen)] == [ObjectState.UNSURE]


def test_waiting_changes_nothing_where_something_is_wrong() -> None:
    scheduling = two_teams()
    seen: list[Any] = held(scheduling)
    queue_of(seen, "ClusterQueue")["status"] = {}
    assert unsure(object_statuses(objects_of(scheduling), seen))
    seen[0] = None
    assert not unsure(object_statuses(objects_of(scheduling), seen))


def test_objects_are_asked_for_in_their_own_version() -> None:
    refs = [name_of(entry) for entry in objects_of(two_teams())]
    kinds = {ref.kind for ref in refs}
    assert {"clusterqueue.v1beta2.kueue.x-k8s.io", "configmap"} <= kinds
    assert [ref.namespace for ref in refs if ref.kind == "configmap"] == ["kube-system"]


SUPPLY = gpus("a100", 4)
BEFORE = site(SUPPLY, clusters=(cluster("a", share(SUPPLY, 16)), cluster("b", share(SUPPLY, 8))))
AFTER = site(SUPPLY, clusters=(cluster("a", share(SUPPLY, 8)), cluster("new", pinned=("a100-4",))))


def test_the_way_back_has_the_old_objects_as_the_add_on_has_them() -> None:
    objects = restored(BEFORE)
    assert [{**it, "metadata": {**it["metadata"], "labels": None}} for it in objects] == [
        {**it, "metadata": {**it["metadata"], "labels": None}} for it in deepcopy(objects_of(BEFORE))
    ]
    assert all(it["metadata"]["labels"].items() >= LABELS.items() for it in objects)


def test_its_labels_are_the_add_ons() -> None:
    plugin = addon_action()
    assert {**plugin.LABELS, "pai-install/addon": "virtual_clusters"} == LABELS


def test_only_what_was_new_is_taken_away() -> None:
    gone = [f"{ref.kind.partition('.')[0]}/{ref.name}" for ref in leftovers(BEFORE, AFTER)]
    assert "clusterqueue/new" in gone
    assert "resourceflavor/a100.of.new" in gone
    assert gone.index("clusterqueue/new") < gone.index("resourceflavor/a100.of.new")
    assert not {"clusterqueue/a", "configmap/pai-install-virtual-clusters"} & set(gone)
    assert leftovers(BEFORE, BEFORE) == []


def test_labels_of_nodes_are_as_before() -> None:
    nodes = [{"metadata": {"name": name, "labels": labels}} for name, labels in labels_of(AFTER).items()]
    found = relabelled(BEFORE, [*nodes, {"metadata": {"name": "master", "labels": {SKU_LABEL: "x"}}}, {}])
    assert found == {"a100-4": {"pai-install/pinned": ""}}
    assert relabelled(BEFORE, []) == {}
