"""Errors of kubectl: who refused, and whether another control plane may answer. Pure."""

from __future__ import annotations

import re

from pai_install.cluster.client import NO_ANSWER, ApiError
from pai_install.cluster.remote import MISSING
from pai_install.cluster.transport import Answer, Call

# An API server took the request, and was away before it answered.
_WENT_AWAY = r"unexpected EOF|connection reset by peer|http2: |etcdserver: "
# An API server that has just started refuses even the administrator, until it has read who may do what.
STARTS = re.compile(r'is forbidden: User "kubernetes-admin" cannot ')
_REASON = re.compile(r"Error from server \((\w+)\)")
_OTHER_REASONS = (
    (re.compile(r"Apply failed with \d+ conflict"), "Conflict"),
    (re.compile(r"the server doesn't have a resource type"), "NoSuchKind"),
    (re.compile(r"no matches for kind"), "NoSuchKind"),
    (re.compile(r'^The \S+ "[^"]*" is invalid: ', re.MULTILINE), "Invalid"),
    (re.compile(r"timed out waiting for the condition"), "Timeout"),
    (re.compile(r"no answer within|context deadline exceeded|Client\.Timeout"), "Timeout"),
    (re.compile(_WENT_AWAY), NO_ANSWER),
)
# The request may have been carried out although no answer came.
_NO_ANSWER = re.compile(
    rf"awaiting headers|context deadline exceeded|unable to handle the request|no answer within|{_WENT_AWAY}"
)
_NOT_REACHED = re.compile(
    r"was refused|connection refused|i/o timeout|no route to host|network is unreachable|TLS handshake timeout|"
    rf"Unable to connect to the server|stat \S*admin\.conf|{MISSING}"
)
REMEDIES = {
    "Conflict": "another program owns that field: change the value there, or let pai-install take the field over",
    "Forbidden": "an admission rule of the cluster forbids the change; its message is above",
    "NoSuchKind": "the cluster does not have that kind of object: the add-on that brings it is missing",
    "Timeout": "pai-install status",
    NO_ANSWER: "the API server went away or has just started: pai-install status, then the same command again",
}


def reason_of(stderr: str) -> str:
    """Returns the API server's reason code, or ""."""
    match = _REASON.search(stderr)
    if STARTS.search(stderr):
        return NO_ANSWER
    if match:
        return match[1]
    return next((word for pattern, word in _OTHER_REASONS if pattern.search(stderr)), "")


def unanswered(answer: Answer, call: Call) -> bool:
    """Whether no API server took the call, so that it may be made elsewhere without being made twice."""
    if answer.ok:
        return False
    if _NO_ANSWER.search(answer.stderr):
        return call.reads
    return bool(_NOT_REACHED.search(answer.stderr) or STARTS.search(answer.stderr))


def refusal(host: str, call: Call, answer: Answer) -> ApiError:
    """The error for a call that failed."""
    reason = reason_of(answer.stderr)
    what = " ".join(word for word in call.argv[:3] if not word.startswith("-"))
    said = (answer.stderr or answer.stdout).strip()
    return ApiError(
        f"kubectl {what} failed on {host}" + (f": {reason}" if reason else ""),
        reason=reason,
        details=said[-2000:] or f"exit status {answer.returncode} without a message",
        remedy=REMEDIES.get(reason, ""),
    )
