"""What happens, as JSON lines; never a body, a token or anything else that a peer was given."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import TextIO

Field = str | int | float | bool | list[str]


class Log:
    """Writes one line per event to a stream, by default standard output."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def __call__(self, event: str, **fields: Field) -> None:
        """Writes {"time": ..., "event": EVENT, ...}; a stream that is gone stops nothing."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": moment, "event": event, **fields}, default=str)
        with self._lock:
            try:
                print(line, file=self._stream, flush=True)
            except (OSError, ValueError):
                return
