"""Objects of a watch: nothing ends it, and what it knew before a loss does not stay."""

from __future__ import annotations

import pytest

from pai_install.cluster.client import ClusterClient, Select
from pai_install.console.sign_in import watched
from pai_install.console.sign_in.watched import WatchedObjects
from tests.unit.console.conftest import eventually
from tests.unit.console.live import LiveCluster

ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "alice", "namespace": "pai-users"}}


def test_an_unexpected_error_does_not_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "_PAUSE_S", 0.01)
    cluster = LiveCluster()
    calls: list[int] = []

    def own() -> ClusterClient:
        calls.append(len(calls))
        if len(calls) < 3:
            raise ValueError("no error of the API server")
        return cluster

    cluster.put(ACCOUNT)
    found = WatchedObjects(own, Select(("serviceaccounts",), "pai-users"))
    found.start()
    eventually(lambda: len(found.objects) == 1)
    assert calls == [0, 1, 2]
    found.stop()
    cluster.end()
