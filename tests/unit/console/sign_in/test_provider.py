"""An identity provider that does not answer holds no thread but one."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from pai_install.console.errors import RestError
from pai_install.console.settings import OidcSettings
from pai_install.console.sign_in.provider import IdentityProvider

SETTINGS = OidcSettings(issuer="https://sso.example.org", client_id="pai")


class Line:
    """A stand-in for the network: it counts requests, and fails while `broken`."""

    def __init__(self) -> None:
        self.requests, self.broken, self.now = 0, True, 1000.0

    def response(self, *request: object) -> tuple[int, bytes]:
        del request
        self.requests += 1
        if self.broken:
            raise TimeoutError("timed out")
        endpoints = '"authorization_endpoint": "https://sso/a", "token_endpoint": "https://sso/t"'
        return 200, f'{{"issuer": "{SETTINGS.issuer}", {endpoints}, "id_token": "a.b.c"}}'.encode()


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def provider(line: Line, monkeypatch: pytest.MonkeyPatch) -> IdentityProvider:
    found = IdentityProvider(SETTINGS, lambda: line.now)
    monkeypatch.setattr(found, "_response", line.response)
    return found


def refused(provider: IdentityProvider) -> HTTPStatus:
    with pytest.raises(RestError) as error:
        provider.renewed("r")
    return error.value.status


def test_after_a_failure_requests_fail_at_once(line: Line, provider: IdentityProvider) -> None:
    assert {refused(provider) for _ in range(20)} == {HTTPStatus.BAD_GATEWAY}
    assert line.requests == 1


def test_one_request_asks_again(line: Line, provider: IdentityProvider) -> None:
    refused(provider)
    line.now += 11
    refused(provider)
    refused(provider)
    assert line.requests == 2


def test_while_one_request_asks_the_others_fail(
    line: Line, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(provider)
    line.now += 11
    others: list[HTTPStatus] = []

    def response(*request: object) -> tuple[int, bytes]:
        others.append(refused(provider))
        return line.response(*request)

    monkeypatch.setattr(provider, "_response", response)
    refused(provider)
    assert others == [HTTPStatus.BAD_GATEWAY]


def test_an_answer_ends_the_outage(line: Line, provider: IdentityProvider) -> None:
    refused(provider)
    line.broken = False
    line.now += 11
    assert provider.renewed("r").bearer == "a.b.c"
    assert provider.renewed("r").bearer == "a.b.c"


def test_a_refusal_is_no_outage(line: Line, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    line.broken = False
    provider.renewed("r")
    monkeypatch.setattr(provider, "_response", lambda *_: (400, b"{}"))
    assert {refused(provider) for _ in range(2)} == {HTTPStatus.UNAUTHORIZED}
