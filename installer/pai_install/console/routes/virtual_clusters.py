"""Virtual clusters and SKUs."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pai_install.console.endpoint import ADMINISTRATORS, ApiCall, endpoint
from pai_install.console.errors import RestError
from pai_install.console.openpai.virtual_cluster import nodes, sku_types, virtual_cluster

_ALL, _OLD = "/api/v2/virtual-clusters", "/api/v1/virtual-clusters"


def list_virtual_clusters(call: ApiCall) -> Response:
    """All virtual clusters with their use, or the GPUs of each node with `?nodes`."""
    model = call.services.model
    scheduling = model.profile.require_scheduling()
    if "nodes" in call.query:
        return JSONResponse(nodes(scheduling, model.nodes(), model.pods()))
    usage = model.usage()
    return JSONResponse({one.name: virtual_cluster(scheduling, one, usage) for one in scheduling.clusters})


def show_virtual_cluster(call: ApiCall) -> Response:
    """One virtual cluster."""
    model = call.services.model
    cluster = model.profile.require_cluster(call.path["vc"])
    return JSONResponse(virtual_cluster(model.profile.require_scheduling(), cluster, model.usage()))


def list_sku_types(call: ApiCall) -> Response:
    """SKUs of the cluster, or of one virtual cluster."""
    profile, name = call.services.model.profile, call.query.get("vc", "")
    cluster = profile.require_cluster(name) if name else None
    return JSONResponse(sku_types(profile.require_scheduling(), cluster))


def change_virtual_cluster(call: ApiCall) -> Response:
    """Virtual clusters are in the files of the site."""
    del call
    raise RestError(
        HTTPStatus.NOT_IMPLEMENTED, "NotImplementedError", "virtual clusters are in services-configuration.yaml"
    )


ROUTES = (
    *(Route(path, endpoint(list_virtual_clusters), methods=["GET"]) for path in (_ALL, _OLD)),
    *(Route(f"{path}/{{vc}}", endpoint(show_virtual_cluster), methods=["GET"]) for path in (_ALL, _OLD)),
    *(
        Route(f"{path}/{{vc}}", endpoint(change_virtual_cluster, ADMINISTRATORS), methods=["PUT", "DELETE"])
        for path in (_ALL, _OLD)
    ),
    Route("/api/v2/cluster/sku-types", endpoint(list_sku_types), methods=["GET"]),
)
