"""A list of objects and the changes after it, as long as the API server keeps the watch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Callable

from pai_install.agents.common.api import ApiError, Client
from pai_install.agents.common.values import Json, child, meta, number, rows, text

_DURATION_S = 300
_RETRY_S = 2.0


def follow(
    client: Client,
    path: str,
    query: Mapping[str, str],
    listed: Callable[[tuple[Json, ...]], None],
    changed: Callable[[bool, Json], None],
) -> None:
    """Lists once, then reports changes until the watch is lost. Raises ApiError.

    changed: takes whether the object is deleted, and its last state.
    """
    items: list[Json] = []
    version = ""
    for page in client.pages(path, query):
        # items of a list do not have their kind
        kind = {"kind": text(page.get("kind"))[: -len("List")], "apiVersion": text(page.get("apiVersion"))}
        items += [{**kind, **item} for item in rows(page.get("items"))]
        version = meta(page, "resourceVersion")
    listed(tuple(items))
    while True:
        for event in client.watch(path, {**query, "resourceVersion": version}, _DURATION_S):
            item, change = child(event, "object"), event.get("type")
            if change == "ERROR":
                raise ApiError(f"watch {path}: {text(item.get('message'))}", number(item.get("code")) or 0)
            # Bookmarks carry a version, too. The next watch begins there, and not at the list.
            version = meta(item, "resourceVersion") or version
            if change in ("ADDED", "MODIFIED", "DELETED"):
                changed(change == "DELETED", item)


def keep_following(
    client: Client,
    path: str,
    listed: Callable[[tuple[Json, ...]], None],
    changed: Callable[[bool, Json], None],
    warn: Callable[[str], None],
) -> None:
    """As `follow`, without end: it begins again with a list when the watch is lost."""
    while True:
        try:
            follow(client, path, {}, listed, changed)
        except ApiError as error:
            warn(str(error))
        time.sleep(_RETRY_S)
