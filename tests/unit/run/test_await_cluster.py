"""The same command, given again while a control plane restarts, waits for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pai_install.cluster.client import ApiError, NoClusterError
from pai_install.run import await_cluster as module
from pai_install.run.await_cluster import await_cluster
from tests.unit.cluster.fake import FakeCluster


class Restarting(FakeCluster):
    """A cluster whose control plane fails some questions first."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__()
        self.failures: Iterator[Exception] = iter(failures)
        self.asked = 0

    def raw(self, path: str) -> str:
        self.asked += 1
        assert path == "/readyz"
        for failure in self.failures:
            raise failure
        return "ok"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_S", 0.0)


def test_a_cluster_that_is_ready_is_asked_once_and_nothing_is_said() -> None:
    cluster, said = Restarting(), list[str]()
    await_cluster(cluster, said.append)
    assert (cluster.asked, said) == (1, [])


def test_waits_for_an_api_server_that_is_gone_or_not_ready() -> None:
    cluster, said = Restarting(NoClusterError({"master": "EOF"}), ApiError("etcd is not ready")), list[str]()
    await_cluster(cluster, said.append)
    assert cluster.asked == 3
    assert len(said) == 1


def test_gives_up_without_an_error_of_its_own() -> None:
    cluster = Restarting(*(NoClusterError({"master": "down"}) for _ in range(3)))
    await_cluster(cluster, print, timeout_s=0)
    assert cluster.asked == 1
