"""The objects of an API server as etcd keeps them: read as a whole, and put back whenever tests have changed them."""

from __future__ import annotations

import json
import urllib.request
from base64 import b64decode, b64encode
from typing import Any

_FIRST, _BEHIND = "/registry/", "/registry0"
_NOT_OURS = (
    # the API server renews these all the time
    "/registry/masterleases/",
    "/registry/leases/kube-system/apiserver-",
    # it makes and removes these itself for the kinds that it serves
    "/registry/apiregistration.k8s.io/",
)
Content = dict[str, str]


def content_of(etcd: int) -> Content:
    """Key -> value in base64. etcd: its port on loopback."""
    found = _asked(etcd, "range", {"key": _encoded(_FIRST), "range_end": _encoded(_BEHIND)})
    pairs = ((b64decode(it["key"]).decode(), it["value"]) for it in found["kvs"])
    return {key: value for key, value in pairs if not key.startswith(_NOT_OURS)}


def put_back(etcd: int, wanted: Content) -> set[str]:
    """Undoes all changes in one transaction. Returns the keys."""
    now = content_of(etcd)
    changes = {key for key in now | wanted if now.get(key) != wanted.get(key)}
    steps: list[dict[str, Any]] = [
        {"request_put": {"key": _encoded(key), "value": wanted[key]}}
        if key in wanted
        else {"request_delete_range": {"key": _encoded(key)}}
        for key in changes
    ]
    if steps:
        _asked(etcd, "txn", {"success": steps})
    return changes


def _asked(etcd: int, verb: str, body: dict[str, Any]) -> Any:
    address = f"http://127.0.0.1:{etcd}/v3/kv/{verb}"
    with urllib.request.urlopen(address, json.dumps(body).encode(), timeout=30) as answer:
        return json.load(answer)


def _encoded(key: str) -> str:
    return b64encode(key.encode()).decode()
