"""Groups, which are in the files of the site."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.app.users import list_users
from pai_install.console.endpoint import ADMINISTRATORS, PEOPLE, ApiCall, endpoint
from pai_install.console.errors import forbidden
from pai_install.console.openpai.storage import group_details
from pai_install.console.routes.job_changes import CallerContext

_ALL = "/api/v2/groups"


def list_groups(call: ApiCall) -> Response:
    """All groups."""
    profile = call.services.model.profile
    return JSONResponse([group_details(profile, one) for one in profile.groups])


def show_group(call: ApiCall) -> Response:
    """One group."""
    profile = call.services.model.profile
    return JSONResponse(group_details(profile, profile.require_group(call.path["group"])))


def list_members(call: ApiCall) -> Response:
    """Users of a group, as the caller may see them."""
    group = call.services.model.profile.require_group(call.path["group"])
    users = list_users(CallerContext(call))
    return JSONResponse(
        [{"username": one.name, "email": "", "admin": one.admin} for one in users if group.name in one.groups]
    )


def change_group(call: ApiCall) -> Response:
    """No one changes a group here."""
    del call
    raise forbidden("groups are written in services-configuration.yaml")


ROUTES = (
    Route(_ALL, endpoint(list_groups), methods=["GET"]),
    Route(_ALL, endpoint(change_group, PEOPLE), methods=["POST", "PUT"]),
    Route(f"{_ALL}/{{group}}/userlist", endpoint(list_members, ADMINISTRATORS), methods=["GET"]),
    Route(f"{_ALL}/{{group}}", endpoint(show_group), methods=["GET"]),
    Route(f"{_ALL}/{{group}}", endpoint(change_group, PEOPLE), methods=["PUT", "DELETE"]),
)
