"""People of a directory before a real API server: who is let in, as whom, and what they may."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.site.directory import Directory
from pai_install.site.groups import PlacedGroup
from pai_install.site.services.authentication import Acls, Extension, Group
from pai_install.users.directory import authenticator, bindings, owner_of
from pai_install.users.model import OWNER
from tests.integration.control_plane import Api, Json, let_in
from tests.integration.issuer import Issuer, issuing
from tests.integration.users.conftest import Users
from tests.integration.users.test_rights import asked, job, pod, template, volume
from tests.waiting import until

REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
UNKNOWN = "Unauthorized"


def placed(name: str, theirs: str, *, admin: bool = False) -> PlacedGroup:
    content = Group(groupname=name, externalName=theirs, extension=Extension(acls=Acls(admin=admin)))
    return PlacedGroup(name, content, ("authentication", "group-manager", "grouplist", 0))


GROUPS = (placed("vision", "Vision Team"), placed("speech", "speech"), placed("ops", "ops", admin=True))


@dataclass(frozen=True)
class People:
    """The directory, and the API server that takes its tokens."""

    api: Api
    issuer: Issuer

    def who(self, name: str, *groups: str, **claims: Any) -> Api:
        """Asks as a person of the directory."""
        return self.api.as_(self.issuer.token(preferred_username=name, groups=list(groups), **claims))


def jwt(issuer: Issuer, claim: str = "preferred_username") -> Json:
    return authenticator(Directory(issuer.url, issuer.client, claim, "groups", issuer.authority))


@pytest.fixture(scope="module")
def people(users: Users, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """The API server runs already: it takes what the role writes without a restart."""
    users.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}})
    for one in bindings(GROUPS):
        users.admin.apply(one)
    with issuing(tmp_path_factory.mktemp("issuer")) as issuer:
        found = People(users.admin, issuer)
        assert seen(found.who("alice")) == UNKNOWN
        let_in(users.admin.folder, [jwt(issuer)])
        until(lambda: seen(found.who("alice")) != UNKNOWN, 90)
        yield found


def seen(user: Api) -> str:
    """Why it is not let in; else empty."""
    return asked(user, "POST", REVIEW, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})


def known(user: Api) -> tuple[str, set[str]]:
    """Name and groups, as the API server has them."""
    found = user.ask("POST", REVIEW, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    info = found["status"]["userInfo"]
    return info["username"], set(info["groups"])


@contextlib.contextmanager
def made(user: Api, item: Json) -> Iterator[str]:
    """The path of an object of the user's, until the end of the block."""
    assert user.create(item) == ""
    place = "/apis/batch/v1" if item["kind"] == "Job" else "/api/v1"
    meta = item["metadata"]
    path = f"{place}/namespaces/{meta['namespace']}/{item['kind'].lower()}s/{meta['name']}"
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            user.ask("DELETE", f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")


def test_a_token_says_who_one_is(people: People) -> None:
    name, groups = known(people.who("alice@example.org", "Vision Team", "staff"))
    assert name == "oidc:alice@example.org"
    assert groups == {"oidc:Vision Team", "oidc:staff", "system:authenticated"}


def test_nobody_is_of_the_system_by_a_word_of_the_directory(people: People) -> None:
    user = people.who("admin", "system:masters", "pai-admin", "system:serviceaccounts:pai-users")
    assert known(user) == (
        "oidc:admin",
        {"oidc:system:masters", "oidc:pai-admin", "oidc:system:serviceaccounts:pai-users", "system:authenticated"},
    )
    assert "cannot list" in asked(user, "GET", "/api/v1/secrets")
    assert "cannot list" in asked(user, "GET", "/api/v1/nodes")


@pytest.mark.parametrize(
    "token",
    [
        lambda issuer: issuer.token(preferred_username="alice", aud="portal"),
        lambda issuer: issuer.token(preferred_username="alice", exp=int(time.time()) - 60),
        lambda issuer: issuer.token(preferred_username="alice", iss="https://elsewhere.example.org"),
        lambda issuer: issuer.token(sub="alice"),
        lambda issuer: issuer.forged(preferred_username="alice"),
    ],
    ids=["for another client", "over", "by another issuer", "without the claim", "signed by another"],
)
def test_no_other_token_is_taken(people: People, token: Callable[[Issuer], str]) -> None:
    assert seen(people.api.as_(token(people.issuer))) == UNKNOWN


@pytest.mark.parametrize(
    "name", ["", "alice smith", "system:admin", "alice@", "-", "é", "DOMAIN\\alice", "a/b", "a" * 59, "@" * 15 + "a"]
)
def test_who_cannot_be_named_in_a_label_is_not_let_in(people: People, name: str) -> None:
    assert seen(people.who(name)) == UNKNOWN


NAMES = [
    *("alice", "Alice", "alice@example.org", "alice_at_example.org", "alice__at__example.org", "a.b", "a@b", "a_at_b"),
    *("a+b@example.org", "auth0|5f7c", "guest_gmail.com#EXT#@example.org", "72f988bf-86f1-41af-91ab-2d7cd011db47"),
    *("__a", "_@_a", "a" * 58),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_label_is_the_one_that_we_say(people: People, name: str) -> None:
    user = people.who(name, "Vision Team")
    metadata = {"name": "whose", "namespace": "vision"}
    script = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    label = owner_of(f"oidc:{name}")
    assert user.create(script).endswith(f"label {OWNER}: {label}")
    with made(user, {**script, "metadata": {**metadata, "labels": {OWNER: label}}}):
        pass
    assert len({owner_of(f"oidc:{other}") for other in NAMES}) == len(NAMES)


def test_a_job_is_seen_by_the_group_and_stopped_by_its_owner(
    people: People, users: Users, snapshot: SnapshotAssertion
) -> None:
    alice, bob = people.who("alice", "Vision Team"), people.who("bob", "Vision Team")
    with made(alice, job("jobs.batch", "theirs", "oidc.alice", template("oidc.alice"))) as path:
        for user in (alice, bob, users.of["alice"]):
            assert asked(user, "GET", path) == ""
        assert asked(bob, "DELETE", path) == snapshot
        assert asked(users.of["alice"], "DELETE", path) == snapshot
        relabel = {"metadata": {"labels": {OWNER: "oidc.bob"}}}
        assert "label" in asked(alice, "PATCH", path, relabel, "application/merge-patch+json")
        assert asked(alice, "DELETE", f"{path}?propagationPolicy=Background") == ""


def test_who_has_the_same_name_here_is_another(people: People, users: Users, snapshot: SnapshotAssertion) -> None:
    alice = people.who("alice", "Vision Team")
    with made(users.of["alice"], job("jobs.batch", "ours", "alice", template("alice"))) as path:
        assert asked(alice, "DELETE", path) == snapshot
    for owner in ("alice", "oidc.bob"):
        assert f"label {OWNER}: oidc.alice" in alice.create(job("jobs.batch", "forged", owner, template(owner)))
    mixed = job("jobs.batch", "mixed", "oidc.alice", template("alice"))
    assert alice.create(mixed) == snapshot


def test_nobody_reads_or_stops_what_is_another_groups(people: People) -> None:
    alice, carol = people.who("alice", "Vision Team"), people.who("carol", "speech")
    with made(alice, pod("secret", "oidc.alice")) as path:
        for verb in ("GET", "DELETE"):
            assert "cannot" in asked(carol, verb, path)
        assert "cannot" in asked(carol, "GET", f"{path}/log")
    for what in (JOBS.format("vision"), "/api/v1/namespaces/vision/configmaps", "/api/v1/namespaces/vision/pods"):
        assert asked(alice, "GET", what) == ""
        assert "cannot list" in asked(carol, "GET", what)
        assert "cannot list" in asked(people.who("dan"), "GET", what), "of no group"
    assert "cannot create" in carol.create(job("jobs.batch", "intruder", "oidc.carol", template("oidc.carol")))


def test_who_is_taken_out_of_a_group_loses_it_with_the_next_token(people: People) -> None:
    both, one = people.who("eve", "Vision Team", "speech"), people.who("eve", "speech")
    assert asked(both, "GET", JOBS.format("vision")) == ""
    assert "cannot list" in asked(one, "GET", JOBS.format("vision"))
    assert asked(one, "GET", JOBS.format("speech")) == ""


def test_no_pod_of_theirs_has_what_users_may_not_have(people: People, snapshot: SnapshotAssertion) -> None:
    alice = people.who("alice", "Vision Team")
    assert alice.create(pod("evil", "oidc.alice", volume(hostPath={"path": "/"}))) == snapshot
    secret = volume(secret={"secretName": "oidc.alice.key"})
    assert alice.create(pod("evil", "oidc.alice", secret)) == snapshot
    key = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "oidc.alice.key", "namespace": "vision"}}
    assert alice.create(key) == snapshot
    assert "cannot list" in asked(alice, "GET", "/api/v1/namespaces/vision/secrets")


