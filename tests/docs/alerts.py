"""docs/alerts.md: every alert, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.monitoring.rules import Alert, alerts
from tests.docs.markdown import page, table

_HEAD = (
    "The alerts of [monitoring](monitoring.md). Alerts of severity `fatal` and `error` are sent at once, `warn` in",
    "groups of five minutes. Alerts of severity `info` are only listed. `{name}` is a threshold, which",
    "`monitoring.thresholds` of [services-configuration.yaml](reference/services.md#monitoring) sets.",
)
_TITLES = {
    "monitoring": "Monitoring itself",
    "nodes": "Nodes",
    "machines": "Machines",
    "gpus": "GPUs",
    "health": "Health checks",
    "pods": "Pods of the system and volumes",
    "jobs": "Jobs and queues",
    "control_plane": "Control plane and registries",
}


def alerts_page() -> str:
    """docs/alerts.md."""
    return page("Alerts", [*_HEAD, *_overview(), *_sections()])


def _overview() -> Iterator[str]:
    for group, members in alerts().items():
        yield from ("", f"## {_TITLES[group]}", "")
        rows = ((f"[{name}](#{name.lower()})", alert.severity, alert.meaning) for name, alert in members.items())
        yield from table(("Alert", "Severity", "Meaning"), rows)


def _sections() -> Iterator[str]:
    yield from ("", "## Reference")
    for members in alerts().values():
        for name, alert in members.items():
            yield from ("", f"### {name}", "", *_entry(alert))


def _entry(alert: Alert) -> Iterator[str]:
    yield f"{alert.meaning}"
    yield ""
    yield f"- **Severity:** {alert.severity}{', also during maintenance' if alert.hardware else ''}"
    yield f"- **Fires after:** {alert.for_}" if alert.for_ != "0s" else "- **Fires:** at once"
    yield f"- **Action:** {_plain(alert.action)}."
    if alert.thresholds:
        yield f"- **Thresholds:** {', '.join(f'`{name}`' for name in alert.thresholds)}"
    yield f"- **Expression:** `{alert.when}`"


def _plain(text: str) -> str:
    """Shows labels in templates as capitals."""
    return text.replace("{{ $labels.", "").replace(" }}", "")
