"""The answer of Alertmanager."""

from __future__ import annotations

import json

from pai_install.monitoring.alertmanager import alerts_in


def alert(name: str, node: str, severity: str, **labels: str) -> dict[str, object]:
    return {"labels": {"alertname": name, "node": node, "severity": severity, **labels}, "annotations": {}}


def test_a_node_with_thousands_of_alerts_hides_no_other() -> None:
    flood = [alert("NodeFilesystemFull", "liar", "error", mountpoint=f"/{n}" * 50) for n in range(20_000)]
    answer = json.dumps(
        [*flood, alert("NodeFilesystemFull", "honest", "error"), alert("GpuXidFatal", "honest", "fatal")]
    )
    found = alerts_in(answer)
    assert [(one.name, one.subject) for one in found[:2]] == [
        ("GpuXidFatal", "honest"),
        ("NodeFilesystemFull", "honest"),
    ]
    assert len(found) == 12


def test_an_alert_for_each_of_a_thousand_nodes() -> None:
    answer = json.dumps([alert("KubeletDown", f"node-{n}", "error", why="w" * 500) for n in range(1000)])
    assert len(alerts_in(answer)) == 1000
