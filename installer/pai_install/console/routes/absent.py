"""Services of OpenPAI that the console lacks. Their clients read JSON, also from them."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from pai_install.console.endpoint import PUBLIC, ApiCall, endpoint
from pai_install.console.errors import RestError


def list_items(call: ApiCall) -> Response:
    """No items: OpenPAI's portal shows an empty marketplace, and its form without templates."""
    del call
    return JSONResponse([])


def _absent(message: str) -> Callable[[ApiCall], Response]:
    def answer(call: ApiCall) -> Response:
        raise RestError(HTTPStatus.NOT_IMPLEMENTED, "NotImplementedError", f"{call.url}: {message}")

    return answer


def _all(message: str) -> Route:
    return Route("/{path:path}", endpoint(_absent(message), PUBLIC), methods=["GET", "POST", "PUT", "DELETE"])


# Mounted, as the API is: none of these addresses takes a form of a page.
ROUTES = (
    Mount(
        "/marketplace/api",
        routes=[
            Route("/items", endpoint(list_items, PUBLIC), methods=["GET"]),
            _all("the console has templates in place of a marketplace"),
        ],
    ),
    Mount("/webhdfs", routes=[_all("there is no WebHDFS: run pai-install job submit --code, or use a storage")]),
)
