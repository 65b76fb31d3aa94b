"""Alertmanager's own program in its container: command lines, and alerts in its answer. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pai_install.kube.objects import words
from pai_install.ports import ALERTMANAGER_PORT
from pai_install.system.plain import one_line

NAMESPACE = "pai-monitoring"
LABELS = "app.kubernetes.io/name=monitoring"
CONTAINER = "alertmanager"
TEST = "PaiTestAlert"
_TOOL = ("/bin/amtool", f"--alertmanager.url=http://127.0.0.1:{ALERTMANAGER_PORT}", "--output=json")
_MOST = 1000
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


def list_command() -> tuple[str, ...]:
    """Returns the command for alerts that are neither silenced nor inhibited."""
    return (*_TOOL, "alert", "query")


def silence_command(node: str, hours: float, author: str, comment: str) -> tuple[str, ...]:
    """Returns the command that silences a node."""
    seconds = f"--duration={round(hours * 3600)}s"
    return (*_TOOL, "silence", "add", f"node={node}", seconds, f"--author={author}", f"--comment={comment}")


def test_command() -> tuple[str, ...]:
    """Returns the command that raises an alert for all receivers. It resolves after five minutes."""
    summary = "--annotation=summary=A test of the notifications, there is nothing to do"
    return (*_TOOL, "alert", "add", TEST, "severity=error", summary)


def alerts_in(text: str) -> tuple[FiringAlert, ...]:
    """Returns the alerts of an answer, the gravest first. Raises ValueError for other data."""
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("the answer of Alertmanager is no list")  # noqa: TRY004 - as for text that is no JSON
    alerts = (_alert(entry) for entry in found[:_MOST] if isinstance(entry, Mapping))
    shown = [alert for alert in alerts if alert.severity != _CONTROLS]
    return tuple(sorted(shown, key=lambda alert: (_rank(alert.severity), alert.name, alert.subject)))


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
    """Returns the ID of a new silence."""
    return one_line(text).strip('" ')
