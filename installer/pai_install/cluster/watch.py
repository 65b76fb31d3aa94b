"""Changes of objects as they happen, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pai_install.agents.common.values import InvalidJsonError, parse_object
from pai_install.cluster.client import Select, WatchEvent
from pai_install.cluster.http import ApiRequest
from pai_install.cluster.http_api import Api, selectors, typed_items
from pai_install.cluster.http_errors import not_json, watch_refusal
from pai_install.cluster.lines import lines
from pai_install.cluster.resources import ApiResource
from pai_install.kube.objects import JsonObject, child, text
from pai_install.system.plain import plain

# the API server ends a watch after this time, and sends a bookmark each minute
_DURATION_S = 300
_READ_TIMEOUT_S = 120.0
# before it asks again
_PAUSE_S = 0.5
# an object has at most 1.5 MiB in etcd
_LARGEST_EVENT = 12 << 20


def changes(api: Api, kind: ApiResource, select: Select) -> Iterator[WatchEvent]:
    """Yields the objects as ADDED, a BOOKMARK, then each change, also after a lost connection.

    Raises ApiError "Expired" when changes may have been missed: list again.
    """
    version = ""
    for page in api.whole_list(kind, select):  # page by page: all pods together may need a GiB
        version = text(child(page, "metadata").get("resourceVersion"))
        yield from (WatchEvent("ADDED", item) for item in typed_items(page, kind))
    yield WatchEvent("BOOKMARK", {})
    while True:
        query = (
            *selectors(select),
            *(("watch", "1"), ("resourceVersion", version), ("allowWatchBookmarks", "true")),
            ("timeoutSeconds", str(_DURATION_S)),
        )
        what = f"watch {kind.full_name}"
        request = ApiRequest(what, kind.path(select.namespace), query=query, timeout_s=_READ_TIMEOUT_S)
        try:
            with api.stream(request) as parts:
                for line in lines(parts, _LARGEST_EVENT):
                    event = _parsed(line, what)
                    item = child(event, "object")
                    version = text(child(item, "metadata").get("resourceVersion")) or version
                    if event.get("type") == "ERROR":
                        raise watch_refusal("of the cluster", what, item)
                    if event.get("type") != "BOOKMARK":
                        yield WatchEvent(text(event.get("type")), item)
        except ConnectionError:
            pass  # it continues from the last version, so nothing is missed
        time.sleep(_PAUSE_S)


def _parsed(line: bytes, what: str) -> JsonObject:
    try:
        found: JsonObject = plain(parse_object(line, max_size=_LARGEST_EVENT))
    except InvalidJsonError as error:
        raise not_json("the watch", what, error) from error
    return found
