"""Groups with their rights, and users for administrators. The API server decides on every change of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import Route

from pai_install.console.endpoint import ApiCall
from pai_install.console.errors import RestError, invalid
from pai_install.console.openpai.storage import group_details
from pai_install.console.pages.account import sign_in_of
from pai_install.console.pages.endpoint import action, page, require_administrator, shown
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.administration import UserAdministration, UserProfile
from pai_install.console.sign_in.forms import sent_to
from pai_install.site.passwords import SHORTEST

# users that a page lists
_MOST = 500


def _users(call: ApiCall) -> UserAdministration:
    """Users as the caller may change them. Raises RestError for anybody but an administrator."""
    require_administrator(call)
    return UserAdministration(sign_in_of(call), call.services.model.profile, call.client, call.caller)


def list_users(call: ApiCall) -> Response:
    """The caller's groups, and for administrators all groups and users."""
    return _list(call)


def _list(call: ApiCall, problem: str = "", name: str = "", status: int = 200) -> Response:
    profile, caller = call.services.model.profile, call.caller
    users = _users(call).all() if caller.admin else []
    word = call.query.get("keyword", "")
    found = [one for one in users if word in one["username"]]
    return shown(
        call,
        "users.html",
        status,
        groups=[group_details(profile, one) for one in profile.groups if caller.admin or one.name in caller.groups],
        users=found[:_MOST],
        hidden=len(found) - len(found[:_MOST]),
        names=[group.name for group in profile.groups],
        word=word,
        name=name,
        problem=problem,
        shortest=SHORTEST,
    )


def show_user(call: ApiCall) -> Response:
    """One user, with forms for changes."""
    return _one(call)


def _one(call: ApiCall, problem: str = "", status: int = 200) -> Response:
    user: Mapping[str, Any] = _users(call).one(call.path["user"])
    names = [group.name for group in call.services.model.profile.groups]
    own = user["username"] == call.caller.label
    return shown(call, "user.html", status, user=user, names=names, own=own, problem=problem, shortest=SHORTEST)


def _groups(form: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name.removeprefix("group.") for name in form if name.startswith("group."))


def create_user(call: ApiCall, form: Mapping[str, str]) -> Response:
    """Makes a user with a password."""
    name = form.get("username", "")
    try:
        users = _users(call)
        if not name or not form.get("password"):
            raise invalid("name and password are required")
        user = users.create(name, form["password"], _groups(form), UserProfile(form.get("email", ""), {}))
    except RestError as error:
        if not call.caller.admin:
            raise
        return _list(call, error.message, name, error.status)
    return sent_to(_address(user))


def change_user(call: ApiCall, form: Mapping[str, str]) -> Response:
    """The button of the form: groups, password, or removal."""
    users, name, wanted = _users(call), call.path["user"], form.get("do", "")
    try:
        if wanted == "groups":
            users.set_groups(name, _groups(form))
        elif wanted == "password":
            users.set_password(name, form.get("password", ""))
        elif wanted == "remove":
            if form.get("name") != name:
                raise invalid("type the name of the user to remove it")
            users.remove(name)
            return sent_to("/users")
        else:
            raise invalid("this form has no such button")
    except RestError as error:
        if error.code == "NoUserError":
            raise
        return _one(call, error.message, error.status)
    return sent_to(_address(name))


def _address(user: str) -> str:
    return f"/users/{quote(user, safe='')}"


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    return (
        Route("/users", page(list_users), methods=["GET"]),
        action(services, "/users", create_user),
        Route("/users/{user}", page(show_user), methods=["GET"]),
        action(services, "/users/{user}", change_user),
    )
