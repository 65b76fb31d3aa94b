"""Clients of the Kubernetes API for callers: the one place that decides in whose name a request is made."""

from __future__ import annotations

from pai_install.cluster.client import ClusterClient, Impersonation
from pai_install.cluster.credentials import BearerToken
from pai_install.cluster.over_http import HttpClient
from pai_install.console.caller import Caller, CallerKind
from pai_install.console.errors import unauthorized
from pai_install.site.user_names import why_no_name
from pai_install.users.model import ACCOUNT_PREFIX

_IMPERSONATED = (CallerKind.PASSWORD, CallerKind.APPLICATION)


class CallerClients:
    """Clients on the connections of one process."""

    def __init__(self, own: HttpClient) -> None:
        self._own = own

    def of(self, caller: Caller) -> ClusterClient:
        """A client with the caller's own token, or in the name of an account of the namespace of users.

        Raises RestError for anybody else: such a request would be made in the name of the console.
        """
        if caller.bearer:
            return self._own.with_credentials(BearerToken(caller.bearer))
        user = caller.name.removeprefix(ACCOUNT_PREFIX)
        # Only names of the namespace of users: any other name could be one of the system.
        if caller.kind in _IMPERSONATED and user != caller.name and not why_no_name(user):
            return self._own.with_identity(Impersonation(caller.name))
        raise unauthorized()

    def own(self) -> ClusterClient:
        """A client of the console's own account."""
        return self._own
