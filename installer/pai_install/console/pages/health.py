"""Health of the nodes, and services of the cluster, for administrators."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from pai_install.app.node_health import services_of
from pai_install.cluster.client import Select
from pai_install.console.endpoint import ApiCall
from pai_install.console.pages.endpoint import page, require_administrator, shown
from pai_install.console.services import ConsoleServices
from pai_install.jobs.compile import names
from pai_install.kube.objects import child, text

# rows of a page
_MOST = 500


def show_health(call: ApiCall) -> Response:
    """Findings of nodes with what to do, and guarantees that machines cannot meet."""
    require_administrator(call)
    model = call.services.model
    findings = model.findings()
    return shown(
        call,
        "health.html",
        findings=findings[:_MOST],
        hidden=len(findings) - len(findings[:_MOST]),
        nodes=len(model.gpus()),
        unmet=[str(one) for one in model.usage().unmet],
        age=int(model.age),
    )


def show_services(call: ApiCall) -> Response:
    """Pods of the system by their controller, those that do not run first. They are read as the caller."""
    require_administrator(call)
    own = {group.namespace for group in call.services.model.profile.groups}
    (pods,) = call.client.list(Select(("pods",), labels=f"!{names.USER}"))
    services = services_of(pod for pod in pods if text(child(pod, "metadata").get("namespace")) not in own)
    return shown(call, "services.html", services=services[:_MOST], hidden=len(services) - len(services[:_MOST]))


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    del services
    return (
        Route("/health", page(show_health), methods=["GET"]),
        Route("/services", page(show_services), methods=["GET"]),
    )
