"""Operations on users: what is planned for which cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.user_add import UserAdd
from pai_install.operations.user_remove import UserRemove
from pai_install.plan.model import ClusterCalls, Plan
from pai_install.site import Site
from pai_install.users.objects import account, administration, mark, membership
from tests.errors import raises
from tests.unit.cluster.fake import FakeCluster
from tests.unit.operations.test_nodes import planned

Json = dict[str, Any]
SERVICES = """\
authentication:
  group-manager:
    admin-group: {groupname: admins}
    grouplist:
      - {groupname: Vision}
      - {groupname: speech}
"""


def namespace(name: str) -> Json:
    return {"kind": "Namespace", "metadata": {"name": name}}


PLACES = (
    *map(namespace, ("pai-users", "admins", "vision", "speech")),
    {"kind": "ClusterRole", "metadata": {"name": "pai-member"}},
)
ALICE = (account("alice"), membership("alice", "Vision", "vision"), mark("alice", "1", "alice.1"))


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    return make_site(services=SERVICES)


def made(plan: Plan) -> list[str]:
    """KIND/NAME in NAMESPACE of what the plan applies."""
    return [f"{one['kind']}/{one['metadata'].get('namespace', '')}" for one in _arguments(plan, "objects")]


def gone(plan: Plan) -> list[str]:
    """KIND in NAMESPACE of what the plan deletes, in order."""
    return [f"{one['kind'].partition('.')[0]}/{one['namespace']}" for one in _arguments(plan, "refs")]


def _arguments(plan: Plan, key: str) -> list[Json]:
    found: list[Json] = []
    for step in plan.steps:
        assert isinstance(step.action, ClusterCalls)
        found += [one for call in step.action.calls for one in call.arguments[key]]
    return found


def test_a_new_user_gets_an_account_and_a_binding_in_each_group(site: Site, snapshot: SnapshotAssertion) -> None:
    plan = planned(UserAdd(user="alice", groups=("Vision", "speech")), site, FakeCluster.of(*PLACES))
    assert made(plan) == ["ServiceAccount/pai-users", "RoleBinding/vision", "RoleBinding/speech"]
    assert plan.steps[0].hosts[0].effects[1] == snapshot
    assert UserAdd(user="alice", groups=("Vision",)).question(plan, ()) == snapshot


def test_only_what_is_missing_is_made_and_then_nothing(site: Site) -> None:
    cluster = FakeCluster.of(*PLACES, *ALICE)
    assert made(planned(UserAdd(user="alice", groups=("Vision", "speech")), site, cluster)) == ["RoleBinding/speech"]
    again = planned(UserAdd(user="alice", groups=("Vision",)), site, cluster)
    assert (again.empty, again.nothing) == (True, "alice: a member of Vision already")


def test_a_binding_that_was_turned_to_another_by_hand_is_made_again(site: Site) -> None:
    turned = membership("alice", "Vision", "vision") | {"subjects": [{"kind": "User", "name": "mallory"}]}
    cluster = FakeCluster.of(*PLACES, account("alice"), turned)
    assert made(planned(UserAdd(user="alice", groups=("Vision",)), site, cluster)) == ["RoleBinding/vision"]


def test_a_member_of_the_administrators_is_one(site: Site) -> None:
    plan = planned(UserAdd(user="dora", groups=("admins",)), site, FakeCluster.of(*PLACES))
    assert made(plan) == ["ServiceAccount/pai-users", "RoleBinding/admins", "ClusterRoleBinding/"]


@pytest.mark.parametrize(
    ("there", "what"),
    [((), "namespace pai-users"), (PLACES[:1], "namespace vision"), (PLACES[:4], "role pai-member")],
)
def test_before_apply_made_what_groups_need_nobody_is_added(
    site: Site, there: tuple[Json, ...], what: str, snapshot: SnapshotAssertion
) -> None:
    with pytest.raises(PaiError, match=f"the cluster has no {what}") as caught:
        planned(UserAdd(user="alice", groups=("Vision",)), site, FakeCluster.of(*there))
    assert caught.value.remedy == snapshot


@pytest.mark.parametrize(
    ("name", "why", "remedy"),
    [
        ("Alice_B", "more than lower-case", "for example alice-b"),
        ("a.b", "more than lower-case", "for example a-b"),
        ("a" * 64, "64 characters", "for example " + "a" * 63),
        ("--", "more than lower-case", "for example alice, or team-a-2"),
        ("alice\n", "more than lower-case", "for example alice"),
    ],
)
def test_a_name_that_no_account_can_have_is_refused(site: Site, name: str, why: str, remedy: str) -> None:
    for operation in (UserAdd(user=name, groups=("Vision",)), UserRemove(user=name)):
        with pytest.raises(PaiError, match=why) as caught:
            operation.require(site)
        assert (caught.value.remedy, caught.value.exit_code) == (remedy, ExitCode.USAGE)


def test_a_group_that_the_site_has_not_is_refused(site: Site, snapshot: SnapshotAssertion) -> None:
    with raises("unknown-group") as caught:
        UserAdd(user="alice", groups=("vision",)).require(site)
    assert caught.value.remedy == snapshot


def test_a_site_without_groups_has_no_users_to_add(make_site: Callable[..., Site]) -> None:
    with raises("site-without-groups"):
        UserAdd(user="alice", groups=("Vision",)).require(make_site())
    UserRemove(user="alice").require(make_site())


def test_a_user_goes_with_everything_its_rights_first(site: Site, snapshot: SnapshotAssertion) -> None:
    cluster = FakeCluster.of(*PLACES, *ALICE, administration("alice"), account("bob"))
    plan = planned(UserRemove(user="alice"), site, cluster)
    assert gone(plan) == [
        "clusterrolebindings/",
        "rolebindings/vision",
        "secrets/pai-users",
        "serviceaccounts/pai-users",
    ]
    assert plan.steps[0].hosts[0].impact == snapshot


def test_what_an_interrupted_removal_left_is_removed(site: Site, snapshot: SnapshotAssertion) -> None:
    assert gone(planned(UserRemove(user="alice"), site, FakeCluster.of(account("alice")))) == [
        "serviceaccounts/pai-users"
    ]
    with raises("unknown-user") as caught:
        planned(UserRemove(user="alise"), site, FakeCluster.of(account("alice")))
    assert caught.value.remedy == snapshot


def test_a_user_leaves_a_group_and_is_an_administrator_as_long_as_a_group_makes_it_one(
    site: Site, snapshot: SnapshotAssertion
) -> None:
    member = (membership("alice", "admins", "admins"), administration("alice"))
    cluster = FakeCluster.of(*ALICE, *member)
    assert gone(planned(UserRemove(user="alice", groups=("Vision",)), site, cluster)) == ["rolebindings/vision"]
    left = planned(UserRemove(user="alice", groups=("admins",)), site, cluster)
    assert gone(left) == ["clusterrolebindings/", "rolebindings/admins"]
    assert planned(UserRemove(user="alice", groups=("speech",)), site, cluster).nothing == snapshot
