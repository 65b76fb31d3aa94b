"""Errors of the API server as HTTP answers: who refused, and whether another control plane may answer. Pure."""

from __future__ import annotations

import re
from http import HTTPStatus

from pai_install.agents.common.values import InvalidJsonError, child, parse_object, text
from pai_install.cluster.client import NO_ANSWER, ApiError
from pai_install.errors import PaiError
from pai_install.kube.objects import JsonObject
from pai_install.system.plain import plain_text

_MOST_WORDS = 2000
_LARGEST_STATUS = 1 << 20
# etcd without a leader, for some seconds after the loss of a control plane. It refuses other requests permanently
_ELECTS = re.compile(
    r"etcdserver: (no leader|not leader|leader changed|server stopped|unhealthy cluster|too many requests"
    r"|request timed out|request canceled|context deadline exceeded)"
)
# The API server took the request, and the database was away before it answered
_WENT_AWAY = re.compile(
    rf"{_ELECTS.pattern}|unexpected EOF|connection reset by peer|http2: |unable to handle the request"
)
# An API server that has just started refuses even the administrator, until it has read who may do what.
_STARTS = re.compile(r'is forbidden: User "kubernetes-admin" cannot ')
_REMEDIES = {
    "Conflict": "change the value in the program that owns the field, or let pai-install take the field over",
    "Forbidden": "follow the message of the admission policy above",
    "NoSuchKind": "run pai-install apply, which installs the add-on with this kind",
    "Timeout": "find the cause with pai-install status",
    NO_ANSWER: "wait for the API server with pai-install status, then repeat the command",
}
_REASONS = {
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.CONFLICT: "Conflict",
    HTTPStatus.GONE: "Expired",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequests",
    HTTPStatus.SERVICE_UNAVAILABLE: NO_ANSWER,
    HTTPStatus.BAD_GATEWAY: NO_ANSWER,
    HTTPStatus.GATEWAY_TIMEOUT: NO_ANSWER,
}


def unanswered(status: int, body: bytes, *, reads: bool) -> bool:
    """Whether no API server took the request, so that it may be made elsewhere without being made twice."""
    if status < 400:
        return False
    words = _message(_status(body), body)
    if _STARTS.search(words):
        return True
    return reads and _reason(status, _status(body), words) == NO_ANSWER


def elects(body: bytes) -> bool:
    """Whether a request got no answer because etcd elects a leader, which takes seconds."""
    return _ELECTS.search(_message(_status(body), body)) is not None


def refusal(host: str, what: str, status: int, body: bytes) -> ApiError:
    """The error for a request that failed."""
    found = _status(body)
    words = _message(found, body)
    reason = _reason(status, found, words)
    return ApiError(
        f"cannot {what}: {reason or status} (host {host})",
        reason=reason,
        details=words[:_MOST_WORDS] or f"HTTP status {status} without a message",
        remedy=_REMEDIES.get(reason, ""),
    )


def watch_refusal(host: str, what: str, status: JsonObject) -> ApiError:
    """The error for a Status object that ended a watch."""
    code = status.get("code")
    reason = _reason(code if isinstance(code, int) else 0, status, text(status.get("message")))
    words = plain_text(text(status.get("message")))[:_MOST_WORDS]
    return ApiError(f"cannot {what}: {reason} (host {host})", reason=reason, details=words)


def unknown_kind(name: str) -> ApiError:
    """The error for a kind that the cluster does not have."""
    return ApiError(
        f"cannot find the kind {plain_text(name)!r} in the cluster",
        reason="NoSuchKind",
        details="the API server does not list it",
        remedy=_REMEDIES["NoSuchKind"],
    )


def connection_lost(host: str, what: str, why: str) -> ApiError:
    """The error for a change that may have been carried out."""
    return ApiError(
        f"cannot {what}: the connection to {host} was lost before the answer",
        reason=NO_ANSWER,
        details=why,
        remedy=_REMEDIES[NO_ANSWER],
    )


def too_large(what: str, limit: int) -> PaiError:
    """The error for an answer above the limit."""
    return PaiError(f"cannot {what}: the answer has more than {limit >> 20} MiB", code="api-answer-too-large")


def not_json(host: str, what: str, why: object) -> PaiError:
    """The error for an answer that is no JSON object."""
    return PaiError(f"cannot {what}: {host} returned no JSON object: {why}", code="api-answer-not-json")


def _status(body: bytes) -> JsonObject:
    """The Status object in an answer, or an empty one."""
    try:
        return parse_object(body, max_size=_LARGEST_STATUS)
    except InvalidJsonError:
        return {}


def _message(status: JsonObject, body: bytes) -> str:
    return plain_text(text(status.get("message")) or body[:_MOST_WORDS].decode(errors="replace")).strip()


def _reason(code: int, status: JsonObject, words: str) -> str:
    if _STARTS.search(words) or (code >= 500 and _WENT_AWAY.search(words)):
        return NO_ANSWER
    known = _REASONS.get(HTTPStatus(code), "") if code in set(HTTPStatus) else ""
    if known == NO_ANSWER:
        return known
    reason = text(status.get("reason")) or known
    if reason == "NotFound" and not child(status, "details").get("name"):
        return "NoSuchKind"  # the path itself does not exist
    return "Expired" if reason == "Gone" else reason
