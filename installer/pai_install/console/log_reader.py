"""Logs of pods that are gone, from the store of logs, which answers on the loopback of one control plane."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import urllib3

from pai_install.monitoring.log_store import PATH, Parameters, StoredLog, last_lines, texts

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_TIMEOUT = urllib3.Timeout(connect=1, read=20)
_MOST_BYTES, _MOST_LINES = 16 * 1024 * 1024, 10_000


class LogReader:
    """Reads the store. It knows no users: a caller is asked before for the right to read the namespace."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=False, maxsize=4)

    def text(self, namespace: str, pod: str, tail: int) -> str:
        """The last lines of a pod of a namespace, "" for none and without a store here. tail: -1 for many."""
        lines = tail if 0 < tail < _MOST_LINES else _MOST_LINES
        try:
            return "\n".join(texts(last_lines(self._query, StoredLog(namespace, pod), lines)))
        except (urllib3.exceptions.HTTPError, ValueError):
            return ""

    def _query(self, parameters: Parameters) -> Iterator[str]:
        url, body = f"{self._address}{PATH}", urlencode(parameters)
        answer = self._pool.request("POST", url, body, headers=_FORM, preload_content=False, redirect=False)
        try:
            content = answer.read(_MOST_BYTES)
        finally:
            answer.release_conn()
        if answer.status == 200:
            yield from content.decode(errors="replace").split("\n")
