"""Requests of the client as calls of kubectl. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pai_install.cluster.client import FIELD_MANAGER, Impersonation, LogWindow, Patch, Select
from pai_install.cluster.transport import Call
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject

_READ_TIMEOUT_S = 60.0
_REQUEST_TIMEOUT = "--request-timeout=30s"
_MOST_LOGS = 2000
# kubectl logs wants a selector: the pods without this label are all
_EVERY_POD = "!pai-install/none"


def get(ref: Ref) -> Call:
    """One object, nothing where there is none."""
    return _read("get", ref.kind, ref.name, *_in(ref.namespace), "--output=json", "--ignore-not-found")


def listing(select: Select) -> Call:
    """The objects of a selection."""
    return _read("get", ",".join(select.kinds), *_where(select), "--output=json")


def raw(path: str) -> Call:
    """A path of the API server."""
    return _read("get", "--raw", path)


def watch(select: Select) -> Call:
    """Objects and their changes, as one line of JSON each."""
    words = ("get", ",".join(select.kinds), *_where(select), "--output=json", "--watch", "--output-watch-events")
    return Call(words, reads=True)


def apply(objects: Sequence[JsonObject], *, force: bool) -> Call:
    """Server-side apply."""
    how = ["--server-side", f"--field-manager={FIELD_MANAGER}", *(["--force-conflicts"] if force else [])]
    return Call(("apply", *how, "--filename=-", "--output=json"), _list(objects), timeout_s=300)


def create(objects: Sequence[JsonObject]) -> Call:
    """New objects."""
    words = ("create", f"--field-manager={FIELD_MANAGER}", "--filename=-", "--output=json")
    return Call(words, _list(objects), timeout_s=300)


def dry_run(objects: Sequence[JsonObject], identity: Impersonation | None) -> Call:
    """New objects in the name of an identity, without making them."""
    who = _as(identity) if identity else ()
    words = ("create", *who, "--dry-run=server", f"--field-manager={FIELD_MANAGER}", "--filename=-", "--output=name")
    return Call(words, _list(objects), reads=True)


def patch(change: Patch) -> Call:
    """Returns the change of one object. Its content is in no argument, because others on the machine can
    read arguments.
    """
    ref = change.ref
    part = (f"--subresource={change.part}",) if change.part else ()
    how = (f"--type={change.kind}", "--patch-file=/dev/stdin", f"--field-manager={FIELD_MANAGER}", *part)
    words = ("patch", ref.kind, ref.name, *_in(ref.namespace), *how, "--output=json", _REQUEST_TIMEOUT)
    return Call(words, json.dumps(change.body))


def delete(refs: Sequence[Ref], wait_s: float) -> Call:
    """Deletes objects of one kind and namespace."""
    names = [ref.name for ref in refs]
    return _delete((refs[0].kind, *names, *_in(refs[0].namespace)), wait_s)


def delete_selected(select: Select, wait_s: float) -> Call:
    """Returns the deletion of a selection. Raises ValueError for an unlimited selection."""
    if not (select.labels or select.fields):
        raise ValueError("delete_selected needs labels or fields")
    return _delete((",".join(select.kinds), *_where(select), "--cascade=foreground"), wait_s)


def _delete(words: Sequence[str], wait_s: float) -> Call:
    wait = ("--wait=true", f"--timeout={wait_s:g}s") if wait_s else ("--wait=false",)
    return Call(("delete", *words, "--ignore-not-found", *wait), timeout_s=wait_s + _READ_TIMEOUT_S)


def wait_for(what: Select | Sequence[Ref], condition: str, timeout_s: float) -> Call:
    """Returns a wait for a condition of all objects. All refs have the same kind and namespace."""
    if isinstance(what, Select):
        every = [] if what.labels or what.fields else ["--all"]
        words = [",".join(what.kinds), *_where(what), *every]
    else:
        words = [*(f"{ref.kind}/{ref.name}" for ref in what), *_in(what[0].namespace)]
    argv = ("wait", *words, f"--for={condition}", f"--timeout={timeout_s:g}s")
    return Call(argv, may_fail=True, reads=True, timeout_s=timeout_s + _READ_TIMEOUT_S)


def execute(pod: Ref, argv: Sequence[str], container: str, stdin: str, timeout_s: float) -> Call:
    """A command in a container."""
    how = [*_in(pod.namespace), *_container(container), *(["--stdin"] if stdin else [])]
    return Call(("exec", pod.name, *how, "--", *argv), stdin, may_fail=True, timeout_s=timeout_s)


def logs(pod: Ref, container: str, tail: int, *, previous: bool) -> Call:
    """A container's log."""
    how = [*_in(pod.namespace), *_container(container), f"--tail={tail}", *(["--previous"] if previous else [])]
    return _read("logs", pod.name, *how)


def logs_of(select: Select, tail: int) -> Call:
    """The logs of all pods of a selection, each line with its pod."""
    how = (*_in(select.namespace), f"--selector={select.labels or _EVERY_POD}", f"--tail={tail}")
    words = ("logs", *how, "--prefix", "--all-containers", f"--max-log-requests={_MOST_LOGS}")
    return Call(words, may_fail=True, reads=True, timeout_s=300)


def log_lines(pod: Ref, window: LogWindow, container: str) -> Call:
    """A container's log line by line."""
    how = [f"--tail={window.tail}", *([f"--since-time={window.since}"] if window.since else [])]
    how += ["--follow"] if window.follow else []
    return Call(("logs", pod.name, *_in(pod.namespace), *_container(container), *how), reads=True)


def evict(pod: Ref, grace_s: int | None) -> Call:
    """Returns an eviction request. kubectl has no verb for it: its drain would choose the pods."""
    body: dict[str, object] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
    }
    if grace_s is not None:
        body["deleteOptions"] = {"gracePeriodSeconds": grace_s}
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
    return Call(("create", f"--raw={path}", "--filename=-", _REQUEST_TIMEOUT), json.dumps(body), may_fail=True)


def request_token(account: Ref, lasting_s: int, bound: JsonObject) -> Call:
    """Returns the request of a service account token, which ends with its bound object."""
    metadata = bound["metadata"]
    names = {"apiVersion": bound["apiVersion"], "kind": bound["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": lasting_s, "boundObjectRef": names},
    }
    path = f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}/token"
    return Call(("create", f"--raw={path}", "--filename=-", _REQUEST_TIMEOUT), json.dumps(body))


def _read(*words: str) -> Call:
    return Call((*words, _REQUEST_TIMEOUT), reads=True, timeout_s=_READ_TIMEOUT_S)


def _in(namespace: str) -> tuple[str, ...]:
    return (f"--namespace={namespace}",) if namespace else ()


def _container(name: str) -> tuple[str, ...]:
    return (f"--container={name}",) if name else ()


def _where(select: Select) -> tuple[str, ...]:
    words = list(_in(select.namespace)) or ["--all-namespaces"]
    words += [f"--selector={select.labels}"] if select.labels else []
    words += [f"--field-selector={select.fields}"] if select.fields else []
    return tuple(words)


def _as(identity: Impersonation) -> tuple[str, ...]:
    uid = (f"--as-uid={identity.uid}",) if identity.uid else ()
    return (f"--as={identity.user}", *(f"--as-group={group}" for group in identity.groups), *uid)


def _list(objects: Sequence[JsonObject]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}, default=dict)
