"""Changes of existing objects over HTTP: patches, deletions, evictions, and waits for their end."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain, repeat
from typing import Any

from pai_install.cluster.client import (
    FIELD_MANAGER,
    ApiError,
    Eviction,
    EvictionOutcome,
    Patch,
    PatchKind,
    Select,
    Token,
)
from pai_install.cluster.conditions import GONE, met
from pai_install.cluster.http import ApiRequest
from pai_install.cluster.http_api import Api
from pai_install.cluster.http_errors import refusal
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, text

MANAGER = ("fieldManager", FIELD_MANAGER)
_PATCHES = {
    PatchKind.MERGE: "application/merge-patch+json",
    PatchKind.STRATEGIC: "application/strategic-merge-patch+json",
    PatchKind.JSON: "application/json-patch+json",
}
# between creations that one quota counts. The API server itself has tried each three times
_QUOTA_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
_PAUSES_S = (0.05, 0.1, 0.2, 0.5)
_LONGEST_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """An object that was seen. uid: tells it from a later one of the same name, "" where it was not asked for."""

    ref: Ref
    uid: str = ""


def selected(api: Api, select: Select) -> tuple[ObservedObject, ...]:
    """The objects of a selection."""
    found = []
    for name in select.kinds:
        kind = api.kind(name)
        for item in api.items(kind, select)[0]:
            metadata = child(item, "metadata")
            ref = Ref(kind.full_name, text(metadata.get("name")), text(metadata.get("namespace")))
            found.append(ObservedObject(ref, text(metadata.get("uid"))))
    return tuple(found)


def read(api: Api, ref: Ref) -> JsonObject | None:
    """An object, or None."""
    try:
        return api.object(ApiRequest(f"get {ref}", api.place(ref)))
    except ApiError as error:
        if error.reason != "NotFound":
            raise
        return None


def created(api: Api, item: JsonObject) -> JsonObject:
    """The state of a new object. Repeats a request that many others in the namespace keep from the quota."""
    for pause in _QUOTA_PAUSES_S:
        try:
            return api.change("create", item, (MANAGER,))
        except ApiError as error:
            # An existing object is "AlreadyExists". A conflict is that of the quota, and nothing was made.
            if error.reason != "Conflict":
                raise
        time.sleep(pause)
    return api.change("create", item, (MANAGER,))


def patched(api: Api, change: Patch) -> JsonObject:
    """The new state of an object."""
    path = api.place(change.ref, *((change.part,) if change.part else ()))
    return api.object(
        ApiRequest(
            f"patch {change.ref}",
            path,
            "PATCH",
            (MANAGER,),
            json.dumps(change.body, default=dict).encode(),
            _PATCHES[change.kind],
            reads=False,
        )
    )


def delete(api: Api, objects: Sequence[ObservedObject], cascade: str, wait_s: float) -> None:
    """Deletes objects and ignores missing ones. Raises ApiError "Timeout" where one is still there after wait_s."""
    ended = [found for one in objects if (found := _deleted(api, one, cascade)) is not None]
    if wait_s and not settled(api, ended, GONE, wait_s):
        raise ApiError(
            "cannot delete all objects: Timeout",
            reason="Timeout",
            details="still there: " + ", ".join(str(one.ref) for one in ended if not _met(api, one, GONE)),
            remedy="pai-install status",
        )


def settled(api: Api, objects: Sequence[ObservedObject], condition: str, timeout_s: float) -> bool:
    """Whether all objects came to a condition in time."""
    end = time.monotonic() + timeout_s
    left = list(objects)
    for pause in chain(_PAUSES_S, repeat(_LONGEST_PAUSE_S)):
        left = [one for one in left if not _met(api, one, condition)]
        rest = end - time.monotonic()
        if not left or rest <= 0:
            break
        time.sleep(min(pause, rest))
    return not left


def evicted(api: Api, pod: Ref, grace_s: int | None) -> Eviction:
    """The result of an eviction request."""
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
    }
    if grace_s is not None:
        body["deleteOptions"] = {"gracePeriodSeconds": grace_s}
    what = f"evict {pod}"
    # a refusal for too many requests is the answer of the disruption budget
    answer = api.answer(_post(what, api.place(pod, "eviction"), body, patient=False))
    if answer.ok:
        return Eviction(pod, EvictionOutcome.EVICTED)
    error = refusal(answer.host, what, answer.status, answer.body)
    if error.reason == "NotFound":
        return Eviction(pod, EvictionOutcome.GONE)
    # A pod with two disruption budgets is refused with status 500, and only the message names them.
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS or "isruption" in error.details:
        return Eviction(pod, EvictionOutcome.BLOCKED, error.details)
    raise error


def new_token(api: Api, account: Ref, lasting_s: int, bound: JsonObject) -> Token:
    """A token of a service account."""
    metadata = bound["metadata"]
    names = {"apiVersion": bound["apiVersion"], "kind": bound["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": lasting_s, "boundObjectRef": names},
    }
    made = api.object(_post(f"create a token of {account}", api.place(account, "token"), body))
    status = child(made, "status")
    return Token(text(status.get("token")), text(status.get("expirationTimestamp")))


def _post(what: str, path: str, body: Mapping[str, Any], *, patient: bool = True) -> ApiRequest:
    return ApiRequest(what, path, "POST", body=json.dumps(body).encode(), reads=False, patient=patient)


def _deleted(api: Api, one: ObservedObject, cascade: str) -> ObservedObject | None:
    """Deletes an object. Returns it with its uid, or None if there was none."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": cascade}
    # Another object may have got the name since this one was seen.
    if one.uid:
        options["preconditions"] = {"uid": one.uid}
    what = f"delete {one.ref}"
    body = json.dumps(options).encode()
    try:
        found = api.object(ApiRequest(what, api.place(one.ref), "DELETE", body=body, reads=False))
    except ApiError as error:
        # a conflict: another object has the name meanwhile
        if error.reason == "NotFound" or (one.uid and error.reason == "Conflict"):
            return None
        raise
    # Some kinds answer with a Status that has the uid in its details, others with the object.
    uid = text(child(found, "details").get("uid")) or text(child(found, "metadata").get("uid"))
    return ObservedObject(one.ref, one.uid or uid)


def _met(api: Api, one: ObservedObject, condition: str) -> bool:
    item = read(api, one.ref)
    if item is not None and one.uid and text(child(item, "metadata").get("uid")) != one.uid:
        item = None
    return met(item, condition)
