"""Services of the system with the logs of their pods, for administrators. All of it is read as the caller."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from pai_install.app.node_health import SystemService, services_of
from pai_install.cluster.client import ApiError, Select
from pai_install.console.endpoint import ApiCall
from pai_install.console.errors import RestError, forbidden, rest_error
from pai_install.console.links import LogRequest
from pai_install.console.pages.endpoint import page, require_administrator, shown
from pai_install.console.pages.rendering import last_part
from pai_install.console.routes.logs import TAIL, sealed_address
from pai_install.console.services import ConsoleServices
from pai_install.jobs.compile import names
from pai_install.kube.model import Pod, Ref
from pai_install.kube.objects import JsonObject, child, rows, text

# services of a page, pods of each of them there, and pods of the page of one service
_MOST, MOST_LINKS, MOST_PODS = 200, 3, 500
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LISTS = ("containers", "initContainers")


@dataclass(frozen=True, slots=True)
class PodLog:
    """What an address asks for. container: "" for a deleted pod. previous: before its last restart."""

    pod: Ref
    container: str
    containers: tuple[str, ...]
    restarts: int
    previous: bool


def show_services(call: ApiCall) -> Response:
    """Pods of the system by their controller, those that do not run first."""
    services = _services(call)
    hidden = len(services) - len(services[:_MOST])
    return shown(call, "services.html", services=services[:_MOST], hidden=hidden, most=MOST_LINKS)


def show_service(call: ApiCall) -> Response:
    """All pods of one controller."""
    namespace, name = call.path["namespace"], call.path["service"]
    found = [one for one in _services(call) if (one.namespace, one.name) == (namespace, name)]
    pods = [pod for one in found for pod in one.pods]
    if not pods:
        raise _absent(f"service {namespace}/{name}")
    return shown(call, "service.html", place=f"{namespace}/{name}", pods=pods[:MOST_PODS], total=len(pods))


def _services(call: ApiCall) -> tuple[SystemService, ...]:
    require_administrator(call)
    own = {group.namespace for group in call.services.model.profile.groups}
    (pods,) = call.client.list(Select(("pods",), labels=f"!{names.USER}"))
    return services_of(pod for pod in pods if text(child(pod, "metadata").get("namespace")) not in own)


def show_log(call: ApiCall) -> Response:
    """The last lines of a container, which grow in a browser with scripts, or those that the store of logs keeps."""
    require_administrator(call)
    ref = Ref("pod", call.path["pod"], call.path["namespace"])
    if not (_NAME.fullmatch(ref.name) and _NAME.fullmatch(ref.namespace)):
        raise _absent("this pod")
    (found,) = call.client.get([ref])
    wanted = _wanted(call, ref, found)
    written, problem = _read(call, wanted)
    follows = wanted.container and not wanted.previous and not problem
    request = LogRequest(ref.namespace, ref.name, TAIL, previous=wanted.previous, container=wanted.container)
    plain = sealed_address(call, request) if wanted.container else ""
    return shown(
        call,
        "pod_log.html",
        wanted=wanted,
        text=last_part(written),
        problem=problem,
        plain=plain,
        follow=f"{plain}&follow=true" if follows else "",
        lines=TAIL,
        addresses={one: _address(ref, container=one) for one in wanted.containers},
        before=_address(ref, container=wanted.container, previous="yes"),
    )


def _wanted(call: ApiCall, ref: Ref, found: JsonObject | None) -> PodLog:
    if found is None:
        return PodLog(ref, "", (), 0, previous=False)
    spec = child(found, "spec")
    containers = tuple(text(row.get("name")) for name in _LISTS for row in rows(spec.get(name)))
    asked = call.query.get("container", "")
    if not containers or (asked and asked not in containers):
        raise _absent("this container")
    return PodLog(ref, asked or containers[0], containers, Pod.parse(found).restarts, "previous" in call.query)


def _read(call: ApiCall, wanted: PodLog) -> tuple[str, str]:
    """The text, and why there is none. Raises RestError for a caller without the right to read it."""
    # The API server looks for the right first: "NotFound" is the answer to a caller who may read logs of this name.
    container = wanted.container or "none"
    try:
        return call.client.logs(wanted.pod, container=container, tail=TAIL, previous=wanted.previous), ""
    except ApiError as error:
        if error.reason == "Forbidden":
            raise forbidden(_refused(wanted.pod)) from error
        if error.reason == "NotFound" and not wanted.container:
            return _stored(call, wanted.pod), ""
        return "", rest_error(error).message


def _stored(call: ApiCall, pod: Ref) -> str:
    """The log of a deleted pod. Raises RestError without one."""
    logs = call.services.logs
    found = logs.text(pod.namespace, pod.name, TAIL) if logs is not None else ""
    if not found:
        raise _absent(f"{pod.namespace}/{pod.name}")
    return found


def _refused(pod: Ref) -> str:
    return (
        f"the console may not read the log of {pod.namespace}/{pod.name} in your name: "
        f"run pai-install logs {pod.namespace}/{pod.name}"
    )


def _absent(what: str) -> RestError:
    return RestError(HTTPStatus.NOT_FOUND, "NoPodError", f"{what[:320]} is not found")


def _address(pod: Ref, **query: str) -> str:
    return f"/services/{pod.namespace}/log/{pod.name}?{urlencode(query)}"


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    del services
    return (
        Route("/services", page(show_services), methods=["GET"]),
        Route("/services/{namespace}/log/{pod}", page(show_log), methods=["GET"]),
        Route("/services/{namespace}/{service}", page(show_service), methods=["GET"]),
    )
