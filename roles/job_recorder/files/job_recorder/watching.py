"""Watches of the API server, each in a thread of its own: lists, then tells each change, and lists again when lost."""

from __future__ import annotations

import http
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from job_recorder.cluster import Cluster, ClusterError
from job_recorder.memory import PODS
from job_recorder.shapes import USER, text

_LASTING_S = 300
_AGAIN_S, _MOST_AGAIN_S, _NO_KIND_S = 1.0, 30.0, 60.0


@dataclass(frozen=True)
class Listed:
    """All objects of a kind. resource: PODS, or GROUP/RESOURCE."""

    resource: str
    items: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Changed:
    """One object as it is now, or was when it was deleted."""

    resource: str
    gone: bool
    item: Mapping[str, Any]


Told = Union[Listed, Changed]


@dataclass(frozen=True)
class Watcher:
    """Watches one kind. tell: takes what is seen. complain: takes a line for the journal."""

    cluster: Cluster
    resource: str
    tell: Callable[[Told], None]
    complain: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep

    def start(self) -> None:
        """In a thread that ends with the program."""
        threading.Thread(target=self.run, name=self.resource, daemon=True).start()

    def run(self) -> None:
        """Without end."""
        pause, said = _AGAIN_S, ""
        while True:
            try:
                self.once()
                pause, said = _AGAIN_S, ""
            except ClusterError as error:
                if error.status == http.HTTPStatus.NOT_FOUND and self.resource != PODS:
                    self.tell(Listed(self.resource, ()))  # the cluster has no such jobs, or not yet
                    self.sleep(_NO_KIND_S)
                    continue
                if (why := str(error)) != said and error.status != http.HTTPStatus.GONE:
                    said = why
                    self.complain(why)
                self.sleep(pause)
                pause = min(pause * 2, _MOST_AGAIN_S)

    def once(self) -> None:
        """Lists, then tells changes for as long as the API server goes on. Raises ClusterError."""
        path, query = self._path(), {"labelSelector": USER}
        items: list[Mapping[str, Any]] = []
        version = ""
        for page in self.cluster.pages(path, query):
            kind, api = text(page.get("kind")), text(page.get("apiVersion"))
            # items of a list do not say what they are
            items += [{"kind": kind[: -len("List")], "apiVersion": api, **item} for item in page.get("items") or ()]
            version = text((page.get("metadata") or {}).get("resourceVersion"))
        self.tell(Listed(self.resource, tuple(items)))
        while True:
            for event in self.cluster.watch(path, {**query, "resourceVersion": version}, _LASTING_S):
                item = event.get("object") or {}
                if event.get("type") == "ERROR":
                    raise ClusterError(f"{self.resource}: {text(item.get('message'))}", int(item.get("code") or 0))
                version = text((item.get("metadata") or {}).get("resourceVersion")) or version
                if event.get("type") in ("ADDED", "MODIFIED", "DELETED"):
                    self.tell(Changed(self.resource, event["type"] == "DELETED", item))

    def _path(self) -> str:
        if self.resource == PODS:
            return "/api/v1/pods"
        group, _, resource = self.resource.partition("/")
        found = self.cluster.json("GET", f"/apis/{group}")
        return f"/apis/{text((found.get('preferredVersion') or {}).get('groupVersion'))}/{resource}"
