"""Tokens of others: the API server says whose they are."""

from __future__ import annotations

import time
from collections.abc import Callable

from pai_install.cluster.client import ApiError
from pai_install.console.caller import Caller, CallerKind, Clients
from pai_install.console.errors import unauthorized
from pai_install.console.model.recent import RecentByKey
from pai_install.console.sign_in.known_users import KnownUsers
from pai_install.kube.objects import child, text
from pai_install.users.credentials import fingerprint

_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
# a token that the API server takes no more counts for this time
_KEPT_S = 1.5
_MOST_KEPT = 5000
_LONGEST = 32 * 1024


class TokenReviews:
    """Callers by the tokens of kubeconfigs and identity providers. Refused tokens are remembered, too."""

    def __init__(self, clients: Clients, users: KnownUsers, clock: Callable[[], float] = time.monotonic) -> None:
        self._clients, self._users = clients, users
        self._recent: RecentByKey[str, tuple[str, str, tuple[str, ...]] | None] = RecentByKey(
            _KEPT_S, _MOST_KEPT, clock
        )

    def caller(self, token: str) -> Caller:
        """The user of `user add`, or the person of an identity provider. Raises RestError for any other token."""
        if not token or len(token) > _LONGEST or not token.isascii() or any(one.isspace() for one in token):
            raise unauthorized("Your token is invalid.")
        found = self._recent.get(fingerprint(token), lambda: self._query(token))
        if found is not None:
            name, uid, groups = found
            caller = self._users.of_review(name, groups, uid, CallerKind.OIDC, token)
            if caller is not None:
                return caller
        raise unauthorized("Your token is invalid.")

    def _query(self, token: str) -> tuple[str, str, tuple[str, ...]] | None:
        client = self._clients.of(Caller("", "", CallerKind.OIDC, bearer=token))
        try:
            (answer,) = client.create([_REVIEW])
        except ApiError as error:
            if error.reason in ("Unauthorized", "Forbidden"):
                return None
            raise
        info = child(answer, "status", "userInfo")
        groups = info.get("groups")
        names = tuple(text(one) for one in groups) if isinstance(groups, list) else ()
        return text(info.get("username")), text(info.get("uid")), names
