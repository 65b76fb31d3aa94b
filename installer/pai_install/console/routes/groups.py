"""Groups, which are in the files of the site."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.console.endpoint import PEOPLE, ApiCall, endpoint
from pai_install.console.errors import forbidden
from pai_install.console.openpai.storage import group_details

_ALL = "/api/v2/groups"


def list_groups(call: ApiCall) -> Response:
    """All groups."""
    profile = call.services.model.profile
    return JSONResponse([group_details(profile, one) for one in profile.groups])


def show_group(call: ApiCall) -> Response:
    """One group."""
    profile = call.services.model.profile
    return JSONResponse(group_details(profile, profile.require_group(call.path["group"])))


def change_group(call: ApiCall) -> Response:
    """No one changes a group here."""
    del call
    raise forbidden("groups are written in services-configuration.yaml")


ROUTES = (
    Route(_ALL, endpoint(list_groups), methods=["GET"]),
    Route(_ALL, endpoint(change_group, PEOPLE), methods=["POST", "PUT"]),
    Route(f"{_ALL}/{{group}}", endpoint(show_group), methods=["GET"]),
    Route(f"{_ALL}/{{group}}", endpoint(change_group, PEOPLE), methods=["PUT", "DELETE"]),
)
