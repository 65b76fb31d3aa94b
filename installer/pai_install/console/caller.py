"""Who sends a request, how a request proves it, and the client that acts for the caller."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from starlette.requests import HTTPConnection

from pai_install.cluster.client import ClusterClient


class CallerKind(StrEnum):
    """How a caller was proven. GUEST: not at all. A guest reads public routes only."""

    PASSWORD = "password"  # noqa: S105 - a kind, not a password
    APPLICATION = "application"
    OIDC = "oidc"
    KUBECONFIG = "kubeconfig"
    GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    name: at the API server. label: in labels of objects and in OpenPAI's API. uid: of the account of a user, or "".
    groups: of the site, by name. admin: whether the API server counts the sender as an administrator.
    bearer: token to pass on to the API server, in place of an impersonation. session: its key, if it renews the token.
    """

    name: str
    label: str
    kind: CallerKind
    uid: str = ""
    groups: tuple[str, ...] = ()
    admin: bool = False
    email: str = ""
    bearer: str = field(default="", repr=False)
    session: str = field(default="", repr=False)


class Authenticator(Protocol):
    """Knows one kind of credentials. A method may ask the cluster: it runs in a thread."""

    def authenticate(self, request: HTTPConnection) -> Caller | None:
        """The sender of a request, or None for a request without credentials of this kind.

        Raises RestError for credentials of this kind that are wrong or expired.
        """
        ...


class Clients(Protocol):
    """Clients of the Kubernetes API."""

    def of(self, caller: Caller) -> ClusterClient:
        """A client that acts as a caller."""
        ...

    def own(self) -> ClusterClient:
        """A client of the console's own account. It reads lists, and nothing secret."""
        ...
