"""Logs of pods that are gone, from the store of logs of the site."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from pai_install.app.context import App
from pai_install.app.log_sources import LogSource, Window
from pai_install.app.service_node import node_of_service
from pai_install.errors import ExitCode, PaiError
from pai_install.monitoring.log_store import (
    LABELS,
    NAMESPACE,
    Parameters,
    StoredLog,
    all_lines,
    files_query,
    last_lines,
    logs_in,
    query_program,
    texts,
)


def has_store(app: App) -> bool:
    """Whether the site stores logs."""
    return app.site.services.logs is not None


def stored_logs(app: App, name: str) -> tuple[StoredLog, ...]:
    """Returns the containers of pods of this name, as POD or NAMESPACE/POD. Raises PaiError."""
    namespace, _, pod = name.rpartition("/")
    try:
        return logs_in(_querying(app)(files_query(pod, namespace)))
    except ValueError:
        return ()


def stored_source(
    app: App, log: StoredLog, window: Window, name: str, otherwise: Callable[[], Iterable[str]] = tuple
) -> LogSource:
    """The log of a container. otherwise: lines for a log that the store does not have."""

    def lines() -> Iterator[str]:
        try:
            found = _texts(_querying(app), log, window)
            first = next(found, None)
        except PaiError:
            known = tuple(otherwise())
            if not known:
                raise
            yield from known
            return
        if first is None:
            yield from otherwise()
        else:
            yield first
            yield from found

    return LogSource(name, lines)


def _texts(query: Callable[[Parameters], Iterable[str]], log: StoredLog, window: Window) -> Iterator[str]:
    found = last_lines(query, log, window.lines) if window.lines else all_lines(query, log, window.moment)
    yield from texts(found, window.since)


def _querying(app: App) -> Callable[[Parameters], Iterable[str]]:
    """A function that asks the store. Raises PaiError where it does not run."""
    node = node_of_service(app, NAMESPACE, LABELS)
    if node is None:
        raise PaiError(
            "cannot read the store of logs: its pod is not ready",
            code="log-store-not-ready",
            remedy=f"run kubectl --namespace {NAMESPACE} get pods",
            exit_code=ExitCode.VERIFICATION_FAILED,
        )
    return partial(_lines, app, node)


def _lines(app: App, node: str, parameters: Parameters) -> Iterable[str]:
    return app.machines.lines(node, query_program(parameters))
