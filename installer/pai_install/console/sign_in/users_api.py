"""OpenPAI's routes of users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.console.caller import CallerKind
from pai_install.console.endpoint import (
    ADMINISTRATORS_ONLY,
    PEOPLE,
    PERSONAL_ADMINISTRATORS,
    SIGNED_IN,
    ApiCall,
    endpoint,
)
from pai_install.console.errors import forbidden, invalid
from pai_install.console.sign_in.administration import UserAdministration, UserProfile
from pai_install.console.sign_in.api import fields, word
from pai_install.console.sign_in.service import SignInService
from pai_install.profile.model import ClusterProfile
from pai_install.site.user_names import user_name
from pai_install.users.model import ACCOUNT_PREFIX

_PROFILE = ("email", "extension")


@dataclass(frozen=True)
class UserRoutes:
    """Users for administrators, and one's own data. profile: the site in the cluster."""

    sign_in: SignInService
    profile: Callable[[], ClusterProfile]

    def all(self, call: ApiCall) -> Response:
        """All users."""
        return JSONResponse(self._users(call).all())

    def members(self, call: ApiCall) -> Response:
        """Users of a group: none of an unknown one, as in OpenPAI."""
        group = call.path["group"]
        found = (one for one in self._users(call).all() if group in one["grouplist"])
        return JSONResponse([{name: one[name] for name in ("username", "email", "admin")} for one in found])

    def one(self, call: ApiCall) -> Response:
        """One user: oneself, or for administrators any."""
        name, caller = call.path["user"], call.caller
        users = self._users(call)
        if name == caller.label or user_name(name) == caller.label:
            return JSONResponse(self._own(users))
        if not caller.admin or caller.kind is CallerKind.APPLICATION:
            raise forbidden(ADMINISTRATORS_ONLY)
        return JSONResponse(users.one(name))

    def create(self, call: ApiCall) -> Response:
        """Makes a user."""
        found = call.json()
        name, password = word(found, "username"), word(found, "password")
        if not name or not password:
            raise invalid("username and password are required")
        groups, admin = _words(found, "grouplist"), _flag(found, "admin")
        users = self._users(call)
        user = users.create(name, password, groups, UserProfile(word(found, "email"), _extension(found)))
        if admin:
            users.set_admin(user, admin=True)
        return _done("User is created successfully", 201)

    def update(self, call: ApiCall) -> Response:
        """Changes a user."""
        found = _data(call)
        name = word(found, "username")
        if not name:
            raise invalid("username is required")
        users = self._users(call)
        users.one(name)
        changes = _profile_changes(found)
        if changes:
            users.set_profile(name, changes)
        if word(found, "password"):
            users.set_password(name, word(found, "password"))
        if "grouplist" in found:
            users.set_groups(name, _words(found, "grouplist"))
        if "admin" in found:
            users.set_admin(name, admin=_flag(found, "admin"))
        return _done(f"Update user {name} successfully", 201)

    def update_own(self, call: ApiCall) -> Response:
        """Changes one's own password and address."""
        found, caller = _data(call), call.caller
        if user_name(word(found, "username")) != caller.label or not caller.name.startswith(ACCOUNT_PREFIX):
            raise forbidden("this is another user than the sender")
        users = self._users(call)
        if new := word(found, "newPassword"):
            self.sign_in.change_password(caller, call.address, word(found, "oldPassword"), new)
        if changes := _profile_changes(found):
            users.change_profile(caller.label, caller.uid, changes)
        return _done(f"Update user {caller.label} successfully", 201)

    def remove(self, call: ApiCall) -> Response:
        """Removes a user."""
        self._users(call).remove(call.path["user"])
        return _done(f"User {call.path['user']} is deleted successfully")

    def add_group(self, call: ApiCall) -> Response:
        """One further group."""
        self._users(call).add_group(call.path["user"], word(call.json(), "groupname"))
        return _done(f"User {call.path['user']} is added to the group", 201)

    def leave_group(self, call: ApiCall) -> Response:
        """One group less."""
        self._users(call).leave_group(call.path["user"], word(call.json(), "groupname"))
        return _done(f"User {call.path['user']} is removed from the group", 201)

    def set_groups(self, call: ApiCall) -> Response:
        """These groups alone."""
        self._users(call).set_groups(call.path["user"], _words(call.json(), "grouplist"))
        return _done(f"Update group list of user {call.path['user']} successfully", 201)

    def set_admin(self, call: ApiCall) -> Response:
        """The old form of one change."""
        self._users(call).set_admin(call.path["user"], admin=_flag(call.json(), "admin"))
        return _done(f"Update user {call.path['user']} successfully", 201)

    def set_email(self, call: ApiCall) -> Response:
        """The old form of one change, by an administrator or by the user."""
        name, caller, changes = call.path["user"], call.caller, {"email": word(call.json(), "email")}
        users = self._users(call)
        if user_name(name) == caller.label and caller.uid:
            users.change_profile(caller.label, caller.uid, changes)
        else:
            users.set_profile(name, changes)
        return _done(f"Update user {name} successfully", 201)

    def set_password(self, call: ApiCall) -> Response:
        """The old form of one change, by an administrator or by the user."""
        found, name = call.json(), call.path["user"]
        if user_name(name) == call.caller.label:
            old, new = word(found, "oldPassword"), word(found, "newPassword")
            self.sign_in.change_password(call.caller, call.address, old, new)
        else:
            self._users(call).set_password(name, word(found, "newPassword"))
        return _done(f"Update user {name} successfully", 201)

    def set_clusters(self, call: ApiCall) -> Response:
        """Groups decide over virtual clusters, and the site's file over groups."""
        del call
        raise forbidden("groups decide over virtual clusters: services-configuration.yaml grants them")

    def routes(self) -> tuple[Route, ...]:
        """All routes."""
        admin, people = PERSONAL_ADMINISTRATORS, PEOPLE
        found = [
            Route("/api/v2/users/me", endpoint(self.update_own, people), methods=["PUT"]),
            Route("/api/v2/groups/{group}/userlist", endpoint(self.members, admin), methods=["GET"]),
        ]
        for base in ("/api/v2/users", "/api/v2/user", "/api/v1/user"):
            found += [
                Route(base, endpoint(self.all, admin), methods=["GET"]),
                Route(base, endpoint(self.create, admin), methods=["POST"]),
                Route(base, endpoint(self.update, admin), methods=["PUT"]),
            ]
        for base in ("/api/v2/users/{user}", "/api/v2/user/{user}", "/api/v1/user/{user}"):
            found += [
                Route(base, endpoint(self.one, SIGNED_IN), methods=["GET"]),
                Route(base, endpoint(self.remove, admin), methods=["DELETE"]),
                Route(f"{base}/virtualcluster", endpoint(self.set_clusters, admin), methods=["PUT"]),
                Route(f"{base}/password", endpoint(self.set_password, people), methods=["PUT"]),
                Route(f"{base}/email", endpoint(self.set_email, people), methods=["PUT"]),
                Route(f"{base}/admin", endpoint(self.set_admin, admin), methods=["PUT"]),
            ]
        group = "/api/v2/users/{user}/group"
        return (
            *found,
            Route(group, endpoint(self.add_group, admin), methods=["PUT"]),
            Route(group, endpoint(self.leave_group, admin), methods=["DELETE"]),
            Route(f"{group}list", endpoint(self.set_groups, admin), methods=["PUT"]),
        )

    def _users(self, call: ApiCall) -> UserAdministration:
        return UserAdministration(self.sign_in, self.profile(), call.client, call.caller)

    def _own(self, users: UserAdministration) -> dict[str, Any]:
        """Oneself, without a right to see any user."""
        caller = users.caller
        kept = users.profile_of(caller.label, caller.uid) if caller.uid else UserProfile()
        return users.content(caller.label, caller.groups, kept, admin=caller.admin)


def _data(call: ApiCall) -> Mapping[str, Any]:
    """The changes. With `patch: false`, OpenPAI wants all fields: ours changes those that are there."""
    found = fields(call).get("data")
    if not isinstance(found, Mapping):
        raise invalid("data is required")
    return found


def _profile_changes(found: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if "email" in found:
        changes["email"] = word(found, "email")
    if "extension" in found:
        changes["extension"] = _extension(found)
    return changes


def _extension(found: Mapping[str, Any]) -> Mapping[str, Any]:
    value = found.get("extension", {})
    if not isinstance(value, Mapping):
        raise invalid("extension is an object")
    return value


def _words(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = found.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value) or len(value) > 1000:
        raise invalid(f"{name} is a list of names")
    return tuple(dict.fromkeys(value))


def _flag(found: Mapping[str, Any], name: str) -> bool:
    value = found.get(name, False)
    if not isinstance(value, bool):
        raise invalid(f"{name} is true or false")
    return value


def _done(message: str, status: int = 200) -> Response:
    return JSONResponse({"message": message}, status)
