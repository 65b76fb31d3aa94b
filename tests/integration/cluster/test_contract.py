"""The contract of ClusterClient, for each transport, on a real API server."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from threading import Timer
from typing import Any

import pytest

from pai_install.cluster.client import (
    ApiError,
    ClusterClient,
    EvictionOutcome,
    Impersonation,
    Patch,
    PatchKind,
    Select,
)
from pai_install.kube.model import Ref
from tests.errors import raises
from tests.integration.clients import TRANSPORTS, client_of
from tests.integration.control_plane import Api, Json

MARK = {"contract": "yes"}


@pytest.fixture(scope="module", params=TRANSPORTS)
def client(request: pytest.FixtureRequest, api: Api) -> ClusterClient:
    return client_of(request.param, api)


@pytest.fixture
def place(client: ClusterClient, request: pytest.FixtureRequest) -> str:
    """A new namespace."""
    name = f"t{time.time_ns():x}"
    client.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    return name


def note(place: str, name: str, **data: str) -> Json:
    """A ConfigMap."""
    metadata = {"name": name, "namespace": place, "labels": MARK}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(place: str, name: str) -> Json:
    spec = {"containers": [{"name": "main", "image": "none"}], "terminationGracePeriodSeconds": 0}
    metadata = {"name": name, "namespace": place, "labels": MARK}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def names(items: Any) -> list[str]:
    return sorted(item["metadata"]["name"] for item in items)


def refused(action: Callable[[], object]) -> str:
    """The reason of a refusal."""
    with raises("api-request-refused", kind=ApiError) as caught:
        action()
    error = caught.value
    assert isinstance(error, ApiError)
    assert error.details
    return error.reason


def test_objects_are_created_and_read(client: ClusterClient, place: str) -> None:
    made = client.create([note(place, "a", word="1"), note(place, "b")])
    assert names(made) == ["a", "b"]
    assert all(one["metadata"]["uid"] for one in made)
    a, missing = client.get([Ref("configmap", "a", place), Ref("configmap", "no", place)])
    assert a is not None
    assert (a["kind"], a["data"], missing) == ("ConfigMap", {"word": "1"}, None)
    assert client.get([]) == client.create([]) == ()


def test_lists_of_several_selections(client: ClusterClient, place: str) -> None:
    client.create(
        [note(place, "a"), {**note(place, "b"), "metadata": {"name": "b", "namespace": place}}, pod(place, "p")]
    )
    both, marked, one, nowhere = client.list(
        Select(("configmaps", "pods"), place),
        Select(("configmaps",), labels="contract=yes", fields=f"metadata.namespace={place}"),
        Select(("pod",), place, fields="metadata.name=p"),
        Select(("pods",), "no-such-place"),
    )
    assert (names(both), names(marked), names(one), nowhere) == (["a", "b", "p"], ["a"], ["p"], ())
    # as kubectl, and not as the API server, which leaves them out
    assert {(item["apiVersion"], item["kind"]) for item in both} == {("v1", "ConfigMap"), ("v1", "Pod")}


def test_a_list_of_several_pages(client: ClusterClient, place: str) -> None:
    client.create([note(place, f"n{number:04}") for number in range(501)])
    (found,) = client.list(Select(("configmaps",), place))
    assert len(found) == 501


def test_a_short_list_of_outlines(client: ClusterClient, place: str) -> None:
    client.create([note(place, f"n{number}", a="b") for number in range(4)])
    (found,) = client.list(Select(("configmaps",), place, outlines=True, most=3))
    assert names(found) == ["n0", "n1", "n2"]
    assert {(item["apiVersion"], item["kind"], "data" in item) for item in found} == {("v1", "ConfigMap", False)}
    (found,) = client.list(Select(("configmaps",), place, most=2))
    assert [item["data"] for item in found] == [{"a": "b"}] * 2


@pytest.mark.parametrize(
    "name", ["node", "nodes", "Node", "deployments.apps", "deployment", "cronjobs.v1.batch", "pods.v1"]
)
def test_kinds_have_the_names_of_kubectl(client: ClusterClient, name: str) -> None:
    assert client.list(Select((name,), "no-such-place")) == ((),)


@pytest.mark.parametrize("name", ["queues", "jobs.example.org", "deployments.v9.apps"])
def test_a_kind_that_does_not_exist(client: ClusterClient, name: str) -> None:
    assert refused(lambda: client.list(Select((name,)))) == "NoSuchKind"
    assert refused(lambda: client.get([Ref(name, "x")])) == "NoSuchKind"
    thing = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}}
    assert refused(lambda: client.create([thing])) == "NoSuchKind"


def definition(group: str) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": schema}],
        },
    }


def test_a_kind_that_is_new(client: ClusterClient, request: pytest.FixtureRequest) -> None:
    group = f"{request.node.callspec.params['client']}.example.org"
    kind = f"widgets.{group}"
    assert refused(lambda: client.list(Select((kind,)))) == "NoSuchKind"
    client.create([definition(group)])
    assert client.wait([Ref("customresourcedefinition", kind)], "condition=Established", 60)
    made = eventually(
        lambda: client.create([{"apiVersion": f"{group}/v1beta1", "kind": "Widget", "metadata": {"name": "w"}}])
    )
    assert names(made) == ["w"]
    assert names(client.list(Select((kind,)))[0]) == ["w"]
    client.delete([Ref(f"widget.{group}", "w")], wait_s=10)
    assert client.list(Select((kind,))) == ((),)


def eventually(action: Callable[[], Any]) -> Any:
    """The first result. A kind is served some time after it is established."""
    end = time.monotonic() + 60
    while True:
        try:
            return action()
        except ApiError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def test_apply_is_server_side_and_takes_over_only_when_told(client: ClusterClient, api: Api, place: str) -> None:
    (made,) = client.apply([note(place, "a", ours="1")])
    path = f"/api/v1/namespaces/{place}/configmaps/a"
    fields = api.ask("GET", path)["metadata"]["managedFields"]
    assert [(one["manager"], one["operation"]) for one in fields] == [("pai-install", "Apply")]
    assert "managedFields" not in made["metadata"], "they are larger than most objects"
    path = f"{path}?fieldManager=other&force=true"
    api.ask("PATCH", path, note(place, "a", ours="2"), "application/apply-patch+yaml")
    assert refused(lambda: client.apply([note(place, "a", ours="3")])) == "Conflict"
    (taken,) = client.apply([note(place, "a", ours="3")], force=True)
    assert taken["data"] == {"ours": "3"}


def test_a_second_creation(client: ClusterClient, place: str) -> None:
    client.create([note(place, "a")])
    assert refused(lambda: client.create([note(place, "a")])) == "AlreadyExists"


def test_invalid_objects_and_namespaces_that_do_not_exist(client: ClusterClient, place: str) -> None:
    assert refused(lambda: client.create([note(place, "Not_A_Name")])) == "Invalid"
    assert refused(lambda: client.create([note("no-such-place", "a")])) == "NotFound"


def test_dry_runs_create_nothing(client: ClusterClient, place: str) -> None:
    client.dry_run([note(place, "a")])
    assert client.get([Ref("configmap", "a", place)]) == (None,)


@pytest.mark.parametrize("identity", [Impersonation("eve"), Impersonation("Ä öü", ("pai:users",), "4711")])
def test_dry_runs_in_the_name_of_others(client: ClusterClient, place: str, identity: Impersonation) -> None:
    with raises("api-request-refused", kind=ApiError) as caught:
        client.dry_run([note(place, "a")], identity)
    assert caught.value.reason == "Forbidden"
    assert f'"{identity.user}"' in caught.value.details
    client.dry_run([note(place, "a")], Impersonation(identity.user, (*identity.groups, "system:masters"), identity.uid))


def test_patches_of_all_sorts(client: ClusterClient, place: str) -> None:
    client.create([note(place, "a", x="1"), pod(place, "p")])
    ref = Ref("configmaps", "a", place)
    changes = [
        Patch(ref, {"data": {"y": "2"}}),
        Patch(ref, [{"op": "remove", "path": "/data/x"}], PatchKind.JSON),
        Patch(ref, {"metadata": {"annotations": {"z": "3"}}}, PatchKind.STRATEGIC),
        Patch(Ref("pod", "p", place), {"status": {"phase": "Failed"}}, part="status"),
    ]
    *_, last, status = client.patch(changes)
    assert (last["data"], last["metadata"]["annotations"]) == ({"y": "2"}, {"z": "3"})
    assert status["status"]["phase"] == "Failed"
    assert refused(lambda: client.patch([Patch(Ref("configmap", "no", place), {})])) == "NotFound"


def test_deletions(client: ClusterClient, place: str) -> None:
    client.create([note(place, "a"), note(place, "b"), note(place, "c"), pod(place, "p")])
    client.delete([Ref("configmap", "a", place), Ref("pod", "p", place), Ref("configmap", "no", place)], wait_s=20)
    assert names(client.list(Select(("configmaps", "pods"), place))[0]) == ["b", "c"]
    client.delete_selected(Select(("configmaps",), place, fields="metadata.name=b"))
    ended, kept = client.list(Select(("configmaps",), place))[0]
    # it ends with its dependents, for which a controller looks that is not here
    assert ended["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert (ended["metadata"]["name"], "deletionTimestamp" in kept["metadata"]) == ("b", False)
    with pytest.raises(ValueError, match="labels or fields"):
        client.delete_selected(Select(("configmaps",), place))


def test_a_deletion_that_a_finalizer_holds(client: ClusterClient, place: str) -> None:
    held = note(place, "a")
    held["metadata"]["finalizers"] = ["example.org/wait"]
    client.create([held])
    ref = Ref("configmap", "a", place)
    assert refused(lambda: client.delete([ref], wait_s=1)) == "Timeout"
    assert not client.wait([ref], "delete", 1)
    client.patch([Patch(ref, {"metadata": {"finalizers": None}})])
    assert client.wait([ref], "delete", 60)


def test_waits_for_conditions(client: ClusterClient, place: str) -> None:
    client.create([pod(place, "p")])
    ref, phase = Ref("pod", "p", place), "jsonpath={.status.phase}=Running"
    ready = {"type": "Ready", "status": "True"}
    assert not client.wait([ref], "condition=Ready", 1)
    started = Timer(
        1, lambda: client.patch([Patch(ref, {"status": {"phase": "Running", "conditions": [ready]}}, part="status")])
    )
    started.start()
    assert client.wait([ref], phase, 60)
    assert client.wait(Select(("pods",), place), phase, 60)
    assert client.wait(Select(("pods",), place, "contract=yes"), "condition=Ready", 60)
    assert client.wait([ref], "jsonpath={.status.conditions}", 60)
    assert not client.wait(Select(("pods",), place, "contract=no"), "condition=Ready", 5)
    assert refused(lambda: client.wait([Ref("pod", "no", place)], "condition=Ready", 5)) == "NotFound"
    assert client.wait([Ref("pod", "no", place)], "delete", 60)


def test_watches(client: ClusterClient, place: str) -> None:
    client.create([note(place, "a")])
    with closing(client.watch(Select(("configmaps",), place, "contract=yes"))) as events:  # type: ignore[type-var]
        told = (event for event in events if event.type != "BOOKMARK")
        first = next(told)
        client.patch([Patch(Ref("configmap", "a", place), {"data": {"x": "1"}})])
        client.delete([Ref("configmap", "a", place)])
        rest = [next(told) for _ in range(2)]
    assert [event.type for event in (first, *rest)] == ["ADDED", "MODIFIED", "DELETED"]
    assert rest[0].object["data"] == {"x": "1"}


def test_evictions_respect_budgets(client: ClusterClient, place: str) -> None:
    client.create([pod(place, "a"), pod(place, "b"), budget(place)])
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    refs = [Ref("pod", name, place) for name in ("a", "b", "no")]
    client.patch([Patch(ref, {"status": running}, part="status") for ref in refs[:2]])
    allowed = {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
    }
    client.patch([Patch(Ref("poddisruptionbudget", "b", place), {"status": allowed}, part="status")])
    found = client.evict(refs, grace_s=0)
    assert [one.outcome for one in found] == [EvictionOutcome.EVICTED, EvictionOutcome.BLOCKED, EvictionOutcome.GONE]
    assert "disruption budget" in found[1].message


def budget(place: str) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": place},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": MARK}},
    }


def test_tokens_end_with_their_object(client: ClusterClient, api: Api, place: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "alice", "namespace": place}}
    mark = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "alice.1", "namespace": place}}
    _, bound = client.create([account, mark])
    token = client.request_token(Ref("serviceaccount", "alice", place), 3600, bound)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    who = api.as_(token.text).ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
    assert who["status"]["userInfo"]["username"] == f"system:serviceaccount:{place}:alice"
    assert token.until


def test_raw_paths(client: ClusterClient) -> None:
    assert client.raw("/readyz") == "ok"
    assert "apiserver_requested_deprecated_apis" in client.raw("/metrics") or "apiserver_request_total" in client.raw(
        "/metrics"
    )
    assert refused(lambda: client.raw("/no-such-path")) in ("NotFound", "NoSuchKind")


def test_texts_of_others_steer_no_terminal(client: ClusterClient, place: str) -> None:
    client.create([note(place, "a", word="\x1b[2J")])
    (found,) = client.get([Ref("configmap", "a", place)])
    assert found is not None
    assert found["data"] == {"word": "\\u001b[2J"}
