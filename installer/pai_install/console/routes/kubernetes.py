"""Nodes and pods as the Kubernetes API lists them, and alerts."""

from __future__ import annotations

import re
from itertools import chain
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pai_install.console.endpoint import ADMINISTRATORS, ApiCall, endpoint
from pai_install.console.errors import invalid, monitoring_away
from pai_install.console.monitoring import NoMonitoringError, alerts_of

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def list_nodes(call: ApiCall) -> Response:
    """All nodes, read as the caller."""
    return _passed(call, "/api/v1/nodes")


def list_pods(call: ApiCall) -> Response:
    """Pods of all namespaces or of one, read as the caller."""
    namespace, labels = call.query.get("namespace", ""), call.query.get("labelSelector", "")
    if namespace and not _NAMESPACE.fullmatch(namespace):
        raise invalid("namespace is no name of Kubernetes")
    place = f"/namespaces/{namespace}" if namespace else ""
    query = f"?{urlencode({'labelSelector': labels})}" if labels else ""
    return _passed(call, f"/api/v1{place}/pods{query}")


def _passed(call: ApiCall, path: str) -> Response:
    """The answer of the API server, passed on as it comes: it may be larger than the memory of the pod."""
    parts = call.client.raw_parts(path)
    # a refusal comes before the first part
    first = next(parts, b"")
    return StreamingResponse(chain((first,), parts), media_type="application/json")


def list_alerts(call: ApiCall) -> Response:
    """Firing alerts as Alertmanager lists them: of the caller's namespaces, and for administrators all."""
    monitoring = call.services.monitoring
    if monitoring is None:
        return JSONResponse([])
    try:
        found = monitoring.alerts()
    except NoMonitoringError as error:
        raise monitoring_away() from error
    return JSONResponse(alerts_of(found, call.services.model.visible(call.caller)))


ROUTES = (
    Route("/api/v2/kubernetes/nodes", endpoint(list_nodes, ADMINISTRATORS), methods=["GET"]),
    Route("/api/v2/kubernetes/pods", endpoint(list_pods, ADMINISTRATORS), methods=["GET"]),
    Route("/api/v2/alerts", endpoint(list_alerts), methods=["GET"]),
)
