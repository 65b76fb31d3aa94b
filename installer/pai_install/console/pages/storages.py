"""Storages of one's groups: where they are, and how jobs mount them. No page has a key."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import Route

from pai_install.console.endpoint import ApiCall
from pai_install.console.openpai.storage import storages_of
from pai_install.console.pages.endpoint import page, shown
from pai_install.console.services import ConsoleServices
from pai_install.profile.model import ProfileStorage


@dataclass(frozen=True, slots=True)
class StorageRow:
    """A storage, and the groups with a grant that the caller may know."""

    storage: ProfileStorage
    groups: tuple[str, ...]


def list_storages(call: ApiCall) -> Response:
    """Storages that the caller's jobs may mount, and for administrators all storages."""
    profile, caller = call.services.model.profile, call.caller
    found = profile.storages if caller.admin else storages_of(profile, caller.groups)
    rows = [
        StorageRow(
            one,
            tuple(
                grant.group
                for grant in profile.grants
                if grant.storage == one.name and grant.current and (caller.admin or grant.group in caller.groups)
            ),
        )
        for one in found
    ]
    return shown(call, "storages.html", rows=rows)


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    del services
    return (Route("/storages", page(list_storages), methods=["GET"]),)
