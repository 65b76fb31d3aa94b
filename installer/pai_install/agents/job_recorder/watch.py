"""Watches of the API server: each lists a kind, then reports its changes, and lists again when a watch is lost."""

from __future__ import annotations

import http
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

from pai_install.agents.common.api import ApiError, Client
from pai_install.agents.common.values import Json, child, text
from pai_install.agents.common.watch import follow
from pai_install.agents.job_recorder.objects import USER
from pai_install.agents.job_recorder.store import PODS

_RETRY_S, _MAX_RETRY_S, _MISSING_KIND_S = 1.0, 30.0, 60.0


@dataclass(frozen=True)
class Listed:
    """All objects of a kind. resource: PODS, or GROUP/RESOURCE."""

    resource: str
    items: tuple[Json, ...]


@dataclass(frozen=True)
class Changed:
    """One object. deleted: it no longer exists, and item is its last state."""

    resource: str
    deleted: bool
    item: Json


Event = Union[Listed, Changed]


@dataclass(frozen=True)
class Watcher:
    """Watches one kind. notify: takes the events. warn: takes a line for the log. selector: by labels."""

    client: Client
    resource: str
    notify: Callable[[Event], None]
    warn: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    selector: str = USER

    def start(self) -> None:
        """Runs in a thread that ends with the program."""
        threading.Thread(target=self.run, name=self.resource, daemon=True).start()

    def run(self) -> None:
        """Runs without end."""
        pause = _RETRY_S
        while True:
            try:
                self.once()
                pause = _RETRY_S
            except ApiError as error:
                if error.status == http.HTTPStatus.NOT_FOUND and self.resource != PODS:
                    self.notify(Listed(self.resource, ()))  # the cluster does not have this kind, or not yet
                    self.sleep(_MISSING_KIND_S)
                    continue
                # 410 is how the API server ends a watch whose version etcd has compacted. That is normal.
                if error.status != http.HTTPStatus.GONE:
                    self.warn(str(error))
                self.sleep(pause)
                pause = min(pause * 2, _MAX_RETRY_S)

    def once(self) -> None:
        """Lists once, then reports changes until the watch is lost. Raises ApiError."""
        follow(
            self.client,
            self._path(),
            {"labelSelector": self.selector},
            lambda items: self.notify(Listed(self.resource, items)),
            lambda deleted, item: self.notify(Changed(self.resource, deleted, item)),
        )

    def _path(self) -> str:
        if self.resource == PODS:
            return "/api/v1/pods"
        group, _, resource = self.resource.partition("/")
        # An upgrade of a controller may serve another version of its kind. The API server names the current one.
        found = self.client.json("GET", f"/apis/{group}")
        return f"/apis/{text(child(found, 'preferredVersion').get('groupVersion'))}/{resource}"
