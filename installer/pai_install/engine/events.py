"""Converts ansible-runner's event dictionaries to Events. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pai_install.engine.base import Event, EventKind
from pai_install.system.plain import plain, plain_text

RawEvent = Mapping[str, Any]

# The last line of every recorded or live stream: {"event": EXIT, "rc": Ansible's exit status}.
EXIT = "pai_exit"

# what Ansible puts before the words of ssh, sudo or a module
_PREFIXES = re.compile(
    r"(?:Task failed: |Failed to connect to the host via ssh: "
    r"|Data could not be sent to remote host \S+ Make sure this host can be reached over ssh: )+(?=\S)"
)

_STATS = ("failures", "dark", "rescued")


def read_stream(raw_events: Iterable[RawEvent]) -> Iterator[Event]:
    """Yields an Event for each relevant raw one, and DONE last.

    A truncated stream without an exit line yields no DONE.
    """
    stats: dict[str, Any] = {}
    for raw in raw_events:
        name = raw.get("event")
        if name == "playbook_on_stats":
            data = _data(raw)
            stats = {key: dict(data.get(key) or {}) for key in _STATS}
        elif name == EXIT:
            yield Event(EventKind.DONE, result=stats, returncode=int(raw.get("rc", 1)))
        elif (event := to_event(raw)) is not None:
            yield event


def to_event(raw: RawEvent) -> Event | None:
    """The Event of one raw event, or None when it says nothing about a task.

    The items of a loop are not events of their own: the task's result carries them under "results".
    """
    kind = _kind(raw)
    if kind is None:
        return None
    data = _data(raw)
    return Event(
        kind=kind,
        task=plain_text(_task_name(data)),
        task_path=str(data.get("task_path") or ""),
        host="" if kind is EventKind.TASK_START else str(data.get("host") or ""),
        duration_s=float(data.get("duration") or 0.0),
        result=_result(data),
        action=str(data.get("task_action") or ""),
    )


def _kind(raw: RawEvent) -> EventKind | None:
    match raw.get("event"):
        case "playbook_on_task_start":
            return EventKind.TASK_START
        case "runner_on_ok":
            changed = bool(_mapping(_data(raw).get("res")).get("changed"))
            return EventKind.CHANGED if changed else EventKind.OK
        case "runner_on_failed":
            # Ansible reports a failure with ignore_errors under the same name.
            return EventKind.IGNORED if _data(raw).get("ignore_errors") else EventKind.FAILED
        case "runner_on_unreachable":
            return EventKind.UNREACHABLE
        case "runner_on_skipped":
            return EventKind.SKIPPED
        case _:
            return None


def _task_name(data: Mapping[str, Any]) -> str:
    name = str(data.get("task") or data.get("name") or "")
    role = str(data.get("role") or "")
    return f"{role} : {name}" if role and not name.startswith(f"{role} : ") else name


def _result(data: Mapping[str, Any]) -> dict[str, Any]:
    # the machine's own words: from here on they are harmless
    result: dict[str, Any] = plain(_without_bookkeeping(_mapping(data.get("res"))))
    if isinstance(message := result.get("msg"), str):
        wrapped = _PREFIXES.match(message)
        result["msg"] = message[wrapped.end() :] if wrapped else message
    items = result.get("results")
    if isinstance(items, list):
        result["results"] = [_without_bookkeeping(item) if isinstance(item, Mapping) else item for item in items]
    return result


def _without_bookkeeping(result: Mapping[str, Any]) -> dict[str, Any]:
    # `invocation` repeats the module's arguments: large, and the one place where a careless module's
    # unmarked secret would appear
    return {key: value for key, value in result.items() if key != "invocation" and not key.startswith("_ansible")}


def _data(raw: RawEvent) -> Mapping[str, Any]:
    return _mapping(raw.get("event_data"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
