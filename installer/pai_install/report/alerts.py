"""Alerts as results and as text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pai_install.json_schema import Report
from pai_install.monitoring.alertmanager import FiringAlert
from pai_install.report.table import table

_HEAD = ("SEVERITY", "ALERT", "SUBJECT", "SINCE", "SUMMARY")


class AlertsReport(Report, title="pai-install alerts list"):
    """Firing alerts, the gravest first."""

    alerts: tuple[FiringAlert, ...]


class SilenceReport(Report, title="pai-install alerts silence"):
    """A new silence. silences: control plane -> ID of the silence in its Alertmanager."""

    silences: Mapping[str, str]
    node: str
    hours: float


class TestAlertReport(Report, title="pai-install alerts test"):
    """An alert that all receivers get."""

    sent: Literal[True] = True


def alerts_text(alerts: Sequence[FiringAlert]) -> str:
    """The same for people."""
    if not alerts:
        return "no alert fires\n"
    rows = [(it.severity, it.name, it.subject, it.since[:19], it.summary) for it in alerts]
    return table([_HEAD, *rows]) + "".join(f"{line}\n" for line in _actions(alerts))


def _actions(alerts: Sequence[FiringAlert]) -> Iterator[str]:
    for name, action in {alert.name: alert.action for alert in alerts if alert.action}.items():
        yield f"{name}: {action}"


def summary_line(alerts: Sequence[FiringAlert]) -> str:
    """Returns one line for `status`, such as "alerts: 1 fatal, 2 warn (MachineDown lab-worker2)"."""
    if not alerts:
        return "alerts: none"
    counts = Counter(alert.severity or "other" for alert in alerts)
    named = ", ".join(f"{count} {severity}" for severity, count in counts.items())
    first = ", ".join(f"{alert.name} {alert.subject}".strip() for alert in alerts[:3])
    return f"alerts: {named} ({first}{', ...' if len(alerts) > 3 else ''}); pai-install alerts list"
