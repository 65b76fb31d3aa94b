"""Requests without an answer, made again: an API server stops, the proxy finds another one, etcd elects a leader."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from pai_install.cluster.client import NO_ANSWER, ApiError, NoClusterError

_PAUSE_S = 1.0
# the proxy on every machine has left out an API server by then
_AWAY_S = 30.0
# for someone who waits: clients of the console wait 20 s and longer. An election of etcd takes some of them
SOON_S = 12.0
Found = TypeVar("Found")


def answered(request: Callable[[], Found], seconds: float = _AWAY_S) -> Found:
    """Repeats a request until an API server answers, as long as that. It must be one that may be made twice.

    Raises NoClusterError and ApiError.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            return request()
        except (NoClusterError, ApiError) as error:
            if not is_unanswered(error) or time.monotonic() >= end:
                raise
        time.sleep(_PAUSE_S)


def is_unanswered(error: NoClusterError | ApiError) -> bool:
    """Whether the request may have another result next time. A refusal repeats itself."""
    return isinstance(error, NoClusterError) or error.reason in (NO_ANSWER, "Timeout")
