"""Kinds of objects and their places in the API. Kubernetes' own kinds are known, others are discovered."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from pai_install.kube.objects import JsonObject, child, rows, text

# API -> its kinds; "-" for kinds without a namespace. All are stable, so each API server has them.
_KNOWN = {
    "v1": "Pod Service ConfigMap Secret ServiceAccount Event PersistentVolumeClaim ResourceQuota LimitRange "
    "-Node -Namespace -PersistentVolume",
    "apps/v1": "Deployment DaemonSet StatefulSet ReplicaSet",
    "batch/v1": "Job CronJob",
    "policy/v1": "PodDisruptionBudget",
    "networking.k8s.io/v1": "NetworkPolicy",
    "rbac.authorization.k8s.io/v1": "Role RoleBinding -ClusterRole -ClusterRoleBinding",
    "scheduling.k8s.io/v1": "-PriorityClass",
    "storage.k8s.io/v1": "-StorageClass",
    "coordination.k8s.io/v1": "Lease",
    "apiextensions.k8s.io/v1": "-CustomResourceDefinition",
    "admissionregistration.k8s.io/v1": "-ValidatingAdmissionPolicy -ValidatingAdmissionPolicyBinding "
    "-ValidatingWebhookConfiguration -MutatingWebhookConfiguration",
}
_VERSION = re.compile(r"v\d+((alpha|beta)\d+)?")

Discover = Callable[[], Iterable["ApiResource"]]


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A kind of objects. api: GROUP/VERSION, or VERSION. names: other names of kubectl, such as the singular."""

    api: str
    kind: str
    plural: str
    namespaced: bool
    names: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """Its API group, "" for the core."""
        return self.api.rpartition("/")[0]

    @property
    def full_name(self) -> str:
        """As kubectl names it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def called(self, name: str) -> bool:
        """Whether kubectl takes the name for it: plural, singular or kind, with or without version and group."""
        word, _, rest = name.lower().partition(".")
        if word not in (self.plural, self.kind.lower(), *self.names):
            return False
        first, _, group = rest.partition(".")
        if _VERSION.fullmatch(first):
            return self.api == (f"{group}/{first}" if group else first)
        return rest in ("", self.group)

    def path(self, namespace: str = "", name: str = "", part: str = "") -> str:
        """The path of an object or, without a name, of all objects. namespace: "" for all namespaces."""
        root = f"/apis/{self.api}" if self.group else f"/api/{self.api}"
        place = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        tail = "".join(f"/{quote(word, safe='')}" for word in (name, part) if word)
        return f"{root}{place}/{self.plural}{tail}"


def _known() -> Iterator[ApiResource]:
    for api, words in _KNOWN.items():
        for word in words.split():
            kind = word.removeprefix("-")
            yield ApiResource(api, kind, _plural(kind.lower()), namespaced=word == kind)


def _plural(word: str) -> str:
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith("s") else f"{word}s"


KNOWN = tuple(_known())


class ApiResources:
    """All kinds of a cluster. Several threads may use it.

    discover, in its methods: asks the API server for its kinds. It is called for an unknown kind alone.
    """

    def __init__(self) -> None:
        self._discovered: tuple[ApiResource, ...] = ()
        self._lock = threading.Lock()

    def named(self, name: str, discover: Discover) -> ApiResource | None:
        """The kind that kubectl calls so, or None."""
        return self._found(lambda one: one.called(name), discover)

    def of(self, item: JsonObject, discover: Discover) -> ApiResource | None:
        """The kind of an object, or None."""
        kind = (text(item.get("apiVersion")), text(item.get("kind")))
        return self._found(lambda one: (one.api, one.kind) == kind, discover)

    def forget(self) -> None:
        """Discovers again at the next kind that is not Kubernetes' own."""
        self._discovered = ()

    def _found(self, matches: Callable[[ApiResource], bool], discover: Discover) -> ApiResource | None:
        seen = self._discovered
        found = next(filter(matches, (*KNOWN, *seen)), None)
        if found is None:
            with self._lock:  # one discovery for all threads that wait
                if self._discovered is seen:
                    self._discovered = tuple(discover())
            found = next(filter(matches, self._discovered), None)
        return found


def parse_discovery(answer: JsonObject) -> Iterator[ApiResource]:
    """The kinds in an APIGroupDiscoveryList, the preferred version of each group first."""
    for group in rows(answer.get("items")):
        name = text(child(group, "metadata").get("name"))
        for version in rows(group.get("versions")):
            word = text(version.get("version"))
            for row in rows(version.get("resources")):
                kind, plural = text(child(row, "responseKind").get("kind")), text(row.get("resource"))
                short = row.get("shortNames")
                names = [text(row.get("singularResource")), *(map(text, short) if isinstance(short, list) else ())]
                if word and kind and plural:
                    api = f"{name}/{word}" if name else word
                    yield ApiResource(api, kind, plural, row.get("scope") == "Namespaced", tuple(filter(None, names)))
