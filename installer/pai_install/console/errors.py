"""Errors of OpenPAI's API: a status, a code, and a message. PaiError has a counterpart for each of its codes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from pai_install.cluster.client import ApiError
from pai_install.errors import PaiError
from pai_install.system.plain import one_line

_LOG = logging.getLogger("pai_install.console")


class RestError(Exception):
    """An answer with an error. headers: further headers, such as Retry-After."""

    def __init__(
        self, status: HTTPStatus, code: str, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})

    @property
    def content(self) -> dict[str, str]:
        """The body of the answer."""
        return {"code": self.code, "message": self.message}


_FORBIDDEN = (HTTPStatus.FORBIDDEN, "ForbiddenUserError")
_NO_JOB = (HTTPStatus.NOT_FOUND, "NoJobError")
_INVALID = (HTTPStatus.BAD_REQUEST, "InvalidParametersError")
_BUSY = (HTTPStatus.SERVICE_UNAVAILABLE, "UnknownError")
# code of a PaiError -> status and code of OpenPAI
_CODES: Mapping[str, tuple[HTTPStatus, str]] = {
    "unknown-job": _NO_JOB,
    "ambiguous-job": (HTTPStatus.CONFLICT, "ConflictJobError"),
    "job-exists": (HTTPStatus.CONFLICT, "ConflictJobError"),
    "job-file-invalid": (HTTPStatus.BAD_REQUEST, "InvalidProtocolError"),
    "job-not-permitted": _FORBIDDEN,
    "unknown-virtual-cluster": (HTTPStatus.NOT_FOUND, "NoVirtualClusterError"),
    "unknown-group": (HTTPStatus.NOT_FOUND, "NoGroupError"),
    "unknown-user": (HTTPStatus.NOT_FOUND, "NoUserError"),
    "unknown-template": (HTTPStatus.NOT_FOUND, "NoTemplateError"),
    "no-control-plane-answers": _BUSY,
}
# reason of the API server -> status and code of OpenPAI
_REASONS: Mapping[str, tuple[HTTPStatus, str]] = {
    "Unauthorized": (HTTPStatus.UNAUTHORIZED, "UnauthorizedUserError"),
    "Forbidden": _FORBIDDEN,
    "NotFound": _NO_JOB,
    "AlreadyExists": (HTTPStatus.CONFLICT, "ConflictJobError"),
    "Conflict": (HTTPStatus.CONFLICT, "ConflictJobError"),
    "Invalid": _INVALID,
    "TooManyRequests": (HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequestsError"),
    "Timeout": _BUSY,
    "NoAnswer": _BUSY,
}
# details of these errors are for the sender: problems of a file, words of a policy
_WITH_DETAILS = frozenset({"job-file-invalid", "job-not-permitted"})
# of the API server, before the words of a policy
_DENIED = " denied request: "
_OTHER = (HTTPStatus.BAD_REQUEST, "UnknownError")


def rest_error(error: PaiError) -> RestError:
    """The counterpart of an error in OpenPAI's API. A refusal by a policy has the words of the policy.

    The sender learns that the cluster is away, and the console's log why.
    """
    if isinstance(error, ApiError) and (words := denial(error)):
        return forbidden(words)
    found = _CODES.get(error.code)
    if found is None and isinstance(error, ApiError):
        found = _REASONS.get(error.reason, _BUSY)
    status, code = found or _OTHER
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        _LOG.warning("%s", one_line(f"{error.message}: {error.details}"))
    details = f"\n{error.details}" if error.details and error.code in _WITH_DETAILS else ""
    return RestError(status, code, f"{error.message}{details}")


def denial(error: ApiError) -> str:
    """The words of the admission policy that refuses a request, or ""."""
    # The text before it names the policy, which tells a user nothing.
    return f"{error.message} {error.details}".partition(_DENIED)[2].strip().partition("\n")[0]


def unauthorized(message: str = "sign in first") -> RestError:
    """Missing, wrong, or expired credentials."""
    return RestError(HTTPStatus.UNAUTHORIZED, "UnauthorizedUserError", message, headers={"WWW-Authenticate": "Bearer"})


def forbidden(message: str) -> RestError:
    """A caller without the right to do this."""
    return RestError(*_FORBIDDEN, message)


def invalid(message: str) -> RestError:
    """A request with a wrong value."""
    return RestError(*_INVALID, message)


def not_ready(message: str) -> RestError:
    """The answer of a moment."""
    return RestError(*_BUSY, f"{message}: try again in a moment", headers={"Retry-After": "2"})


def monitoring_away() -> RestError:
    """The monitoring does not answer."""
    return RestError(*_BUSY, "the monitoring does not answer on this control plane")


def no_api(path: str) -> RestError:
    """An unknown address."""
    return RestError(HTTPStatus.NOT_FOUND, "NoApiError", f"API {path} is not found")


def unknown() -> RestError:
    """An error of the console itself. Its log has the cause."""
    return RestError(HTTPStatus.INTERNAL_SERVER_ERROR, "UnknownError", "the console failed: see its log")
