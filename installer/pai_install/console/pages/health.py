"""Health of the nodes, for administrators."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from pai_install.console.endpoint import ApiCall
from pai_install.console.pages.endpoint import page, require_administrator, shown
from pai_install.console.services import ConsoleServices

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


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    del services
    return (Route("/health", page(show_health), methods=["GET"]),)
