"""Objects of a watch: nothing ends it, and what it knew before a loss does not stay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pai_install.cluster.client import ApiError, ClusterClient, Select
from pai_install.console.caller import CallerKind
from pai_install.console.errors import RestError
from pai_install.console.model import watching
from pai_install.console.sign_in.known_users import KnownUsers
from pai_install.console.sign_in.watched import WatchedObjects
from pai_install.kube.model import Ref
from pai_install.users.model import GROUP, MEMBER
from tests.unit.console.conftest import eventually
from tests.unit.console.live import LiveCluster

ACCOUNTS = Select(("serviceaccounts",), "pai-users")


def account(name: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "pai-users", "labels": {"pai-install/user": name}}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "members", "namespace": "vision-1", "annotations": {GROUP: "vision"}},
    "roleRef": {"kind": "ClusterRole", "name": MEMBER},
    "subjects": [{"kind": "ServiceAccount", "namespace": "pai-users", "name": "alice"}],
}


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveCluster]:
    monkeypatch.setattr(watching, "_PAUSE_S", 0.01)
    made = LiveCluster()
    made.put(account("alice"), account("bob"), BINDING)
    yield made
    made.end()


def test_an_unexpected_error_does_not_end_the_watch(live: LiveCluster) -> None:
    calls: list[int] = []

    def own() -> ClusterClient:
        calls.append(len(calls))
        if len(calls) < 3:
            raise ValueError("no error of the API server")
        return live

    found = WatchedObjects(own, ACCOUNTS)
    found.start()
    eventually(lambda: found.is_known and len(found.objects) == 2)
    assert calls == [0, 1, 2]
    found.stop()


def names(found: WatchedObjects) -> set[str]:
    return {item["metadata"]["name"] for item in found.objects.values()}


@pytest.mark.parametrize("reason", ["NoAnswer", "Forbidden"])
def test_after_a_loss_the_objects_count_for_two_seconds(live: LiveCluster, reason: str) -> None:
    """An API server that has just started refuses everybody."""
    now = [0.0]
    found = WatchedObjects(lambda: live, ACCOUNTS, lambda: now[0])
    with pytest.raises(RestError):
        names(found)
    found.start()
    eventually(lambda: found.is_known and names(found) == {"alice", "bob"})
    live.lose(ApiError("away", reason=reason))
    eventually(lambda: found._watch.broken_since is not None)
    now[0] = 1.9
    assert names(found) == {"alice", "bob"}
    now[0] = 2.1
    for ask in (lambda: found.objects, lambda: found.version):
        with pytest.raises(RestError) as caught:
            ask()
        assert caught.value.status == 503
    live.delete([Ref("serviceaccount", "bob", "pai-users")])
    live.broken = None
    eventually(lambda: found.is_known)
    assert names(found) == {"alice"}
    found.stop()


def test_without_an_answer_nobody_loses_a_group(live: LiveCluster) -> None:
    """A person without groups would be refused for good, where a later request succeeds."""
    now = [0.0]
    users = KnownUsers(lambda: live, lambda: now[0])
    users.start()
    eventually(lambda: users.is_known)
    assert users.caller("alice", CallerKind.PASSWORD).groups == ("vision",)
    live.lose(ApiError("away", reason="NoAnswer"))
    eventually(lambda: users._bindings._watch.broken_since is not None)
    assert users.caller("alice", CallerKind.PASSWORD).groups == ("vision",)
    now[0] = 2.1
    with pytest.raises(RestError) as caught:
        users.caller("alice", CallerKind.PASSWORD)
    assert caught.value.status == 503
    users.stop()
