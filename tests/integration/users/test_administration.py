"""Administrators make and remove users with kubectl's rights, and nothing beside them."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.users.model import GROUP, OWNER
from pai_install.users.objects import account, administration, membership
from tests.integration.control_plane import Json
from tests.integration.users.conftest import Users
from tests.integration.users.test_rights import asked
from tests.waiting import until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REFUSED = "denied request"


@pytest.fixture(scope="module", autouse=True)
def rules_count(users: Users) -> None:
    """Each policy was seen to refuse something."""
    for probe in (
        {**account("probe"), "metadata": {"name": "probe", "namespace": "vision"}},
        {**membership("probe", "vision", "default")},
        {**administration("probe"), "metadata": {"name": "probe"}},
    ):
        until(lambda entry=probe: REFUSED in users.of["dora"].create(entry))  # type: ignore[misc]


def changed(entry: Json, **changes: Any) -> Json:
    return {**entry, **changes}


def test_an_administrator_makes_and_removes_a_user(users: Users) -> None:
    dora = users.of["dora"]
    made = (account("frank"), membership("frank", "vision", "vision"), administration("frank"))
    assert [dora.create(entry) for entry in made] == ["", "", ""]
    assert asked(dora, "DELETE", f"{RBAC}/clusterrolebindings/pai-user-frank") == ""
    assert asked(dora, "DELETE", f"{RBAC}/namespaces/vision/rolebindings/pai-user-frank") == ""
    assert asked(dora, "DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/frank") == ""


def test_an_administrator_removes_neither_themselves_nor_their_own_rights(users: Users) -> None:
    dora = users.of["dora"]
    assert REFUSED in asked(dora, "DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/dora")
    assert REFUSED in asked(dora, "DELETE", f"{RBAC}/clusterrolebindings/pai-user-dora")
    assert asked(dora, "GET", "/api/v1/nodes") == ""


def test_a_member_makes_no_users(users: Users) -> None:
    alice = users.of["alice"]
    for entry in (account("gina"), membership("alice", "speech", "speech"), administration("alice")):
        assert "cannot create" in alice.create(entry)
    assert "cannot delete" in asked(alice, "DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/bob")


SUBJECT = {"kind": "ServiceAccount", "name": "gina", "namespace": "pai-users"}
ACCOUNTS: dict[str, Json] = {
    "in another namespace": changed(account("gina"), metadata={"name": "gina", "namespace": "kube-system"}),
    "without a label": changed(account("gina"), metadata={"name": "gina", "namespace": "pai-users"}),
    "with the label of another": changed(
        account("gina"), metadata={"name": "gina", "namespace": "pai-users", "labels": {OWNER: "alice"}}
    ),
    "with a name that labels of people have": account("oidc.gina"),
    "with a token in its pods": changed(account("gina"), automountServiceAccountToken=True),
    "with Secrets": changed(account("gina"), secrets=[{"name": "a"}]),
}
MEMBERS: dict[str, Json] = {
    "in a namespace of no group": membership("gina", "vision", "default"),
    "in the namespace of the system": membership("gina", "vision", "kube-system"),
    "for another group": membership("gina", "speech", "vision"),
    "of another account": changed(
        membership("gina", "vision", "vision"), subjects=[{**SUBJECT, "namespace": "kube-system"}]
    ),
    "of a group": changed(
        membership("gina", "vision", "vision"),
        subjects=[{"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}],
    ),
    "of two": changed(membership("gina", "vision", "vision"), subjects=[SUBJECT, {**SUBJECT, "name": "bob"}]),
    "of nobody": changed(membership("gina", "vision", "vision"), subjects=[]),
    "to administrators in a namespace": changed(
        membership("gina", "vision", "vision"), roleRef=administration("gina")["roleRef"]
    ),
    "under another name": changed(
        membership("gina", "vision", "vision"),
        metadata={"name": "mine", "namespace": "vision", "labels": {OWNER: "gina"}, "annotations": {GROUP: "vision"}},
    ),
}
ADMINISTRATORS: dict[str, Json] = {
    "members in the whole cluster": changed(
        administration("gina"), roleRef=membership("gina", "vision", "vision")["roleRef"]
    ),
    "another account": changed(administration("gina"), subjects=[{**SUBJECT, "namespace": "default"}]),
    "under another name": changed(administration("gina"), metadata={"name": "mine", "labels": {OWNER: "gina"}}),
}


@pytest.mark.parametrize("what", ACCOUNTS)
def test_an_administrator_makes_no_account(users: Users, what: str) -> None:
    assert REFUSED in users.of["dora"].create(ACCOUNTS[what])


@pytest.mark.parametrize("what", MEMBERS)
def test_an_administrator_makes_no_member(users: Users, what: str) -> None:
    assert REFUSED in users.of["dora"].create(MEMBERS[what])


@pytest.mark.parametrize("what", ADMINISTRATORS)
def test_an_administrator_makes_no_administrator(users: Users, what: str) -> None:
    assert REFUSED in users.of["dora"].create(ADMINISTRATORS[what])


def test_an_administrator_binds_nobody_to_all_rights(users: Users) -> None:
    everything = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    for entry in (membership("gina", "vision", "vision"), administration("gina")):
        assert users.of["dora"].create(changed(entry, roleRef=everything)) != ""


def test_an_administrator_changes_nothing_of_the_system(users: Users) -> None:
    dora = users.of["dora"]
    users.admin.apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "controller", "namespace": "kube-system"},
        }
    )
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subject = {"kind": "ServiceAccount", "name": "controller", "namespace": "kube-system"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "roleRef": role, "subjects": [subject]}
    users.admin.apply({**binding, "kind": "RoleBinding", "metadata": {"name": "controller", "namespace": "vision"}})
    users.admin.apply({**binding, "kind": "ClusterRoleBinding", "metadata": {"name": "controller"}})
    patch: Json = {"metadata": {"labels": {"a": "b"}}}
    for path in (
        "/api/v1/namespaces/kube-system/serviceaccounts/controller",
        f"{RBAC}/namespaces/vision/rolebindings/controller",
        f"{RBAC}/clusterrolebindings/controller",
    ):
        assert REFUSED in asked(dora, "DELETE", path)
        assert REFUSED in asked(dora, "PATCH", path, patch, "application/merge-patch+json")
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    assert "cannot create" in asked(dora, "POST", "/api/v1/namespaces/pai-users/serviceaccounts/alice/token", token)
