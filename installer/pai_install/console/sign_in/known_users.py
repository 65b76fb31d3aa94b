"""Users of the cluster as the console knows them: their accounts, groups, and administrators."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from pai_install.cluster.client import ClusterClient, Select
from pai_install.console.caller import Caller, CallerKind
from pai_install.console.sign_in.watched import WatchedObjects
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.users.directory import PREFIX, owner_of
from pai_install.users.model import ACCOUNT_PREFIX, ADMIN, GROUP, MEMBER, NAMESPACE, OWNER

_ACCOUNTS = Select(("serviceaccounts",), NAMESPACE, OWNER)
_BINDINGS = Select(("rolebindings.rbac.authorization.k8s.io",))
_ADMINISTRATIONS = Select(("clusterrolebindings.rbac.authorization.k8s.io",))
_ASKED_FOR_S, _MOST_KEPT = 1.0, 500


class KnownUsers:
    """Accounts and bindings, by watches. An account that no watch has seen is asked for."""

    def __init__(self, own: Callable[[], ClusterClient], clock: Callable[[], float] = time.monotonic) -> None:
        self._own, self._clock = own, clock
        self._accounts = WatchedObjects(own, _ACCOUNTS, clock)
        self._bindings = WatchedObjects(own, _BINDINGS, clock)
        self._administrations = WatchedObjects(own, _ADMINISTRATIONS, clock)
        self._asked: dict[str, tuple[float, JsonObject]] = {}
        # name and groups -> versions of the watches, groups of the site, and whether it administrates
        self._rights: dict[tuple[str, frozenset[str]], tuple[tuple[int, int], tuple[str, ...], bool]] = {}
        self._by_name: tuple[int, dict[str, JsonObject]] = (-1, {})

    def start(self) -> None:
        """Starts the watches."""
        for watched in (self._accounts, self._bindings, self._administrations):
            watched.start()

    def stop(self) -> None:
        """Ends the watches with their next event."""
        for watched in (self._accounts, self._bindings, self._administrations):
            watched.stop()

    @property
    def is_known(self) -> bool:
        """Whether users and their rights are those of now."""
        return all(one.is_known for one in (self._accounts, self._bindings, self._administrations))

    def uid(self, user: str) -> str:
        """The UID of the account of a user, or "". It changes within a second of the account."""
        account = self.account(user)
        return text(child(account, "metadata").get("uid")) if account is not None else ""

    def account(self, user: str) -> JsonObject | None:
        """The account of a user, or None."""
        return self._watched.get(user) or self._query(user)

    @property
    def _watched(self) -> Mapping[str, JsonObject]:
        """Name -> account that a watch has seen. Empty while the cluster does not answer."""
        if not self._accounts.is_known:
            return {}
        version = self._accounts.version
        if self._by_name[0] != version:
            found = {text(child(it, "metadata").get("name")): it for it in self._accounts.objects.values()}
            self._by_name = (version, found)
        return self._by_name[1]

    @property
    def names(self) -> tuple[str, ...]:
        """All users with an account, by name."""
        return tuple(sorted(self._watched))

    def caller(self, user: str, kind: CallerKind) -> Caller:
        """A user of `user add` as a caller."""
        name = f"{ACCOUNT_PREFIX}{user}"
        account = self.account(user)
        return self.with_groups(Caller(name, user, kind, text(child(account, "metadata").get("uid"))), ())

    def with_groups(self, caller: Caller, api_groups: Iterable[str]) -> Caller:
        """The caller with the groups of the site, and whether it administrates. api_groups: at the API server.

        Raises RestError while the cluster does not answer: a caller without groups would be refused.
        """
        groups = frozenset(api_groups)
        versions = (self._bindings.version, self._administrations.version)
        kept = self._rights.get((caller.name, groups))
        if kept is None or kept[0] != versions:
            kept = (versions, *self._rights_of(caller.name, groups))
            self._rights = {**dict(list(self._rights.items())[-_MOST_KEPT:]), (caller.name, groups): kept}
        return replace(caller, groups=kept[1], admin=kept[2])

    def _rights_of(self, name: str, api_groups: frozenset[str]) -> tuple[tuple[str, ...], bool]:
        """Groups of the site, and whether it administrates."""
        groups = {
            text(child(one, "metadata", "annotations").get(GROUP))
            for one in self._bindings.objects.values()
            if _binds(one, MEMBER) and _has(one, name, api_groups)
        }
        admin = any(
            _binds(one, ADMIN) and _has(one, name, api_groups) for one in self._administrations.objects.values()
        )
        return tuple(sorted(group for group in groups if group)), admin

    def of_review(self, name: str, api_groups: Iterable[str], uid: str, kind: CallerKind, bearer: str) -> Caller | None:
        """A caller whose token the API server took, or None for any other account."""
        if name.startswith(ACCOUNT_PREFIX):
            user = name.removeprefix(ACCOUNT_PREFIX)
            caller = self.caller(user, CallerKind.KUBECONFIG)
            if not caller.uid or caller.uid != uid:
                return None
            return replace(caller, bearer=bearer)
        if not name.startswith(PREFIX):
            return None
        return self.with_groups(Caller(name, owner_of(name), kind, bearer=bearer), api_groups)

    def _query(self, user: str) -> JsonObject | None:
        """The account as the cluster has it, at most a second ago."""
        now = self._clock()
        kept = self._asked.get(user)
        if kept is not None and now - kept[0] < _ASKED_FOR_S:
            return kept[1]
        (found,) = self._own().get([Ref("serviceaccount", user, NAMESPACE)])
        if found is not None and text(child(found, "metadata", "labels").get(OWNER)) != user:
            found = None
        if found is not None:
            self._asked = {**dict(list(self._asked.items())[-_MOST_KEPT:]), user: (now, found)}
        return found


def _binds(binding: JsonObject, role: str) -> bool:
    ref = child(binding, "roleRef")
    return (text(ref.get("kind")), text(ref.get("name"))) == ("ClusterRole", role)


def _has(binding: JsonObject, name: str, groups: Collection[str]) -> bool:
    for subject in rows(binding.get("subjects")):
        kind, found = text(subject.get("kind")), text(subject.get("name"))
        if kind == "Group" and found in groups:
            return True
        account = f"system:serviceaccount:{text(subject.get('namespace'))}:{found}"
        if kind == "ServiceAccount" and account == name:
            return True
    return False
