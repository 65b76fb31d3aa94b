"""Logs of containers over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pai_install.cluster.client import ApiError, LogWindow
from pai_install.cluster.http import ApiRequest
from pai_install.cluster.http_api import Api
from pai_install.cluster.http_errors import too_large
from pai_install.cluster.lines import lines
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, rows, text

_TIMEOUT_S = 300.0
# a container may print nothing for a long time
_FOLLOW_TIMEOUT_S = 86400.0
_LONGEST_LINE = 1 << 20
# kubelets keep 10 MiB. One that sends more would fill the memory of who asks
_LARGEST = 32 << 20
# of a log that is read line by line and whole: sites may let kubelets keep more
_LARGEST_STREAM = 1 << 30
_DEFAULT = "kubectl.kubernetes.io/default-container"
_LISTS = ("initContainers", "containers", "ephemeralContainers")


def log(api: Api, pod: Ref, container: str, tail: int, *, previous: bool = False) -> str:
    """The log of a container."""
    request = _request(api, pod, container, tail, (("previous", "true"),) if previous else ())
    return api.send(replace(request, largest=_LARGEST)).body.decode(errors="replace")


def log_lines(api: Api, pod: Ref, container: str, window: LogWindow) -> Iterator[str]:
    """Yields the lines of a part of a log. Raises PaiError if it ends early, or is larger than kubelets keep."""
    since = (("sinceTime", window.since),) if window.since else ()
    request = _request(api, pod, container, window.tail, (*since, *((("follow", "true"),) if window.follow else ())))
    limit = _FOLLOW_TIMEOUT_S if window.follow else _TIMEOUT_S
    with api.stream(replace(request, timeout_s=limit, cancellation=window.cancellation)) as parts:
        bounded = parts if window.follow else _bounded(parts, pod, _LARGEST_STREAM if window.tail < 0 else _LARGEST)
        try:
            for line in lines(bounded, _LONGEST_LINE):
                yield line.decode(errors="replace")
        except ConnectionError as error:
            remedy = f"repeat the command, and check the kubelet of the pod with kubectl describe {pod}"
            raise ApiError(
                f"cannot read the whole log of {pod}: the connection ended", details=str(error), remedy=remedy
            ) from error


def _bounded(parts: Iterable[bytes], pod: Ref, limit: int) -> Iterator[bytes]:
    size = 0
    for part in parts:
        size += len(part)
        if size > limit:
            raise too_large(f"read the log of {pod}", limit)
        yield part


def logs_of(api: Api, pods: Iterable[JsonObject], tail: int) -> dict[str, str]:
    """Returns pod -> logs of its containers. A container without a log is left out."""
    found: dict[str, str] = {}
    for pod in pods:
        metadata = child(pod, "metadata")
        ref = Ref("pod", text(metadata.get("name")), text(metadata.get("namespace")))
        words = [_readable(api, ref, container, tail).rstrip("\n") for container in containers(pod, _LISTS)]
        if any(words):
            found[ref.name] = "\n".join(filter(None, words))
    return found


def containers(pod: JsonObject, lists: Sequence[str] = ("containers",)) -> list[str]:
    """The names of a pod's containers."""
    return [text(row.get("name")) for name in lists for row in rows(child(pod, "spec").get(name))]


def main_container(api: Api, pod: Ref) -> str:
    """The container that kubectl takes where none is named, or "" for a pod of one container."""
    found = api.object(ApiRequest(f"get {pod}", api.place(pod)))
    names = containers(found)
    named = text(child(found, "metadata", "annotations").get(_DEFAULT))
    return named if named in names else next(iter(names), "")


def _readable(api: Api, pod: Ref, container: str, tail: int) -> str:
    """A log, or "" for a container that has none yet."""
    try:
        return log(api, pod, container, tail)
    except ApiError:
        return ""


def _request(api: Api, pod: Ref, container: str, tail: int, more: tuple[tuple[str, str], ...]) -> ApiRequest:
    name = container or main_container(api, pod)
    query = [("container", name), *((("tailLines", str(tail)),) if tail >= 0 else ()), *more]
    return ApiRequest(
        f"read the log of {pod}", api.place(pod, "log"), query=tuple(query), accept="*/*", timeout_s=_TIMEOUT_S
    )
