"""Deprecated APIs in use, from the API server's own metric, with who wrote what through them."""

from __future__ import annotations

from typing import Any

from syrupy.assertion import SnapshotAssertion

from pai_install.cluster.client import ApiError, Select
from pai_install.health.cluster.deprecated import METRICS, deprecated_uses, requested
from tests.unit.cluster.fake import FakeCluster

NAME = "apiserver_requested_deprecated_apis"


def line(group: str, removed: str, resource: str, subresource: str, version: str) -> str:
    labels = {
        "group": group, "removed_release": removed, "resource": resource, "subresource": subresource,
        "version": version,
    }  # fmt: skip
    return f"{NAME}{{{','.join(f'{name}={chr(34)}{value}{chr(34)}' for name, value in labels.items())}}} 1\n"


TEXT = (
    f"# HELP {NAME} [STABLE] Gauge of deprecated APIs that have been requested\n"
    + line("example.io", "1.36", "widgets", "", "v1beta1")
    + line("example.io", "1.36", "widgets", "status", "v1beta1")
    + line("", "", "componentstatuses", "", "v1")
    + 'apiserver_request_total{code="200",group="apps"} 12\n'
)


def widget(name: str, *managers: tuple[str, str]) -> dict[str, Any]:
    fields = [{"manager": manager, "apiVersion": version} for manager, version in managers]
    return {"kind": "Widget", "metadata": {"name": name, "namespace": "default", "managedFields": fields}}


class Cluster(FakeCluster):
    """Gives all objects for any question."""

    def list(self, *selects: Select) -> tuple[tuple[Any, ...], ...]:
        self.calls.append(("list", selects))
        if self.refuses:
            raise self.refuses
        return (tuple(self.objects.values()),)


def test_each_api_is_named_once() -> None:
    assert [(use.name, use.removed) for use in requested(TEXT)] == [
        ("componentstatuses of v1", ""),
        ("widgets of example.io/v1beta1", "1.36"),
    ]
    assert requested("") == ()


def test_objects_say_who_wrote_them_through_it(snapshot: SnapshotAssertion) -> None:
    cluster = Cluster.of(
        widget("old", ("helm", "example.io/v1beta1"), ("helm", "example.io/v1beta1")),
        widget("new", ("kubectl", "example.io/v1")),
    )
    cluster.paths[METRICS] = TEXT
    uses = {use.resource: use.users for use in deprecated_uses(cluster)}
    assert uses["widgets"] == snapshot
    asked = [call[1][0].kinds for call in cluster.calls if call[0] == "list"]
    assert asked == [("componentstatuses.v1",), ("widgets.v1beta1.example.io",)]


def test_many_objects_are_shortened_and_an_api_that_is_gone_names_none() -> None:
    cluster = Cluster.of(*(widget(f"w{number:02}", ("helm", "example.io/v1beta1")) for number in range(12)))
    cluster.paths[METRICS] = TEXT
    (_, use) = deprecated_uses(cluster)
    assert len(use.users) == 11
    assert use.users[-1] == "and 2 more"
    cluster.refuses = ApiError("the server doesn't have a resource type")
    assert all(use.users == () for use in deprecated_uses(cluster))
