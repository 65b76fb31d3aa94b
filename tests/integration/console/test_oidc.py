"""Sign-in at an identity provider, with a real API server that takes its tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient

from pai_install.console.clients import CallerClients
from pai_install.console.connect import with_sign_in
from pai_install.console.errors import RestError
from pai_install.console.links import LinkSealer, LogRequest
from pai_install.console.server import create_app
from pai_install.console.settings import OidcSettings
from pai_install.console.sign_in import issue
from pai_install.console.sign_in.provider import IdentityProvider, unavailable
from pai_install.console.sign_in.service import open_sign_in
from pai_install.console.sign_in.sessions import COOKIE, ProviderTokens, Sessions
from pai_install.console.sign_in.tokens import jwt_content
from pai_install.users.credentials import CredentialKind, fingerprint
from pai_install.users.directory import bindings
from tests.integration.console.conftest import HOST, PROFILE, Console, console, own, settings_of
from tests.integration.control_plane import let_in
from tests.integration.issuer import Issuer, issuing
from tests.integration.users.conftest import Users
from tests.integration.users.test_directory import GROUPS, jwt
from tests.stopwatch import Stopwatch
from tests.waiting import until

__all__ = ["console", "own"]

OIDC = "/rest-server/api/v2/authn/oidc"
RETURN = f"https://{HOST}{OIDC}/return"
EVE = {"preferred_username": "eve@example.org", "groups": ["Vision Team"]}
# of the extension of VS Code
VSCODE, VSCODE_OIDC = "http://localhost:40123/callback", "/rest-server/api/v1/authn/oidc"


@dataclass(frozen=True)
class Provider:
    """A console with an identity provider. renewal: as the console has it."""

    issuer: Issuer
    console: Console
    renewal: IdentityProvider

    def begin(self, browser: TestClient, at: str = OIDC, **query: str) -> dict[str, str]:
        """Begins a sign-in. Returns what the provider is asked."""
        answer = browser.get(f"{at}/login", params=query)
        assert answer.status_code == 303
        target = urlsplit(answer.headers["location"])
        assert f"https://{target.netloc}{target.path}" == f"{self.issuer.url}/authorize"
        return dict(parse_qsl(target.query))

    def end(self, browser: TestClient, asked: dict[str, str], **claims: Any) -> Any:
        """The person signs in, and the browser comes back."""
        given = {**EVE, "nonce": asked["nonce"], **claims}
        code = self.issuer.code(asked["code_challenge"], asked["redirect_uri"], **given)
        return browser.get(f"{OIDC}/return", params={"code": code, "state": asked["state"]})


@pytest.fixture(scope="module")
def provider(console: Console, users: Users, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    for one in bindings(GROUPS):
        users.admin.apply(one)
    with issuing(tmp_path_factory.mktemp("issuer")) as issuer:
        let_in(users.admin.folder, [jwt(issuer)])
        found = _console_at(issuer, console, tmp_path_factory.mktemp("console"))
        yield found
        found.console.sign_in.users.stop()


def _console_at(issuer: Issuer, console: Console, folder: Path) -> Provider:
    (folder / "sso.pem").write_text(issuer.authority)
    oidc = OidcSettings(issuer=issuer.url, client_id=issuer.client, authority=folder / "sso.pem")
    settings = settings_of(folder, console.admin).model_copy(update={"oidc": oidc})
    clients, found = CallerClients(console.own), IdentityProvider(oidc)
    sign_in = open_sign_in(settings, clients, found)
    sign_in.users.start()
    until(lambda: sign_in.users.is_known)
    app = create_app(settings, with_sign_in(settings, clients, sign_in, found, lambda: PROFILE))
    made = replace(
        console,
        settings=settings,
        sign_in=sign_in,
        new=lambda: TestClient(app, base_url=f"https://{HOST}", follow_redirects=False),
    )
    token = issuer.token(**EVE)
    until(lambda: made.ask("GET", "/api/v2/tokens/check", token)["status"] == 200, 120)
    return Provider(issuer, made, found)


def short_session(provider: Provider) -> str:
    """The cookie of a person, after a sign-in with a token for 30 s."""
    browser, issuer = provider.console.new(), provider.issuer
    issuer.lasting_s = 30
    try:
        provider.end(browser, provider.begin(browser))
    finally:
        issuer.lasting_s = 3600
    return browser.cookies[COOKIE]


def test_a_person_signs_in(provider: Provider) -> None:
    browser = provider.console.new()
    asked = provider.begin(browser, **{"from": "/jobs"})
    assert (asked["code_challenge_method"], asked["redirect_uri"], asked["scope"].split()[0]) == (
        "S256",
        RETURN,
        "openid",
    )
    assert asked["scope"].split()[-1] == "offline_access"
    answer = provider.end(browser, asked)
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    caller = provider.console.sign_in.sessions.caller(browser.cookies[COOKIE])
    assert caller is not None
    assert (caller.name, caller.label, caller.groups, caller.admin) == (
        "oidc:eve@example.org",
        "oidc.eve_at_example.org",
        ("vision",),
        False,
    )
    assert caller.bearer.count(".") == 2
    assert "token" not in answer.headers["location"]


def test_an_administrator_of_the_provider_is_one(provider: Provider) -> None:
    browser = provider.console.new()
    provider.end(browser, provider.begin(browser), groups=["ops"])
    caller = provider.console.sign_in.sessions.caller(browser.cookies[COOKIE])
    assert caller is not None
    assert caller.admin


def test_a_code_counts_in_the_browser_that_began(provider: Provider) -> None:
    """Cross-site request forgery at the sign-in: a browser with the code of another person."""
    mine, other = provider.console.new(), provider.console.new()
    asked = provider.begin(mine)
    assert provider.end(other, asked).status_code == 401
    provider.begin(other)
    assert provider.end(other, asked).status_code == 401
    assert COOKIE not in other.cookies
    code = provider.issuer.code(asked["code_challenge"], RETURN, **EVE, nonce=asked["nonce"])
    for state in ("", "x"):
        assert mine.get(f"{OIDC}/return", params={"code": code, "state": state}).status_code == 401


def test_a_token_of_another_sign_in_is_refused(provider: Provider) -> None:
    for nonce in ("another", None):
        browser = provider.console.new()
        assert provider.end(browser, provider.begin(browser), nonce=nonce).status_code == 401
        assert COOKIE not in browser.cookies


def test_a_code_without_its_verifier_is_refused(provider: Provider) -> None:
    browser = provider.console.new()
    asked = provider.begin(browser)
    assert provider.end(browser, {**asked, "code_challenge": "stolen"}).status_code == 401


def test_a_forged_cookie_begins_nothing(provider: Provider) -> None:
    browser = provider.console.new()
    asked = provider.begin(browser)
    kept = browser.cookies["__Host-Http-pai-oidc"]
    browser.cookies.set("__Host-Http-pai-oidc", kept[:-4] + "AAAA", domain=HOST)
    assert provider.end(browser, asked).status_code == 401


def test_a_token_that_the_api_server_does_not_take_opens_nothing(provider: Provider) -> None:
    browser = provider.console.new()
    assert provider.end(browser, provider.begin(browser), aud="another").status_code == 401
    assert COOKIE not in browser.cookies


@pytest.mark.parametrize(
    "target", ["https://evil.example.org/", "//evil.example.org", "http://evil.example.org:1/", "javascript:x"]
)
def test_no_token_goes_elsewhere(provider: Provider, target: str) -> None:
    browser = provider.console.new()
    assert browser.get(f"{OIDC}/login", params={"redirect_uri": target}).status_code == 400
    asked = provider.begin(browser, **{"from": target})
    assert provider.end(browser, asked).headers["location"] == "/"


def to_vscode(provider: Provider, browser: TestClient) -> Any:
    """A sign-in for VS Code, up to the page that asks."""
    answer = provider.end(browser, provider.begin(browser, VSCODE_OIDC, redirect_uri=VSCODE, **{"from": "vscode"}))
    assert answer.headers["location"] == "/allow"
    return browser.get("/allow")


def allowed(browser: TestClient) -> str:
    """The token that VS Code gets."""
    form = fingerprint(f"form:{browser.cookies[COOKIE]}")
    answer = browser.post("/allow", data={"form": form}, headers={"Origin": f"https://{HOST}"})
    assert answer.status_code == 303
    target = urlsplit(answer.headers["location"])
    assert f"{target.scheme}://{target.netloc}{target.path}" == VSCODE
    values = dict(parse_qsl(target.query))
    assert (values["user"], values["admin"], values["from"]) == ("oidc.eve_at_example.org", "false", "/")
    return values["token"]


def test_a_program_gets_a_token_after_a_click(provider: Provider) -> None:
    browser = provider.console.new()
    page = to_vscode(provider, browser)
    assert VSCODE in page.text
    assert "http://localhost:*" in page.headers["content-security-policy"]
    token = allowed(browser)
    path = "/api/v2/user/oidc.eve_at_example.org"
    assert provider.console.ask("GET", path, token)["grouplist"] == ["vision"]
    assert provider.console.ask("POST", "/api/v2/tokens/application", token)["status"] == 403
    # it ends with the session
    form = fingerprint(f"form:{browser.cookies[COOKIE]}")
    watch = Stopwatch()
    browser.post("/logout", data={"form": form}, headers={"Origin": f"https://{HOST}"})
    until(lambda: provider.console.ask("GET", path, token)["status"] == 401)
    assert watch.within(2)


def test_a_token_in_an_address_ends_where_nobody_uses_it_at_once(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = provider.console.new()
    to_vscode(provider, browser)
    monkeypatch.setattr(issue, "CLAIMED_WITHIN", timedelta(seconds=0.2))
    token = allowed(browser)
    time.sleep(0.3)
    assert provider.console.ask("GET", "/api/v2/tokens/check", token)["status"] == 401


def test_nobody_asks_for_access_without_a_sign_in(provider: Provider) -> None:
    assert provider.console.new().get("/allow").status_code == 403


def test_the_old_portal_gets_a_token(provider: Provider) -> None:
    browser = provider.console.new()
    target = f"https://{HOST}/index.html"
    answer = provider.end(browser, provider.begin(browser, redirect_uri=target))
    found = urlsplit(answer.headers["location"])
    assert f"{found.scheme}://{found.netloc}{found.path}" == target
    token = dict(parse_qsl(found.query))["token"]
    assert provider.console.ask("GET", "/api/v2/tokens/check", token)["status"] == 200


def test_an_id_token_is_renewed_before_it_ends(provider: Provider) -> None:
    value, sessions = short_session(provider), provider.console.sign_in.sessions
    first, second = sessions.caller(value), sessions.caller(value)
    assert first is not None
    assert second is not None
    assert first.bearer == second.bearer
    assert jwt_content(first.bearer)["exp"] - time.time() > 3000


def test_a_log_goes_on_with_a_renewed_token(provider: Provider) -> None:
    """Tokens of a provider may last for minutes, and a job for days."""
    browser, issuer, sign_in = provider.console.new(), provider.issuer, provider.console.sign_in
    provider.end(browser, provider.begin(browser))
    value = browser.cookies[COOKIE]
    caller = sign_in.sessions.caller(value)
    assert caller is not None
    sealer = LinkSealer(provider.console.settings.signing_key)
    opened = sealer.open(sealer.seal(caller, LogRequest("vision", "pod")))
    assert opened is not None
    now = sign_in.current(opened[0])
    assert now == caller
    later = replace(sign_in.sessions, now=lambda: datetime.now(UTC) + timedelta(seconds=issuer.lasting_s))
    issuer.lasting_s *= 2
    try:
        renewed = replace(sign_in, sessions=later).current(opened[0])
    finally:
        issuer.lasting_s //= 2
    assert renewed is not None
    assert renewed.bearer != caller.bearer
    sign_in.sessions.close(fingerprint(value))
    assert sign_in.current(opened[0]) is None


def test_a_session_ends_when_the_provider_renews_no_more(provider: Provider) -> None:
    value = short_session(provider)
    provider.issuer.revoke()
    assert provider.console.sign_in.sessions.caller(value) is None


def test_a_client_that_wants_a_token_first_gets_a_guest(provider: Provider) -> None:
    found = provider.console.login("", "")
    assert (found["status"], found["user"], found["admin"]) == (200, "", False)
    for path in ("/api/v2/tokens", "/api/v2/users", "/api/v2/user/alice", "/api/v2/tokens/check"):
        assert provider.console.ask("GET", path, found["token"])["status"] == 401
    assert provider.console.ask("GET", "/api/v2/info", found["token"])["authnMethod"] == "OIDC"
    assert provider.console.ask("GET", "/api/v2/authn/info", "")["loginURI"] == "/api/v2/authn/oidc/login"


def test_another_name_of_the_console_begins_at_the_first(provider: Provider) -> None:
    answer = provider.console.new().get(f"{OIDC}/login", headers={"Host": "10.0.0.1"}, params={"from": "/jobs"})
    assert answer.headers["location"].startswith(f"https://{HOST}{OIDC}/login?from=%2Fjobs")


def test_logout_ends_the_session_and_goes_to_the_provider(provider: Provider) -> None:
    browser = provider.console.new()
    provider.end(browser, provider.begin(browser))
    value = browser.cookies[COOKIE]
    assert browser.get(f"{OIDC}/logout").headers["location"] == f"{provider.issuer.url}/logout"
    assert provider.console.sign_in.sessions.caller(value) is None


def test_requests_at_the_same_time_renew_once(provider: Provider) -> None:
    """A refresh token counts once: without a common renewal, all but one of these requests would sign the user out."""
    value, found = short_session(provider), []

    def ask(sessions: Sessions) -> None:
        found.append(sessions.caller(value))

    # another replica has its own memory of credentials
    other = open_sign_in(provider.console.settings, CallerClients(provider.console.own), provider.renewal)
    other.users.start()
    until(lambda: other.users.is_known)
    all_sessions = [provider.console.sign_in.sessions] * 4 + [other.sessions] * 4
    threads = [threading.Thread(target=ask, args=(one,)) for one in all_sessions]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    other.users.stop()
    assert len([one for one in found if one is not None]) == 8


def test_a_replica_that_has_just_started_signs_out_no_person(provider: Provider) -> None:
    value = short_session(provider)
    starting = open_sign_in(provider.console.settings, CallerClients(provider.console.own), provider.renewal)
    with pytest.raises(RestError) as refused:
        starting.sessions.caller(value)
    assert refused.value.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert provider.console.sign_in.sessions.caller(value) is not None


def test_an_outage_of_the_provider_signs_out_no_person(provider: Provider) -> None:
    value, sessions = short_session(provider), provider.console.sign_in.sessions
    over = replace(sessions, now=lambda: datetime.now(UTC) + timedelta(seconds=40))
    provider.issuer.failing = True
    try:
        # the token still lasts
        assert sessions.caller(value) is not None
        with pytest.raises(RestError) as refused:
            over.caller(value)
    finally:
        provider.issuer.failing = False
    assert refused.value.status == HTTPStatus.BAD_GATEWAY
    renewed = over.caller(value)
    assert renewed is not None
    assert jwt_content(renewed.bearer)["exp"] - time.time() > 3000


def test_requests_that_wait_for_a_renewal_learn_that_it_failed(provider: Provider) -> None:
    value = short_session(provider)
    fails, refused = threading.Event(), []

    class Failing:
        def renewed(self, refresh: str) -> ProviderTokens:
            del refresh
            fails.wait()
            raise unavailable("it is a test")

    later = datetime.now(UTC) + timedelta(seconds=40)
    over = replace(provider.console.sign_in.sessions, renewal=Failing(), now=lambda: later)

    def ask() -> None:
        try:
            over.caller(value)
        except RestError as error:
            refused.append(error.status)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for one in threads:
        one.start()
    time.sleep(0.5)
    fails.set()
    for one in threads:
        one.join()
    assert len(refused) == 3
    assert {int(one) for one in refused} <= {502, 503}


def test_a_replica_with_old_memory_does_not_undo_a_renewal(provider: Provider) -> None:
    value, sessions = short_session(provider), provider.console.sign_in.sessions
    old = sessions.store.find(CredentialKind.SESSION, fingerprint(value))
    assert old is not None
    renewed = sessions.caller(value)
    assert renewed is not None
    replace(sessions, now=lambda: datetime.now(UTC) + timedelta(minutes=6))._note(old)
    kept = sessions.store.find(CredentialKind.SESSION, fingerprint(value), fresh=True)
    assert kept is not None
    assert kept.data["bearer"] == renewed.bearer
