"""People of a directory: their labels, what the API server is told of them, and what makes them members."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from pai_install.site.directory import Directory
from pai_install.site.groups import PlacedGroup
from pai_install.site.services.authentication import Acls, Extension, Group
from pai_install.site.user_names import why_no_name
from pai_install.users.directory import PREFIX, authenticator, bindings, label, owner_of
from pai_install.users.policies import policies

DIRECTORY = Directory("https://sso.example.org", "pai", "sub", "groups")
# such as were one label, or would be by other words
ALPHABET = "ab_@.+|#-atplusbrh:/ é"
NAMES = st.text(ALPHABET, min_size=1, max_size=40)


def group(name: str, theirs: str | None, *, admin: bool = False) -> PlacedGroup:
    content = Group(groupname=name, externalName=theirs, extension=Extension(acls=Acls(admin=admin)))
    return PlacedGroup(name, content, ("authentication", "group-manager", "grouplist", 0))


def fits(text: str) -> bool:
    """Whether the API server lets in whose label this is."""
    (rule,) = authenticator(DIRECTORY)["userValidationRules"]
    pattern = json.loads(rule["expression"].rpartition(".matches(")[2][:-1])
    return re.fullmatch(pattern, text) is not None


@given(NAMES, NAMES)
def test_two_people_never_have_one_label(one: str, other: str) -> None:
    assert (owner_of(PREFIX + one) == owner_of(PREFIX + other)) == (one == other)


@given(NAMES)
def test_the_label_of_a_person_is_never_a_users(name: str) -> None:
    assert why_no_name(owner_of(PREFIX + name))


@given(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True))
def test_users_of_ours_keep_their_names(name: str) -> None:
    assert owner_of(name) == name


@given(NAMES)
def test_who_is_let_in_has_a_label_that_kubernetes_takes(name: str) -> None:
    found = owner_of(PREFIX + name)
    taken = len(found) <= 63 and re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", found) is not None
    assert fits(found) == taken


def test_labels_can_be_read() -> None:
    assert owner_of("oidc:alice@example.org") == "oidc.alice_at_example.org"
    assert owner_of("oidc:auth0|5f7c_1") == "oidc.auth0_bar_5f7c__1"
    for name in ("alice", "", "me@home.", "a" * 59, "alice smith", "DOMAIN\\alice", "é"):
        assert fits(owner_of(PREFIX + name)) == (name == "alice")


def test_the_policies_and_the_api_server_go_by_one_label() -> None:
    (rule,) = authenticator(DIRECTORY)["userValidationRules"]
    assert rule["expression"].startswith(label("user.username"))
    found = [one for one in policies("kueue", ["vision"]) if one["kind"] == "ValidatingAdmissionPolicy"]
    for one in found:
        variables = {entry["name"]: entry["expression"] for entry in one["spec"]["variables"]}
        assert variables["user"].endswith(label("request.userInfo.username"))
        (condition,) = [entry for entry in one["spec"]["matchConditions"] if entry["name"] == "a-user"]
        assert f'startsWith("{PREFIX}")' in condition["expression"]


def test_an_authenticator() -> None:
    found = authenticator(DIRECTORY)
    assert found["issuer"] == {"url": "https://sso.example.org", "audiences": ["pai"]}
    assert found["claimMappings"] == {
        "username": {"claim": "sub", "prefix": "oidc:"},
        "groups": {"claim": "groups", "prefix": "oidc:"},
    }
    assert found["claimValidationRules"] == []


def test_an_authority_of_the_sites_own() -> None:
    found = authenticator(Directory("https://sso.example.org", "pai", "sub", "groups", "PEM\n"))
    assert found["issuer"]["certificateAuthority"] == "PEM\n"


def test_an_address_counts_once_it_is_verified() -> None:
    found = authenticator(Directory("https://sso.example.org", "pai", "email", "groups"))
    (rule,) = found["claimValidationRules"]
    assert "claims.email_verified == true" in rule["expression"]


def test_a_group_that_names_none_of_the_directory_has_no_binding() -> None:
    assert list(bindings([group("Vision", None), group("speech", "")])) == []


def test_a_group_of_the_directory_is_bound_in_its_namespace() -> None:
    (found,) = bindings([group("Vision_A", "Vision: the team")])
    assert found == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": "pai-directory",
            "namespace": "vision-a",
            "annotations": {"pai-install/group": "Vision_A"},
        },
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pai-member"},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "oidc:Vision: the team"},
        ],
    }


def test_administrators_are_members_too() -> None:
    found = list(bindings([group("ops", "ops", admin=True), group("more", "ops", admin=True)]))
    places = [(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")) for one in found]
    assert places == [
        ("RoleBinding", "pai-directory", "ops"),
        ("ClusterRoleBinding", "pai-directory-ops", None),
        ("RoleBinding", "pai-directory", "more"),
        ("ClusterRoleBinding", "pai-directory-more", None),
    ]
    assert {one["roleRef"]["name"] for one in found} == {"pai-member", "pai-admin"}
