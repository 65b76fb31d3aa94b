"""Members cannot fill etcd: the number and the size of their objects are limited."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.scheduling.pod_limits import MAX_MANAGERS
from pai_install.users.model import OWNER
from pai_install.users.quotas import MAX_DATA, NAME, object_quotas
from tests.integration.control_plane import Json
from tests.integration.users.conftest import Users
from tests.integration.users.test_rights import asked
from tests.waiting import until

MERGE = "application/merge-patch+json"


def config_map(name: str, **content: Any) -> Json:
    metadata = {"name": name, "namespace": "vision", "labels": {OWNER: "alice"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


@pytest.mark.parametrize(
    ("content", "fits"),
    [
        ({"data": {"a": "x" * (MAX_DATA - 1)}}, True),
        ({"data": {"a": "x" * MAX_DATA}}, False),
        ({"data": {str(number): "x" * 100 for number in range(2000)}}, False),
        ({"binaryData": {"a": "eHh4" * (MAX_DATA // 2)}}, False),
    ],
)
def test_size_of_config_maps(users: Users, content: Json, *, fits: bool) -> None:
    why = users.of["alice"].create(config_map("large", **content))
    assert (why == "") == fits, why
    if fits:
        users.admin.ask("DELETE", "/api/v1/namespaces/vision/configmaps/large")
    assert users.admin.create(config_map("large", **content)) == ""
    users.admin.ask("DELETE", "/api/v1/namespaces/vision/configmaps/large")


def test_size_of_secrets(users: Users) -> None:
    metadata = {"name": "alice.large", "namespace": "vision"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    assert "128 KiB" in users.of["alice"].create({**secret, "stringData": {"a": "x" * (MAX_DATA + 1)}})
    assert users.of["alice"].create({**secret, "stringData": {"a": "x"}}) == ""
    users.admin.ask("DELETE", "/api/v1/namespaces/vision/secrets/alice.large")


def test_number_of_config_maps(users: Users) -> None:
    (quota,) = object_quotas("kueue", ["vision"], 500)
    made = users.admin.apply(quota)
    path = f"/api/v1/namespaces/vision/resourcequotas/{NAME}"
    hard = made["spec"]["hard"]
    try:
        # the cluster of this test counts nothing by itself
        used = {**dict.fromkeys(hard, "0"), "count/configmaps": hard["count/configmaps"]}
        users.admin.ask("PATCH", f"{path}/status", {"status": {"hard": hard, "used": used}}, MERGE)
        until(lambda: "exceeded quota" in users.of["alice"].create(config_map("one-more")))
    finally:
        users.admin.ask("DELETE", path)
        until(lambda: "exceeded quota" not in users.of["alice"].create(config_map("free"), "?dryRun=All"))


def test_number_of_field_managers(users: Users) -> None:
    """The API server keeps a list of fields for each name of a client, beside the content that has a limit."""
    alice, path = users.of["alice"], "/api/v1/namespaces/vision/configmaps/managed"
    try:
        for number in range(MAX_MANAGERS + 1):
            made = config_map("managed", data={f"key-{number}": "x"})
            query = f"{path}?fieldManager=client-{number}&force=true"
            why = asked(alice, "PATCH", query, made, "application/apply-patch+yaml")
            assert ("" if number < MAX_MANAGERS else "field managers") in why
            assert (why == "") == (number < MAX_MANAGERS), why
    finally:
        users.admin.ask("DELETE", path)


def test_the_authority_of_pods_is_not_a_users(users: Users) -> None:
    assert "is for Kubernetes" in users.of["alice"].create(config_map("kube-root-ca.crt", data={"ca.crt": "mine"}))
