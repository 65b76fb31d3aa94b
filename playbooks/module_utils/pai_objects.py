"""Kubernetes objects on a control-plane node: apply changes, delete obsolete objects, wait for readiness."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from ansible.module_utils.pai_kubectl import Answer, Kubectl, KubectlError
from ansible.module_utils.pai_managed import GOING, object_versions

MANAGER = "pai-install"
OURS = "app.kubernetes.io/managed-by=pai-install"
# annotation of an object that others use too: where it is no longer wanted, it stays without what we set
# KEEP: it stays whole, and without our label
REMOVAL, RELEASE, KEEP = "pai-install/removal", "release", "keep"
# annotation of a definition: names of the objects that its controller makes by itself, and that go with it
SELF_MADE = "pai-install/self-made"
# annotation of an object that an admin made, and of which only what we set is ours
ADOPTED = "pai-install/adopted"
# What others stand on comes first, and is taken away last.
FIRST = ("Namespace", "CustomResourceDefinition")
# how long pods whose Deployment is gone may take to end before their namespace counts as used by others
ENDING_S = 60
# how long a rollout that is complete may take to say so
SETTLED_S = 2
# how often a definition is asked for that has no state yet
SERVED_TRIES = 10
# A new ResourceQuota refuses new objects until the cluster has counted the old ones. The webhook of a controller that
# has just restarted is refused until each machine knows the address of its new pod.
TRANSIENT_S = 30
TRANSIENT = ("status unknown for quota", "failed calling webhook")


class ObjectError(Exception):
    """The API server refused a request. evidence: heading -> lines."""

    def __init__(self, message: str, evidence: dict[str, list[str]] | None = None) -> None:
        super().__init__(message)
        self.evidence = evidence or {}


def identity(entry: dict[str, Any]) -> tuple[str, str]:
    """Namespace (empty for the cluster's own) and kind/name of an object, lower case kind."""
    metadata = entry["metadata"]
    return metadata.get("namespace", ""), f"{entry['kind'].lower()}/{metadata['name']}"


def expectations(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects as they are now, for the record. Raises ObjectError where one is still being deleted."""
    named = [{"kind": "object", "name": name, "namespace": namespace} for namespace, name in map(identity, objects)]
    seen = object_versions(named)
    deleted = [f"{name} in {namespace}" if namespace else name for (namespace, name), it in seen.items() if it == GOING]
    if deleted:
        raise ObjectError(
            f"still being deleted: {', '.join(deleted)}. It goes when no pod names it any longer, "
            "finished ones included: delete those, then apply again"
        )
    return [{**entry, "version": seen.get((entry["namespace"], entry["name"]), "")} for entry in named]


def in_order(objects: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Returns the objects in non-empty batches. Each batch depends on the earlier ones."""
    entries = list(objects)
    batches = [[entry for entry in entries if entry["kind"] == kind] for kind in FIRST]
    batches.append([entry for entry in entries if entry["kind"] not in FIRST])
    return [batch for batch in batches if batch]


class Objects:
    """Works on the cluster through one kubectl."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def difference(self, objects: list[dict[str, Any]]) -> tuple[bool, str, str]:
        """Whether any object is not as it should be, the difference, and why kubectl could not tell (else empty)."""
        if not objects:
            return False, "", ""
        status, diff, errors = self._kubectl.run("diff", *_how(), data=_list(objects))
        # kubectl diff in place of a comparison here: the API server itself fills in defaults before it compares.
        # 0: the same, 1: differs; more: it cannot tell, for example because the namespace is one of the objects
        return status != 0, diff, errors.strip() if status > 1 else ""

    def apply(self, objects: list[dict[str, Any]]) -> None:
        """Makes objects as they should be. Raises ObjectError with the API server's words."""
        for batch in in_order(objects):
            if own := [entry for entry in batch if not _is_adopted(entry)]:
                # The API server refuses a changed value of a PriorityClass, so the old object goes before the new one
                # comes.
                self._make_way([entry for entry in own if entry["kind"] == "PriorityClass"])
                self._apply(own)
            # Server-side apply would take all fields that an admin once applied. A later apply would then drop them.
            for entry in filter(_is_adopted, batch):
                self._complete(entry)
            if batch[0]["kind"] == "CustomResourceDefinition":
                # Objects of a kind that the API server does not serve yet are refused, so the next batch waits for its
                # definition.
                self._wait_until_served([name for _namespace, name in map(identity, batch)])

    def _apply(self, objects: list[dict[str, Any]]) -> None:
        end = time.monotonic() + TRANSIENT_S
        while True:
            status, _out, errors = self._kubectl.run("apply", *_how(), data=_list(objects))
            if status == 0:
                return
            # All other refusals are final: a second try would only delay the message by half a minute.
            if time.monotonic() > end or not any(words in errors for words in TRANSIENT):
                raise ObjectError(f"kubectl apply failed: {errors.strip()}")
            time.sleep(0.5)

    def _make_way(self, classes: list[dict[str, Any]]) -> None:
        """Deletes our PriorityClasses with changed values, because their values are immutable.

        Existing pods keep their priority.
        """
        if not classes:
            return
        line = "{.metadata.name} {.value} {.preemptionPolicy}{'\\n'}"
        shown = "--output=jsonpath={range .items[*]}" + line + "{end}"
        answer = self._kubectl.call("get", "priorityclasses", f"--selector={OURS}", shown)
        if not answer.ok:
            raise ObjectError(f"priority classes cannot be seen: {answer.message}")
        seen = dict(line.split(" ", 1) for line in answer.out.splitlines())
        wanted = {entry["metadata"]["name"]: _class(entry) for entry in classes}
        if others := [name for name in wanted if seen.get(name, wanted[name]) != wanted[name]]:
            answer = self._kubectl.call("delete", "priorityclasses", *others, "--ignore-not-found")
            if not answer.ok:
                raise ObjectError(f"{', '.join(others)} could not be replaced: {answer.message}")

    def _complete(self, entry: dict[str, Any]) -> None:
        """Sets our fields of an object that an admin made, and takes none of theirs.

        `kubectl apply` would make us the owner of all that the admin once applied, and the next time drop it.
        """
        namespace, name = identity(entry)
        where = [f"--namespace={namespace}"] if namespace else []
        own = json.dumps({key: value for key, value in entry.items() if key not in ("apiVersion", "kind")})
        words = ["patch", *where, name, "--type=merge", f"--field-manager={MANAGER}", f"--patch={own}"]
        answer = self._kubectl.call(*words)
        if not answer.ok:
            raise ObjectError(f"{name} cannot be taken over: {answer.message}")

    def _wait_until_served(self, definitions: list[str]) -> None:
        words = ["wait", "--for=condition=Established", "--timeout=60s", *definitions]
        for left in reversed(range(SERVED_TRIES)):
            status, _out, errors = self._kubectl.run(*words)
            if status == 0:
                return
            # one that was made a moment ago has no conditions yet, which kubectl takes for an error
            if not left or "accessor error" not in errors:
                raise ObjectError(f"the API server does not serve {', '.join(definitions)}: {errors.strip()}")
            time.sleep(0.5)

    def delete(self, namespace: str, name: str) -> tuple[bool, str]:
        """Deletes one object. Returns whether deletion started, and otherwise why the object stays (empty: it was
        missing).

        Deletes only objects with our label, no namespace with running pods or data, and no definition with remaining
        objects. A shared object loses our fields only. Raises ObjectError if the API server refuses.
        """
        where = [f"--namespace={namespace}"] if namespace else []
        kind, _, plain = name.partition("/")
        line = "{.kind} {.apiVersion} {.metadata.annotations." + REMOVAL.replace(".", "\\.") + "}{'\\n'}"
        shown = "--output=jsonpath={range .items[*]}" + line + "{end}"
        # The label decides, and not the name: an object that an admin created under this name stays.
        own = [kind, f"--selector={OURS}", f"--field-selector=metadata.name={plain}", shown]
        status, out, errors = self._kubectl.call("get", *where, *own)
        # The definition is gone, and its objects went with it.
        if status != 0 and "the server doesn't have a resource type" in errors:
            return False, ""
        if status != 0:
            raise ObjectError(f"{name} cannot be seen: {errors.strip()}")
        if not out.strip():
            return False, ""
        shown_kind, version, *removal = out.split()
        if removal == [RELEASE]:
            self._release({"apiVersion": version, "kind": shown_kind}, namespace, plain)
            return False, f"{name} stays without what pai-install set: others use it, too"
        if removal == [KEEP]:
            self._keep(where, name)
            return False, f"{name} stays, and pai-install no longer manages it"
        if why := self._in_use(kind, plain):
            return False, why
        # kubectl would wait for finalizers, such as those of a claim that a pod still uses, and block the task.
        status, _out, errors = self._kubectl.run("delete", *where, name, "--ignore-not-found", "--wait=false")
        if status != 0:
            raise ObjectError(f"{name} could not be deleted: {errors.strip()}")
        return True, ""

    def delete_own(self, definitions: list[str]) -> list[str]:
        """Deletes all our objects of these definitions, in any add-on, and returns their names.

        Their running controller decides when a dependency is deleted. It keeps the objects that it creates, even if we
        set fields of them.
        """
        made = self._self_made(definitions) if definitions else {}
        found = self._delete_own(",".join(name for name, own in made.items() if not own))
        for kind, own in made.items():
            if own:
                found += self._delete_own(kind, ",".join(f"metadata.name!={it.partition('|/')[2]}" for it in own))
        return found

    def _delete_own(self, kinds: str, fields: str = "") -> list[str]:
        if not kinds:
            return []
        words = [kinds, "--all-namespaces", f"--selector={OURS}", *([f"--field-selector={fields}"] if fields else [])]
        answer = self._kubectl.call("delete", *words, "--wait=false", "--output=name")
        if not answer.ok:
            raise ObjectError(f"objects of {kinds} could not be deleted: {answer.message}")
        # it says so where there are none
        found = (name.partition("/") for name in answer.out.split() if "/" in name)
        return [f"{kind.partition('.')[0]}/{name}" for kind, _slash, name in found]

    def mounting(self, driver: str) -> list[str]:
        """Returns running pods (NAMESPACE/NAME) with volumes of a CSI driver. Only the driver can unmount them."""
        # A pod names a claim, and only the volume behind it names its driver.
        volumes = [
            it["spec"] for it in self._items("persistentvolumes") if it["spec"].get("csi", {}).get("driver") == driver
        ]
        claims = {(it["claimRef"]["namespace"], it["claimRef"]["name"]) for it in volumes if it.get("claimRef")}
        # The list of all pods is large, so a driver without claims does not ask for it.
        pods = self._items("pods", "--all-namespaces") if claims else []
        return [f"{it['metadata']['namespace']}/{it['metadata']['name']}" for it in pods if claims & set(_claims(it))]

    def instances(self, definitions: list[str], *, include_own: bool = True) -> list[str]:
        """Returns objects of these definitions (KIND NAMESPACE/NAME), without objects that their controller creates.

        Waits for objects under deletion.
        """
        made = self._self_made(definitions) if definitions else {}
        end = time.monotonic() + ENDING_S
        while made:
            found = [line.split(" ") for line in self._instances(",".join(made))]
            foreign = [line for line in found if line[0] not in {name for names in made.values() for name in names}]
            # An object under deletion may wait for its finalizer, which only the controller removes. It gets time
            # before it counts.
            if not any(deleted for _name, deleted, _owner in foreign) or time.monotonic() > end:
                left = [name for name, _deleted, owner in foreign if include_own or owner != MANAGER]
                return [name.replace("|/", " ").replace("|", " ") for name in left]
            time.sleep(1)
        return []

    def _self_made(self, definitions: list[str]) -> dict[str, list[str]]:
        """Returns definition -> the existing objects that its controller creates."""
        line = "{.metadata.name} {.spec.names.kind} {.metadata.annotations." + SELF_MADE + "}{'\\n'}"
        shown = "--output=jsonpath={range .items[*]}" + line + "{end}"
        # two names at least: kubectl answers one with the object itself, not with a list
        words = ["customresourcedefinitions", *definitions, definitions[0], "--ignore-not-found", shown]
        status, out, errors = self._kubectl.call("get", *words)
        if status != 0:
            raise ObjectError(f"definitions cannot be seen: {errors.strip()}")
        lines = (line.split() for line in out.splitlines())
        return {name: [f"{kind}|/{it}" for it in made] for name, kind, *made in lines}

    def _instances(self, kinds: str) -> list[str]:
        where = "{.metadata.namespace}/{.metadata.name} {.metadata.deletionTimestamp} "
        line = "{.kind}|" + where + "{.metadata.labels.app\\.kubernetes\\.io/managed-by}{'\\n'}"
        shown = "--output=jsonpath={range .items[*]}" + line + "{end}"
        status, out, errors = self._kubectl.call("get", kinds, "--all-namespaces", shown)
        if status != 0:
            raise ObjectError(f"objects of {kinds} cannot be seen: {errors.strip()}")
        return out.splitlines()

    def _items(self, *words: str) -> list[dict[str, Any]]:
        try:
            return self._kubectl.items(*words)
        except KubectlError as error:
            raise ObjectError(f"{words[0]} cannot be seen: {error}") from error

    def _release(self, what: dict[str, Any], namespace: str, name: str) -> None:
        """Gives up all our fields of an object with an empty apply.

        An apply sets a foreign mapping to null if only we have entries in it. If the kind forbids this, a patch removes
        the entries first.
        """
        where = {"namespace": namespace} if namespace else {}
        bare = {**what, "metadata": {"name": name, **where}}
        answer = self._kubectl.run("apply", *_how(), data=_list([bare]))
        # Some kinds forbid null in place of a mapping, as Volcano's queues do. Then our entries go first, by a merge
        # patch.
        if not answer.ok and (entries := self._entries(bare)):
            words = [*([f"--namespace={namespace}"] if namespace else []), identity(bare)[1], "--type=merge"]
            answer = self._kubectl.call("patch", *words, f"--field-manager={MANAGER}", f"--patch={json.dumps(entries)}")
            answer = self._kubectl.run("apply", *_how(), data=_list([bare])) if answer.ok else answer
        if not answer.ok:
            raise ObjectError(f"cannot give back {name}: {answer.message}")

    def _keep(self, where: list[str], name: str) -> None:
        label, _, _ = OURS.partition("=")
        own = json.dumps({"metadata": {"labels": {label: None}, "annotations": {REMOVAL: None}}})
        answer = self._kubectl.call(
            "patch", *where, name, "--type=merge", f"--field-manager={MANAGER}", f"--patch={own}"
        )
        if not answer.ok:
            raise ObjectError(f"cannot remove the label of {name}: {answer.message}")

    def _entries(self, bare: dict[str, Any]) -> dict[str, Any]:
        """A merge patch without our entries of mappings that others own, and of which only we have entries."""
        namespace, name = identity(bare)
        where = [f"--namespace={namespace}"] if namespace else []
        try:
            found = self._kubectl.get(*where, name, "--show-managed-fields")
        except KubectlError as error:
            raise ObjectError(f"cannot read {name}: {error}") from error
        rows = found["metadata"].get("managedFields", [])
        own = [row["fieldsV1"] for row in rows if row.get("manager") == MANAGER and row.get("operation") == "Apply"]
        others = [row["fieldsV1"] for row in rows if row.get("manager") != MANAGER]
        return _entries_in(own[0], others) if own else {}

    def _in_use(self, kind: str, name: str) -> str:
        if kind == "namespace":
            left = self._left(name)
            return f"namespace {name} stays: {', '.join(left[:3])} is there" if left else ""
        if kind == "customresourcedefinition":
            left = self.instances([name])
            return f"{name} stays: {len(left)} objects of that kind are there" if left else ""
        return ""

    def _left(self, namespace: str) -> list[str]:
        """Returns the running pods and the data in a namespace. Waits for pods under deletion."""
        where = f"--namespace={namespace}"
        kinds = ["pods,persistentvolumeclaims", where]
        if not self._names(kinds):
            return []
        # Pods of a removed Deployment need their grace period. They would make the namespace look used.
        self._kubectl.run("wait", "--for=delete", "pods", "--all", where, f"--timeout={ENDING_S}s")
        return self._names(kinds)

    def _names(self, words: list[str]) -> list[str]:
        status, out, errors = self._kubectl.call("get", *words, "--output=name")
        if status != 0:
            raise ObjectError(f"kubectl get {words[0]} failed: {errors.strip()}")
        return out.split()

    def wait_for(self, entry: str, seconds: int) -> None:
        """Waits for a rollout (NAMESPACE KIND/NAME). Raises ObjectError with pods and events when it does not end."""
        namespace, _, target = entry.partition(" ")
        where = ["--namespace", namespace]
        # A rollout that is complete needs no look at its pods, and no pod of it may be deleted.
        if self._complete_within(SETTLED_S, where, target).ok:
            return
        self._start_anew(where, target)
        status, out, errors = self._complete_within(seconds, where, target)
        if status == 0:
            return
        raise ObjectError(
            f"{target} in {namespace} is not complete after {seconds} s: {(errors or out).strip()}",
            {
                "pods": self._lines([*where, "get", "pods", "--output=wide"]),
                # Events are sorted by time, since kubectl sorts them by name. The last ones say what went wrong.
                "events": self._lines([*where, "get", "events", "--sort-by=.lastTimestamp"])[-20:],
            },
        )

    def _complete_within(self, seconds: int, where: list[str], target: str) -> Answer:
        return self._kubectl.run(*where, "rollout", "status", f"--timeout={seconds}s", target)

    def _start_anew(self, where: list[str], target: str) -> None:
        """Deletes the crashing pods of a rollout, because the cause of their crashes may be repaired.

        Without this, the kubelet restarts them after up to five minutes, with a ConfigMap that is up to one minute old.
        """
        try:
            labels = self._kubectl.get(*where, target)["spec"]["selector"]["matchLabels"]
            selector = ",".join(f"{key}={value}" for key, value in labels.items())
            pods = self._kubectl.items("pods", *where, f"--selector={selector}")
        except (KubectlError, LookupError, TypeError, AttributeError):
            return  # what is wrong, the wait says
        if crashing := [it["metadata"]["name"] for it in pods if _crashes(it)]:
            self._kubectl.call(*where, "delete", "pods", *crashing, "--ignore-not-found", "--wait=false")

    def _lines(self, words: list[str]) -> list[str]:
        return self._kubectl.call(*words).out.splitlines()


def _class(entry: dict[str, Any]) -> str:
    """Returns the immutable fields of a PriorityClass."""
    return f"{entry['value']} {entry.get('preemptionPolicy', 'PreemptLowerPriority')}"


def _crashes(pod: dict[str, Any]) -> bool:
    """Whether a container of a pod has ended before and is not ready now."""
    states = pod.get("status", {}).get("containerStatuses") or ()
    return any(row.get("restartCount") and not row.get("ready") for row in states)


def _claims(pod: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns (namespace, name) of the claims that a pod mounts, or [] if it has ended."""
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return []
    named = (it["persistentVolumeClaim"] for it in pod["spec"].get("volumes", ()) if "persistentVolumeClaim" in it)
    return [(pod["metadata"]["namespace"], it["claimName"]) for it in named]


def _is_adopted(entry: dict[str, Any]) -> bool:
    return bool((entry["metadata"].get("annotations") or {}).get(ADOPTED))


def _entries_in(own: dict[str, Any], others: list[dict[str, Any]]) -> dict[str, Any]:
    """Our entries of mappings of which others own no entry, as null. own, others: fields as in managedFields."""
    found: dict[str, Any] = {}
    for key, below in own.items():
        if not key.startswith("f:") or not below or not any(key in other for other in others):
            continue
        beside = [other[key] for other in others if key in other]
        if not any(beside):
            found[key[2:]] = {entry[2:]: None for entry in below if entry.startswith("f:")}
        elif inner := _entries_in(below, beside):
            found[key[2:]] = inner
    return {key: value for key, value in found.items() if key != "metadata"}


def _how() -> list[str]:
    return ["--server-side", "--force-conflicts", f"--field-manager={MANAGER}", "--filename=-"]


def _list(objects: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