def test_administrators_see_and_stop_the_jobs_of_all(people: People, users: Users, snapshot: SnapshotAssertion) -> None:
    ops, alice = people.who("olga", "ops"), people.who("alice", "Vision Team")
    with made(alice, job("jobs.batch", "stuck", "oidc.alice", template("oidc.alice"))) as path:
        assert asked(ops, "GET", "/apis/batch/v1/jobs") == ""
        assert asked(users.of["bob"], "DELETE", path) == snapshot
        assert asked(ops, "DELETE", f"{path}?propagationPolicy=Background") == ""
    assert "cannot create" in ops.create(pod("root", "oidc.olga"))
    assert "cannot list" in asked(ops, "GET", "/api/v1/secrets")


def test_users_of_ours_and_the_administrator_are_let_in_as_before(people: People, users: Users) -> None:
    assert known(users.of["alice"])[0] == "system:serviceaccount:pai-users:alice"
    assert "system:masters" in known(people.api)[1]
    assert "cannot" in asked(people.api.as_("none"), "GET", "/version") or seen(people.api.as_("none")) == UNKNOWN


def test_an_address_has_to_be_verified(people: People) -> None:
    let_in(people.api.folder, [jwt(people.issuer, "email")])
    try:
        sure = people.api.as_(people.issuer.token(email="alice@example.org", email_verified=True))
        until(lambda: seen(sure) == "", 90)
        claims: list[Json] = [{"email_verified": False}, {"email_verified": "true"}, {}]
        for verified in claims:
            token = people.issuer.token(email="alice@example.org", **verified)
            assert seen(people.api.as_(token)) == UNKNOWN
    finally:
        let_in(people.api.folder, [jwt(people.issuer)])
        until(lambda: seen(people.who("alice")) == "", 90)


def test_without_the_setting_nobody_of_it_is_let_in(people: People, users: Users) -> None:
    let_in(people.api.folder, [])
    try:
        until(lambda: seen(people.who("alice")) == UNKNOWN, 90)
        assert known(users.of["alice"])[0] == "system:serviceaccount:pai-users:alice"
    finally:
        let_in(people.api.folder, [jwt(people.issuer)])
        until(lambda: seen(people.who("alice")) == "", 90)
