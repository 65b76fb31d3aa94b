"""Home: one's own jobs and quota, and for administrators sick nodes and abnormal jobs."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from pai_install.console.endpoint import ApiCall
from pai_install.console.model.query import JobQuery
from pai_install.console.monitoring import gpus_of_groups
from pai_install.console.openpai.job import full_name, gpus_of
from pai_install.console.pages.charts import chart
from pai_install.console.pages.endpoint import page, shown
from pai_install.console.services import ConsoleServices
from pai_install.report.virtual_clusters_usage import quota_usage_report

# the order in which people look at them
_STATES = ("WAITING", "RUNNING", "STOPPING", "FAILED", "SUCCEEDED", "STOPPED")
_MOST_JOBS, _MOST_FINDINGS = 10, 10
_CHART_HOURS = 24


def show_home(call: ApiCall) -> Response:
    """The first page after a sign-in."""
    model, label = call.services.model, call.caller.label
    visible, own = model.visible(call.caller), frozenset({label})
    unfinished = frozenset({"WAITING", "RUNNING", "STOPPING"})
    scheduling = model.profile.require_scheduling()
    groups = set(call.caller.groups)
    of_groups = {one.name for one in scheduling.clusters if groups & set(one.groups)}
    spaces = {one.namespace for one in model.profile.groups if call.caller.admin or one.name in groups}
    clusters = quota_usage_report(scheduling, model.usage()).virtual_clusters
    return shown(
        call,
        "home.html",
        counts=[(state, model.jobs.count(JobQuery(own, states=frozenset({state})), visible)) for state in _STATES],
        views=model.jobs.page(JobQuery(own, states=unfinished, limit=_MOST_JOBS), visible),
        clusters=[one for one in clusters if call.caller.admin or one.name in of_groups],
        full_name=full_name,
        gpus_of=gpus_of,
        chart=chart(call, gpus_of_groups(sorted(spaces)), _CHART_HOURS, percent=False),
        chart_hours=_CHART_HOURS,
        age=int(model.age),
        **_for_administrators(call, shown_to=call.caller.admin and visible is None),
    )


def _for_administrators(call: ApiCall, *, shown_to: bool) -> dict[str, Any]:
    """Findings of nodes, and jobs that hold GPUs for long or for nothing. None of them for members."""
    if not shown_to:
        return {"findings": (), "hidden": 0, "abnormal": ()}
    model = call.services.model
    findings = model.findings()
    return {
        "findings": findings[:_MOST_FINDINGS],
        "hidden": max(0, len(findings) - _MOST_FINDINGS),
        "abnormal": model.abnormal_jobs()[:_MOST_JOBS],
    }


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    del services
    return (Route("/", page(show_home), methods=["GET"]),)
