"""Name and version of the API."""

from __future__ import annotations

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pai_install import __version__
from pai_install.console.endpoint import PUBLIC, ApiCall, RouteAccess, endpoint

# the version of OpenPAI with this API
API_VERSION = "v1.8.1"


def health(call: ApiCall) -> Response:
    """The process answers."""
    del call
    return PlainTextResponse("ok")


def info(call: ApiCall) -> Response:
    """Name, version, and the way to sign in."""
    return JSONResponse(
        {
            "name": f"pai-install {__version__}",
            "version": API_VERSION,
            "launcherType": "k8s",
            "authnMethod": "OIDC" if call.services.settings.oidc is not None else "basic",
        }
    )


# a load balancer may have the address of the kubelet, which ends a pod without an answer
HEALTH = Route("/healthz", endpoint(health, RouteAccess(public=True, rate="")), methods=["GET"])
ROUTES = (
    Route("/api/v2/info", endpoint(info, PUBLIC), methods=["GET"]),
    Route("/api/v1", endpoint(info, PUBLIC), methods=["GET"]),
)
