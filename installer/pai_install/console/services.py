"""What routes use: settings, authenticators, and clients of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.routing import BaseRoute

from pai_install.cluster.client import ClusterClient, NoClusterError
from pai_install.console.caller import Authenticator, Caller, Clients
from pai_install.console.settings import ConsoleSettings


@dataclass(frozen=True)
class ConsoleServices:
    """What routes use.

    authenticators: they are asked in this order. api_routes, page_routes: of other packages, below /rest-server and at
    the root.
    """

    settings: ConsoleSettings
    clients: Clients
    authenticators: tuple[Authenticator, ...] = ()
    api_routes: tuple[BaseRoute, ...] = field(default=(), repr=False)
    page_routes: tuple[BaseRoute, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class _Disconnected:
    """Clients of a cluster without a transport."""

    api_server: str

    def of(self, caller: Caller) -> ClusterClient:
        del caller
        return self.own()

    def own(self) -> ClusterClient:
        raise NoClusterError({self.api_server: "is not connected"})


def open_services(settings: ConsoleSettings) -> ConsoleServices:
    """The services of the program."""
    return ConsoleServices(settings, _Disconnected(settings.api_server))
