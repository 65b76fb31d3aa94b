"""Groups, which are in the files of the site."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.console.endpoint import PERSONAL_ADMINISTRATORS, ApiCall, endpoint
from pai_install.console.errors import RestError, forbidden, invalid
from pai_install.console.openpai.storage import group_details

_ALL = "/api/v2/groups"
_IN_FILES = "groups are written in services-configuration.yaml"
_MOST_NAME = 63


def list_groups(call: ApiCall) -> Response:
    """All groups."""
    profile = call.services.model.profile
    return JSONResponse([group_details(profile, one) for one in profile.groups])


def show_group(call: ApiCall) -> Response:
    """One group."""
    profile = call.services.model.profile
    return JSONResponse(group_details(profile, profile.require_group(call.path["group"])))


def create_group(call: ApiCall) -> Response:
    """No one makes a group here. A group that exists is a conflict, as in OpenPAI."""
    name = _name(call)
    if any(one.name == name for one in call.services.model.profile.groups):
        raise RestError(HTTPStatus.CONFLICT, "ConflictGroupError", f"Group {name} already exists.")
    raise forbidden(_IN_FILES)


def change_group(call: ApiCall) -> Response:
    """No one changes a group here. An unknown group is said to be unknown, as in OpenPAI."""
    call.services.model.profile.require_group(_name(call))
    raise forbidden(_IN_FILES)


def _name(call: ApiCall) -> str:
    """The group of an address or of a body. Raises RestError."""
    if "group" in call.path:
        return call.path["group"]
    found = call.json()
    data = found.get("data", found)
    name = data.get("groupname") if isinstance(data, Mapping) else None
    if not isinstance(name, str) or not name:
        raise invalid("groupname is required")
    return name[:_MOST_NAME]


ROUTES = (
    Route(_ALL, endpoint(list_groups), methods=["GET"]),
    Route(_ALL, endpoint(create_group, PERSONAL_ADMINISTRATORS), methods=["POST"]),
    Route(_ALL, endpoint(change_group, PERSONAL_ADMINISTRATORS), methods=["PUT"]),
    Route(f"{_ALL}/{{group}}", endpoint(show_group), methods=["GET"]),
    Route(f"{_ALL}/{{group}}", endpoint(change_group, PERSONAL_ADMINISTRATORS), methods=["PUT", "DELETE"]),
)
