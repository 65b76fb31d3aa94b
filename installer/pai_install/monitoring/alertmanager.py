"""Requests to Alertmanager as programs on its machine, and alerts in its answer. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pai_install.agents.common.values import parse, parse_object, rows
from pai_install.kube.objects import words
from pai_install.ports import ALERTMANAGER_PORT
from pai_install.system.plain import one_line

NAMESPACE = "pai-monitoring"
LABELS = "app.kubernetes.io/name=monitoring"
TEST = "PaiTestAlert"
# Alertmanager answers on the loopback of its machine alone; every machine has Python
_SCRIPT = """
import sys, urllib.request as u
method, url, body = sys.argv[1:]
headers = {"Content-Type": "application/json"}
request = u.Request(url, body.encode() or None, headers, method=method)
print(u.build_opener(u.ProxyHandler({})).open(request, timeout=20).read().decode())
"""
_MOST = 1000
# a cluster of a thousand nodes where each has some alerts
_MOST_BYTES = 32 * 1024 * 1024
_MOST_ALIKE = 10
_GRAVITY = ("fatal", "error", "warn", "info")
_CONTROLS = "none"


@dataclass(frozen=True, slots=True)
class FiringAlert:
    """One alert. subject: its node, pod, or other object. since: RFC 3339, "" if unknown."""

    name: str
    severity: str
    subject: str
    summary: str
    action: str
    since: str
    labels: Mapping[str, str]


def list_program() -> tuple[str, ...]:
    """Returns the program for alerts that are neither silenced nor inhibited."""
    return _request("GET", "alerts?active=true&silenced=false&inhibited=false&unprocessed=false", None)


def silence_program(node: str, start: datetime, hours: float, author: str, comment: str) -> tuple[str, ...]:
    """Returns the program that silences a node."""
    body = {
        "matchers": [{"name": "node", "value": node, "isRegex": False, "isEqual": True}],
        "startsAt": start.isoformat(),
        "endsAt": (start + timedelta(hours=hours)).isoformat(),
        "createdBy": author,
        "comment": comment,
    }
    return _request("POST", "silences", body)


def trial_program() -> tuple[str, ...]:
    """Returns the program that raises an alert for all receivers. It resolves after five minutes."""
    notes = {"summary": "A test of the notifications", "action": "nothing to do"}
    return _request("POST", "alerts", [{"labels": {"alertname": TEST, "severity": "error"}, "annotations": notes}])


def _request(method: str, path: str, body: object) -> tuple[str, ...]:
    url = f"http://127.0.0.1:{ALERTMANAGER_PORT}/api/v2/{path}"
    # -I keeps modules of the current folder out of a program of root.
    return ("python3", "-I", "-c", _SCRIPT, method, url, "" if body is None else json.dumps(body))


def alerts_in(text: str) -> tuple[FiringAlert, ...]:
    """Returns the alerts of an answer, the gravest first. Raises ValueError for other data."""
    found = parse(text, max_size=_MOST_BYTES)
    if not isinstance(found, list):
        raise ValueError("the answer of Alertmanager is no list")  # noqa: TRY004 - as for text that is no JSON
    alerts = (_alert(entry) for entry in fair(rows(found)))
    shown = [alert for alert in alerts if alert.severity != _CONTROLS]
    return tuple(sorted(shown, key=lambda alert: (_rank(alert.severity), alert.name, alert.subject))[:_MOST])


def fair(entries: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Returns at most ten alerts of one rule and node: a node with thousands of file systems hides no other node."""
    kept: list[Mapping[str, object]] = []
    seen: Counter[tuple[str | None, str | None]] = Counter()
    for entry in entries:
        labels = words(entry.get("labels"))
        key = (labels.get("alertname"), labels.get("node"))
        seen[key] += 1
        if seen[key] <= _MOST_ALIKE:
            kept.append(entry)
    return kept


def _alert(entry: Mapping[str, object]) -> FiringAlert:
    labels = {name: one_line(text) for name, text in words(entry.get("labels")).items()}
    notes = words(entry.get("annotations"))
    starts = entry.get("startsAt")
    return FiringAlert(
        labels.get("alertname", ""),
        labels.get("severity", ""),
        _subject(labels),
        one_line(notes.get("summary", "")),
        one_line(notes.get("action", "")),
        one_line(starts) if isinstance(starts, str) else "",
        labels,
    )


def _subject(labels: Mapping[str, str]) -> str:
    pod = "/".join(labels[name] for name in ("namespace", "pod") if name in labels)
    return labels.get("node") or pod or labels.get("cluster_queue") or labels.get("instance", "")


def _rank(severity: str) -> int:
    return _GRAVITY.index(severity) if severity in _GRAVITY else len(_GRAVITY)


def silence_of(text: str) -> str:
    """Returns the ID of a new silence. Raises ValueError for other data."""
    found = parse_object(text).get("silenceID")
    return one_line(found) if isinstance(found, str) else ""
