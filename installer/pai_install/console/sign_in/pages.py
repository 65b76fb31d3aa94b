"""Pages of sign-in: password, kubeconfig, a new password by a link, and access for a program on one's own computer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from pai_install.console.caller import Caller, CallerKind
from pai_install.console.cookies import drop_cookie, set_cookie
from pai_install.console.errors import RestError, forbidden, invalid
from pai_install.console.pages.rendering import rendered
from pai_install.console.sign_in.forms import (
    FORM_COOKIE,
    PageEndpoint,
    PageHandler,
    PageRequest,
    fresh_form,
    page,
    sent_to,
)
from pai_install.console.sign_in.redirects import own_path
from pai_install.console.sign_in.service import SignInService
from pai_install.console.sign_in.sessions import COOKIE, ProviderTokens
from pai_install.site.passwords import SHORTEST
from pai_install.users.credentials import fingerprint

_TOKEN_LINE = re.compile(r"^\s*token:\s*[\"']?([A-Za-z0-9._~+/=-]+)[\"']?\s*$", re.MULTILINE)
_FORM_S = 24 * 3600


@dataclass(frozen=True)
class SignInPages:
    """All pages."""

    sign_in: SignInService

    def login(self, given: PageRequest) -> Response:
        """The form."""
        target = own_path(given.request.query_params.get("from", "/"))
        if given.caller is not None:
            return sent_to(target)
        return self._with_fresh_form(given, "login.html", self._login_values(target))

    def with_password(self, given: PageRequest) -> Response:
        """Signs in with name and password."""
        target, name = own_path(given.form.get("from", "/")), given.form.get("username", "")
        try:
            if not self.sign_in.settings.sign_in.passwords:
                raise forbidden("passwords are disabled")
            user = self.sign_in.passwords.sign_in(name, given.form.get("password", ""), given.address)
        except RestError as error:
            return _with_problem(given, "login.html", error, self._login_values(target, name))
        return self._begun(given, self.sign_in.users.caller(user, CallerKind.PASSWORD), None, target)

    def with_token(self, given: PageRequest) -> Response:
        """Signs in with the token of a kubeconfig."""
        target, text = own_path(given.form.get("from", "/")), given.form.get("token", "").strip()
        found = _TOKEN_LINE.search(text)
        token = found.group(1) if found is not None else text
        try:
            caller = self.sign_in.reviews.caller(token)
        except RestError as error:
            return _with_problem(given, "login.html", error, self._login_values(target))
        return self._begun(given, caller, ProviderTokens(token), target)

    def logout(self, given: PageRequest) -> Response:
        """Ends the session."""
        if given.session:
            self.sign_in.sessions.close(fingerprint(given.session))
        response = sent_to("/login")
        drop_cookie(response, COOKIE)
        return response

    def password(self, given: PageRequest) -> Response:
        """The form for a new password. The link stays good until the form is sent."""
        link = self.sign_in.passwords.link(given.request.path_params["secret"])
        return self._with_fresh_form(given, "password.html", _password_values(link.user))

    def set_password(self, given: PageRequest) -> Response:
        """Sets the password. Sessions with the earlier one end."""
        secret = given.request.path_params["secret"]
        link = self.sign_in.passwords.link(secret)
        try:
            if given.form.get("password") != given.form.get("again"):
                raise invalid("the two passwords differ")
            self.sign_in.passwords.by_link(secret, given.form.get("password", ""))
        except RestError as error:
            return _with_problem(given, "password.html", error, _password_values(link.user))
        self.sign_in.sessions.close_all(link.user, link.uid)
        return rendered(replace(given.frame, path="/login", query=()), "password_set.html", name=link.user)

    def routes(self) -> tuple[Route, ...]:
        """All routes."""
        return (
            Route("/login", self._page(self.login), methods=["GET"]),
            Route("/login", self._page(self.with_password), methods=["POST"]),
            Route("/login/token", self._page(self.with_token), methods=["POST"]),
            Route("/logout", self._page(self.logout), methods=["POST"]),
            Route("/password/{secret}", self._page(self.password), methods=["GET"]),
            Route("/password/{secret}", self._page(self.set_password), methods=["POST"]),
        )

    def _page(self, handler: PageHandler) -> PageEndpoint:
        return page(self.sign_in.settings, self.sign_in.browser, handler)

    def _begun(self, given: PageRequest, caller: Caller, tokens: ProviderTokens | None, target: str) -> Response:
        """A new session, never one that the browser brought: an attacker could know that."""
        if given.session:
            self.sign_in.sessions.close(fingerprint(given.session))
        response = sent_to(target)
        keep_session(self.sign_in, response, self.sign_in.sessions.open(caller, tokens))
        return response

    @staticmethod
    def _with_fresh_form(given: PageRequest, template: str, values: Mapping[str, Any]) -> Response:
        """A page with a form, for a browser that may have no session yet."""
        cookie, form = fresh_form(given)
        frame = given.frame if given.caller is not None else replace(given.frame, form=form)
        response = rendered(frame, template, problem="", **values)
        set_cookie(response, FORM_COOKIE, cookie, _FORM_S)
        return response

    def _login_values(self, target: str, name: str = "") -> Mapping[str, Any]:
        settings = self.sign_in.settings
        oidc, passwords = settings.oidc is not None, settings.sign_in.passwords
        return {"target": target, "name": name, "oidc": oidc, "passwords": passwords}


def _password_values(user: str) -> Mapping[str, Any]:
    return {"name": user, "shortest": SHORTEST}


def _with_problem(given: PageRequest, template: str, error: RestError, values: Mapping[str, Any]) -> Response:
    """The page again, with the error."""
    response = rendered(given.frame, template, error.status, problem=error.message, **values)
    response.headers.update(error.headers)
    return response


def keep_session(sign_in: SignInService, response: Response, value: str) -> None:
    """Sets the cookie of a session."""
    set_cookie(response, COOKIE, value, sign_in.settings.sign_in.session_hours * 3600)
    drop_cookie(response, FORM_COOKIE)
