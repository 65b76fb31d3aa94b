"""Storages of a caller's groups, without secrets."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.console.endpoint import ApiCall, endpoint
from pai_install.console.errors import RestError
from pai_install.console.openpai.storage import storage_details, storage_item, storages_of
from pai_install.profile.model import ProfileStorage


def _own(call: ApiCall) -> list[ProfileStorage]:
    """An administrator sees all storages."""
    profile = call.services.model.profile
    return list(profile.storages) if call.caller.admin else storages_of(profile, call.caller.groups)


def list_storages(call: ApiCall) -> Response:
    """Storages that the caller's jobs may mount. No storage is mounted by default."""
    found = [] if call.query.get("default", "").lower() == "true" else _own(call)
    return JSONResponse({"storages": [storage_item(one) for one in found]})


def show_storage(call: ApiCall) -> Response:
    """One storage."""
    name = call.path["storage"]
    found = next((one for one in _own(call) if one.name == name), None)
    if found is None:
        raise RestError(HTTPStatus.NOT_FOUND, "NoStorageError", f"storage {name} is not found")
    return JSONResponse(storage_details(found))


ROUTES = (
    Route("/api/v2/storages", endpoint(list_storages), methods=["GET"]),
    Route("/api/v2/storages/{storage}", endpoint(show_storage), methods=["GET"]),
)
