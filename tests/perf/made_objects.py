"""Objects of a measurement in a cluster: made, and gone afterwards, whatever an earlier run left."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

Object = dict[str, Any]

# one call; what takes longer is asked for again
_CALL = "--request-timeout=60s"
# so long may go what was deleted
GONE_S = 600.0


class Cluster(Protocol):
    """Who can be asked."""

    def kubectl(self, *words: str) -> str:
        """What kubectl printed."""
        ...


@contextmanager
def there_are(cluster: Cluster, objects: Sequence[Object]) -> Iterator[None]:
    """They are made anew, and gone afterwards. Raises TimeoutError where they do not go."""
    gone(cluster, objects)
    create(cluster, objects)
    try:
        yield
    finally:
        gone(cluster, objects)


def create(cluster: Cluster, objects: Sequence[Object]) -> None:
    """In one call of kubectl."""
    if objects:
        _with_file(cluster, objects, "create", _CALL)


def replace(cluster: Cluster, objects: Sequence[Object]) -> None:
    """What they are from now on, whoever wrote them before."""
    _with_file(cluster, objects, "replace", _CALL)


def gone(cluster: Cluster, objects: Sequence[Object]) -> None:
    """Deletes them at once, and waits for their end. Raises TimeoutError."""
    if not objects:
        return
    _with_file(cluster, objects, "delete", "--ignore-not-found", "--wait=false", _CALL)
    until(lambda: not _with_file(cluster, objects, "get", "--ignore-not-found", "--output=name", _CALL))


def until(is_so: Callable[[], object], seconds: float = GONE_S) -> None:
    """Waits. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"what was waited for did not come within {seconds:.0f} s")
        time.sleep(2)


def _with_file(cluster: Cluster, objects: Sequence[Object], verb: str, *words: str) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": list(objects)}, file)
        file.flush()
        return cluster.kubectl(verb, f"--filename={file.name}", *words)
