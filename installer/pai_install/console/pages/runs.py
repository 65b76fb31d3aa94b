"""The last runs of pai-install on the controller host, for administrators. Read-only."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from pai_install.console.endpoint import ApiCall
from pai_install.console.pages.endpoint import page, require_administrator, shown
from pai_install.console.services import ConsoleServices
from pai_install.report.run_history import RUNS, run_history

_REPORTS = "SITE/.pai/runs/RUN/report.html"


def show_runs(call: ApiCall) -> Response:
    """The runs that the cluster keeps. The console reads them in its own name."""
    require_administrator(call)
    (found,) = call.services.clients.own().get([RUNS])
    return shown(call, "runs.html", runs=run_history(found).runs, reports=_REPORTS)


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    del services
    return (Route("/runs", page(show_runs), methods=["GET"]),)
