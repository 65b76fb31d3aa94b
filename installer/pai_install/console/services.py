"""What routes use: settings, authenticators, and clients of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.routing import BaseRoute

from pai_install.console.caller import Authenticator, Clients
from pai_install.console.settings import ConsoleSettings


@dataclass(frozen=True)
class ConsoleServices:
    """What routes use.

    authenticators: of the API, in this order. page_authenticators: of pages, by their cookie. api_routes, page_routes:
    of other packages, below /rest-server and at the root.
    """

    settings: ConsoleSettings
    clients: Clients
    authenticators: tuple[Authenticator, ...] = ()
    api_routes: tuple[BaseRoute, ...] = field(default=(), repr=False)
    page_routes: tuple[BaseRoute, ...] = field(default=(), repr=False)
    page_authenticators: tuple[Authenticator, ...] = ()
