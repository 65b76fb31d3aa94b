"""Use cases of alerts: firing alerts, silences, and a test of the notifications."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.context import App
from pai_install.app.monitoring import require_monitoring
from pai_install.app.service_node import node_of_service
from pai_install.cluster.client import ApiError, NoClusterError, Select
from pai_install.cluster.machines import MachineError
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Node
from pai_install.monitoring.alertmanager import (
    LABELS,
    NAMESPACE,
    FiringAlert,
    alerts_in,
    list_program,
    silence_of,
    silence_program,
    trial_program,
)
from pai_install.report.alerts import SilenceReport, TestAlertReport
from pai_install.site.monitoring import has_gossip
from pai_install.system.parameters import Parameter
from pai_install.system.plain import one_line

_MOST_HOURS = 168


class SilenceNode(BaseModel):
    """Silences the alerts of a node."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    node: Annotated[str, Parameter(positional=True, metavar="NODE")] = Field(description="Name of the node.")
    hours: float = Field(default=2, gt=0, le=_MOST_HOURS, description="Hours until the alerts are sent again.")
    comment: str = Field(default="work on the node", description="Reason, shown to others.")


def list_alerts(app: App) -> tuple[FiringAlert, ...]:
    """Returns the firing alerts that are not silenced. Raises PaiError without monitoring."""
    text = _run(app, list_program())
    try:
        return alerts_in(text)
    except (ValueError, RecursionError) as error:
        raise PaiError(
            "cannot read the alerts: Alertmanager returned an unknown answer",
            code="alerts-unreadable",
            details=one_line(str(error))[:500],
            remedy="check the pods of monitoring: kubectl --namespace pai-monitoring get pods",
            exit_code=ExitCode.VERIFICATION_FAILED,
        ) from None


def firing_alerts(app: App) -> tuple[FiringAlert, ...] | None:
    """Returns the firing alerts for `status`, or None without monitoring or an answer."""
    if app.site.services.monitoring is None:
        return None
    try:
        return list_alerts(app)
    except (PaiError, ApiError, NoClusterError) as error:
        app.notify(f"the firing alerts are not known: {error.message}")
        return None


def silence_node(app: App, request: SilenceNode) -> SilenceReport:
    """Creates a silence of a node, or of a machine beside the nodes. Raises PaiError for another one.

    Each control plane has an Alertmanager. One without the silence would send the alerts, now or after a failover.
    Gossip brings it to all. Without gossip, each is asked.
    """
    require_monitoring(app, "ask for alerts")
    (found,) = app.cluster.list(Select(("nodes",)))
    beside = {machine.hostname for machine in app.site.present_machines if not machine.node}
    known = sorted(beside | {Node.parse(node).name for node in found})
    if request.node not in known:
        raise PaiError(
            f"cannot silence {request.node}: the cluster has no such machine",
            code="unknown-node",
            remedy=f"choose one of {', '.join(known[:20])}",
            exit_code=ExitCode.USAGE,
        )
    now = datetime.now(UTC)
    program = silence_program(request.node, now, request.hours, getpass.getuser(), request.comment)
    silences: dict[str, str] = {}
    for machine in app.site.control_planes:
        host = machine.hostname
        try:
            silences[host] = silence_of("\n".join(app.machines.lines(host, program)))
            if has_gossip(app.site):
                break
        except (MachineError, ValueError) as error:
            app.notify(f"cannot silence {request.node} on {host}: {one_line(str(error))}")
    if not silences:
        raise _not_ready(f"cannot silence {request.node}: no Alertmanager answers")
    return SilenceReport(silences=silences, node=request.node, hours=request.hours)


def send_test_alert(app: App) -> TestAlertReport:
    """Raises an alert that all receivers get."""
    _run(app, trial_program())
    return TestAlertReport()


def _run(app: App, program: tuple[str, ...]) -> str:
    require_monitoring(app, "ask for alerts")
    node = node_of_service(app, NAMESPACE, LABELS)
    if node is None:
        raise _not_ready("cannot ask Alertmanager: no pod of monitoring is ready")
    return "\n".join(app.machines.lines(node, program))


def _not_ready(message: str) -> PaiError:
    return PaiError(
        message,
        code="monitoring-not-ready",
        remedy="run kubectl --namespace pai-monitoring get pods",
        exit_code=ExitCode.VERIFICATION_FAILED,
    )
