"""Connects the parts of the console to a cluster."""

from __future__ import annotations

from collections.abc import Callable

from pai_install.cluster.over_http import with_token_file
from pai_install.console.clients import CallerClients
from pai_install.console.model.read_model import ReadModel
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings
from pai_install.console.sign_in.api import TokenRoutes
from pai_install.console.sign_in.authenticators import PortalAuthenticator
from pai_install.console.sign_in.oidc import ProviderRoutes
from pai_install.console.sign_in.pages import SignInPages
from pai_install.console.sign_in.provider import IdentityProvider
from pai_install.console.sign_in.service import SignInService, open_sign_in
from pai_install.console.sign_in.users_api import UserRoutes
from pai_install.profile.model import ClusterProfile


def open_services(settings: ConsoleSettings) -> ConsoleServices:
    """The services of the program, with watches of users."""
    own = with_token_file(settings.api_server, settings.api_authority, settings.api_token)
    clients = CallerClients(own)
    provider = IdentityProvider(settings.oidc) if settings.oidc is not None else None
    sign_in = open_sign_in(settings, clients, provider)
    sign_in.start()
    return with_sign_in(settings, clients, sign_in, provider)


def with_sign_in(
    settings: ConsoleSettings,
    clients: CallerClients,
    sign_in: SignInService,
    provider: IdentityProvider | None,
    profile: Callable[[], ClusterProfile] | None = None,
) -> ConsoleServices:
    """Services with the routes of sign-in and of users. profile: in place of the profile in the cluster."""
    people, model = ProviderRoutes(sign_in, provider), ReadModel(clients)
    users = UserRoutes(sign_in, profile or (lambda: model.profile))
    return ConsoleServices(
        settings,
        clients,
        (sign_in.tokens,),
        (*TokenRoutes(sign_in).routes(), *people.api_routes(), *users.routes()),
        (*SignInPages(sign_in).routes(), *people.page_routes()),
        (sign_in.cookies,),
        portal_authenticators=(PortalAuthenticator(sign_in.tokens),),
        current=sign_in.current,
        model=model,
        sign_in=sign_in,
    )
