"""Users that administrators make, change, and remove, in the administrators' own names.

The API server decides: it knows the rights of the administrator, and admission policies limit the objects. The console
adds what is no object of users: passwords, addresses, and OpenPAI's further fields.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from pai_install.agents.common.values import InvalidJsonError, parse_object
from pai_install.cluster.client import ApiError, ClusterClient, Patch, Select
from pai_install.console.caller import Caller
from pai_install.console.endpoint import ADMINISTRATORS_ONLY
from pai_install.console.errors import RestError, denial, forbidden, invalid, rest_error
from pai_install.console.sign_in.service import SignInService
from pai_install.kube.objects import JsonObject, child, text
from pai_install.profile.model import ClusterProfile, ProfileGroup
from pai_install.site.groups import DEFAULT
from pai_install.site.user_names import user_name, why_no_name
from pai_install.users.changes import (
    ACCOUNTS,
    ADMINISTRATIONS,
    BINDINGS,
    UserGroup,
    account_ref,
    departure,
    joining,
    refs_of,
)
from pai_install.users.credentials import Credential, CredentialKind
from pai_install.users.model import NAMESPACE, OWNER, User
from pai_install.users.read import UserObjects, user_of

# annotation of an account: who changed its password or its data last. The API server decides whether they may
CHANGED_BY = "pai-install/changed-by"
_MOST_DATA = 64 * 1024
# https://www.rfc-editor.org/rfc/rfc5321#section-4.5.3.1.3
_MOST_EMAIL = 254
_EMAIL, _EXTENSION = "email", "extension"


@dataclass(frozen=True)
class UserProfile:
    """What OpenPAI keeps of a user, and the cluster does not."""

    email: str = ""
    extension: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class UserAdministration:
    """Changes of users by one caller. client: acts as the caller."""

    sign_in: SignInService
    profile: ClusterProfile
    client: ClusterClient
    caller: Caller

    def all(self) -> list[dict[str, Any]]:
        """All users, in the form of OpenPAI."""
        found = self._listed(OWNER)
        uids = {user_of(one): _uid(one) for one in found.accounts}
        kept = self.sign_in.store.of_kind(CredentialKind.PROFILE)
        return [self._content(user, _profile_in(kept.get(user.name), uids[user.name])) for user in found.users]

    def one(self, name: str) -> dict[str, Any]:
        """A user in the form of OpenPAI. Raises RestError."""
        user, found = self._require(name)
        return self._content(found.user(user), self.profile_of(user, _uid(found.accounts[0])))

    def create(self, name: str, password: str, groups: Collection[str], profile: UserProfile) -> str:
        """Makes a user with a password. Returns its name. Raises RestError."""
        user = user_name(name)
        if why := why_no_name(user):
            raise invalid(f"username {why}")
        if self._found(user).accounts:
            raise _exists(name)
        chosen = [self._group(group) for group in groups] or self._default
        objects = [one.object for one in joining(user, chosen, UserObjects())]
        try:
            (account, *_) = self.client.create(objects[:1])
        except ApiError as error:
            raise (_exists(name) if error.reason == "AlreadyExists" else _refused(error)) from error
        uid = _uid(account)
        try:
            self.sign_in.passwords.write(user, uid, password)
            self.write_profile(user, uid, profile)
            self.client.apply(objects[1:], force=True)
        except (RestError, ApiError) as error:
            self.client.delete([account_ref(user)])
            raise (_refused(error) if isinstance(error, ApiError) else error) from error
        return user

    def remove(self, name: str) -> None:
        """Removes a user. Raises RestError for an administrator: it leaves the administrators first."""
        user, found = self._require(name)
        if found.user(user).admin or user == self.caller.label:
            message = f"Admin {name} is not allowed to remove."
            raise RestError(HTTPStatus.FORBIDDEN, "RemoveAdminError", message)
        self._delete(found)

    def set_groups(self, name: str, groups: Collection[str]) -> None:
        """Makes the user a member of these groups alone. Raises RestError."""
        user, found = self._require(name)
        chosen = [self._group(group) for group in groups]
        left = set(found.user(user).groups) - set(groups)
        self._change(user, found, chosen, left)

    def add_group(self, name: str, group: str) -> None:
        """Makes the user a member of a further group. Raises RestError."""
        user, found = self._require(name)
        self._change(user, found, [self._group(group)], ())

    def leave_group(self, name: str, group: str) -> None:
        """Ends one membership. Raises RestError."""
        user, found = self._require(name)
        self._change(user, found, (), [self._group(group).name])

    def set_admin(self, name: str, *, admin: bool) -> None:
        """Adds the user to the first group of administrators, or takes it out of all of them. Raises RestError."""
        user, found = self._require(name)
        now = found.user(user)
        administrators = [group for group in self._groups if group.administrators]
        if admin and not now.admin:
            if not administrators:
                raise invalid("this site has no group of administrators")
            self._change(user, found, administrators[:1], ())
        elif not admin and now.admin:
            self._change(user, found, (), [group.name for group in administrators])

    def set_password(self, name: str, password: str) -> None:
        """Sets the password of a user, and ends its sessions. Raises RestError."""
        user, uid = self._touch(name)
        self.sign_in.passwords.write(user, uid, password)
        self.sign_in.sessions.close_all(user, uid)

    def set_profile(self, name: str, changes: Mapping[str, Any]) -> None:
        """Sets address and further fields of a user. Raises RestError."""
        user, uid = self._touch(name)
        self.change_profile(user, uid, changes)

    def change_profile(self, user: str, uid: str, changes: Mapping[str, Any]) -> None:
        """Sets address and further fields that are given."""
        before = self.profile_of(user, uid)
        self.write_profile(
            user, uid, UserProfile(changes.get(_EMAIL, before.email), changes.get(_EXTENSION, before.extension))
        )

    def profile_of(self, user: str, uid: str) -> UserProfile:
        """What was kept of a user."""
        return _profile_in(self.sign_in.store.find(CredentialKind.PROFILE, user), uid)

    def write_profile(self, user: str, uid: str, profile: UserProfile) -> None:
        """Keeps it. Raises RestError for too much."""
        data = {_EMAIL: profile.email, _EXTENSION: json.dumps(profile.extension or {})}
        if len(profile.email) > _MOST_EMAIL or not profile.email.isprintable():
            # lists of all users have it
            raise invalid(f"an email address has at most {_MOST_EMAIL} printable characters")
        if sum(map(len, data.values())) > _MOST_DATA:
            raise invalid(f"email and extension have at most {_MOST_DATA} characters")
        self.sign_in.store.put(Credential(CredentialKind.PROFILE, user, user, uid, data=data))

    def _content(self, user: User, kept: UserProfile) -> dict[str, Any]:
        return self.content(user.name, user.groups, kept, admin=user.admin)

    def content(self, name: str, groups: Collection[str], kept: UserProfile, *, admin: bool) -> dict[str, Any]:
        """A user in the form of OpenPAI."""
        return {
            "username": name,
            "email": kept.email,
            "admin": admin,
            "grouplist": list(groups),
            "virtualCluster": self.clusters(groups, admin=admin),
            "storageConfig": self.storages(groups),
            "extension": dict(kept.extension or {}),
        }

    def clusters(self, groups: Collection[str], *, admin: bool) -> list[str]:
        """Virtual clusters of the groups, and all of them for administrators."""
        spaces = {group.namespace for group in self.profile.groups if group.name in groups}
        scheduling = self.profile.scheduling
        found = scheduling.clusters if scheduling is not None else ()
        return [cluster.name for cluster in found if admin or spaces & set(cluster.namespaces)]

    def storages(self, groups: Collection[str]) -> list[str]:
        """Storages of the groups, each once."""
        return list(dict.fromkeys(grant.storage for grant in self.profile.grants if grant.group in groups))

    @property
    def _groups(self) -> Sequence[UserGroup]:
        return [_user_group(group) for group in self.profile.groups]

    @property
    def _default(self) -> list[UserGroup]:
        return [group for group in self._groups if group.name == DEFAULT]

    def _group(self, name: str) -> UserGroup:
        found = next((group for group in self._groups if group.name == name), None)
        if found is None:
            raise RestError(HTTPStatus.NOT_FOUND, "NoGroupError", f"Group {name} is not found.")
        return found

    def _require(self, name: str) -> tuple[str, UserObjects]:
        user = user_name(name)
        found = self._found(user) if not why_no_name(user) else UserObjects()
        if not found.accounts:
            raise RestError(HTTPStatus.NOT_FOUND, "NoUserError", f"User {name} is not found.")
        return user, found

    def _found(self, user: str) -> UserObjects:
        return self._listed(f"{OWNER}={user}")

    def _listed(self, labels: str) -> UserObjects:
        try:
            accounts, memberships, administrations = self.client.list(
                Select((ACCOUNTS,), NAMESPACE, labels),
                Select((BINDINGS,), labels=labels),
                Select((ADMINISTRATIONS,), labels=labels),
            )
        except ApiError as error:
            raise _refused(error) from error
        return UserObjects(accounts, (), memberships, administrations)

    def _change(self, user: str, found: UserObjects, joins: Collection[UserGroup], left: Collection[str]) -> None:
        """New rights first: who moves from one group of administrators to another stays one."""
        objects = [one.object for one in joining(user, joins, found)]
        ends = departure(found, left, self._groups) if left else UserObjects()
        stays_admin = any(group.administrators for group in joins)
        if stays_admin:
            ends = UserObjects((), (), ends.memberships, ())
        try:
            self.client.apply(objects, force=True)
        except ApiError as error:
            raise _refused(error) from error
        self._delete(ends)

    def _delete(self, found: UserObjects) -> None:
        try:
            self.client.delete(refs_of(found, marks=False))
        except ApiError as error:
            raise _refused(error) from error

    def _touch(self, name: str) -> tuple[str, str]:
        """Asks the API server whether the caller may change the user, and leaves a trace in its audit log."""
        user, found = self._require(name)
        change = {"metadata": {"annotations": {CHANGED_BY: self.caller.label}}}
        try:
            self.client.patch([Patch(account_ref(user), change)])
        except ApiError as error:
            raise _refused(error) from error
        return user, _uid(found.accounts[0])


def _profile_in(found: Credential | None, uid: str) -> UserProfile:
    """The profile that a credential holds, for the account with this UID alone."""
    if found is None or found.uid != uid:
        return UserProfile(extension={})
    try:
        extension = parse_object(found.data.get(_EXTENSION, "{}"), max_size=_MOST_DATA)
    except InvalidJsonError:
        extension = {}
    return UserProfile(found.data.get(_EMAIL, ""), extension)


def _uid(account: JsonObject) -> str:
    return text(child(account, "metadata").get("uid"))


def _user_group(group: ProfileGroup) -> UserGroup:
    return UserGroup(group.name, group.namespace, group.administrators)


def _exists(name: str) -> RestError:
    return RestError(HTTPStatus.CONFLICT, "ConflictUserError", f"User {name} already exists.")


def _refused(error: ApiError) -> RestError:
    """The words of OpenPAI for a caller without the right, and those of a policy."""
    refused = error.reason == "Forbidden" and not denial(error)
    return forbidden(ADMINISTRATORS_ONLY) if refused else rest_error(error)
