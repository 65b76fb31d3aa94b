"""Virtual clusters: guarantees, their use, and their jobs. The values are those of `vc usage`."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from pai_install.app.job_quota import jobs_of_cluster
from pai_install.console.endpoint import ApiCall
from pai_install.console.pages.endpoint import page, shown
from pai_install.console.pages.waiting import holder_rows
from pai_install.console.services import ConsoleServices
from pai_install.report.virtual_clusters_usage import quota_usage_report


def list_clusters(call: ApiCall) -> Response:
    """All virtual clusters."""
    model = call.services.model
    scheduling, usage = model.profile.require_scheduling(), model.usage()
    return shown(
        call,
        "virtual_clusters.html",
        data=quota_usage_report(scheduling, usage),
        unmet=[str(one) for one in usage.unmet],
        age=int(model.age),
    )


def show_cluster(call: ApiCall) -> Response:
    """One virtual cluster with its jobs. Jobs of other groups are counted."""
    model, name = call.services.model, call.path["vc"]
    model.profile.require_cluster(name)
    scheduling, usage = model.profile.require_scheduling(), model.usage()
    (cluster,) = quota_usage_report(scheduling, usage, name).virtual_clusters
    rows, hidden, more = holder_rows(call, jobs_of_cluster(usage, name, model.counted_jobs()))
    return shown(
        call,
        "virtual_cluster.html",
        cluster=cluster,
        unmet=[str(one) for one in usage.unmet if name in one.clusters],
        holders=rows,
        hidden_holders=hidden,
        more_holders=more,
        age=int(model.age),
    )


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    del services
    return (
        Route("/virtual-clusters", page(list_clusters), methods=["GET"]),
        Route("/virtual-clusters/{vc}", page(show_cluster), methods=["GET"]),
    )
