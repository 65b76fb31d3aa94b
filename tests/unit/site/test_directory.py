"""Where people log in: from OpenPAI's section AAD, and from ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from pydantic_core import PydanticCustomError

from pai_install.site import load_site
from pai_install.site.directory import Directory, aad_issuer, directory_of
from pai_install.site.load import read_site
from pai_install.site.names import read_issuer
from pai_install.site.services.authentication import Aad
from tests.internet.authority import Authority
from tests.unit.site.sites import write_site

OPENPAI = Path(__file__).parents[2] / "golden" / "site" / "openpai"
FILES = {"layout": "layout", "services": "services-configuration"}
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"


def directory(folder: Path, *lines: str) -> Directory | None:
    """What a site with these lines in `authentication` has."""
    text = "authentication:\n" + "".join(f"  {line}\n" for line in lines)
    return directory_of(load_site(write_site(folder, services=text)).site.services)


def test_nobody_logs_in_where_the_site_says_nothing(tmp_path: Path) -> None:
    assert directory_of(load_site(write_site(tmp_path)).site.services) is None
    assert directory(tmp_path, "OIDC: false", f"AAD: {{tenantID: {TENANT}, clientID: pai}}") is None


def test_openpais_own_block_is_enough(tmp_path: Path) -> None:
    files = {name: (OPENPAI / f"{file}.yaml").read_text() for name, file in FILES.items()}
    found = directory_of(load_site(write_site(tmp_path, **files)).site.services)
    tenant, client = "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"
    issuer, secret = f"https://login.microsoftonline.com/{tenant}/v2.0", SecretStr(r"planted-client\\secret")
    assert found == Directory(issuer, client, "oid", "groups", client_secret=secret)


def test_any_issuer(tmp_path: Path) -> None:
    found = directory(tmp_path, "OIDC: true", "issuer: {url: https://sso.example.org/, client-id: pai}")
    assert found == Directory("https://sso.example.org/", "pai", "sub", "groups"), "the '/' is part of the name"


def test_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(f"a word before\n{Authority('sso', tmp_path).pem}")
    found = directory(
        tmp_path,
        "OIDC: true",
        "issuer:",
        "  url: https://sso.example.org:8443/realms/lab",
        "  client-id: pai",
        "  username-claim: preferred_username",
        "  groups-claim: roles",
        "  ca-file: ca.pem",
    )
    assert found is not None
    assert (found.issuer, found.username, found.groups) == (
        "https://sso.example.org:8443/realms/lab",
        "preferred_username",
        "roles",
    )
    assert found.authority.startswith("-----BEGIN CERTIFICATE-----\n")


def test_the_section_issuer_says_what_the_block_leaves_open(tmp_path: Path) -> None:
    block = f"AAD: {{tenantID: {TENANT}, clientID: pai, clientSecret: s}}"
    lines = ("OIDC: true", "OIDC-type: AAD", block)
    found = directory(tmp_path, *lines, "issuer: {username-claim: preferred_username}")
    issuer, secret = f"https://login.microsoftonline.com/{TENANT}/v2.0", SecretStr("s")
    assert found == Directory(issuer, "pai", "preferred_username", "groups", client_secret=secret)
    found = directory(tmp_path, *lines, "issuer: {url: https://adfs.example.org/adfs, client-id: lab}")
    assert found == Directory("https://adfs.example.org/adfs", "lab", "oid", "groups"), "another client"
    issuer = "issuer: {url: https://adfs.example.org/adfs, client-id: lab, client-secret: other}"
    found = directory(tmp_path, *lines, issuer)
    assert found is not None
    assert found.client_secret == SecretStr("other")


@pytest.mark.parametrize(
    ("url", "issuer"),
    [
        (None, f"https://login.microsoftonline.com/{TENANT}/v2.0"),
        (
            "https://login.partner.microsoftonline.cn/{tenantID}/v2.0/.well-known/openid-configuration",
            f"https://login.partner.microsoftonline.cn/{TENANT}/v2.0",
        ),
        (
            f"https://login.microsoftonline.com/{TENANT.upper()}/v2.0/.well-known/openid-configuration",
            f"https://login.microsoftonline.com/{TENANT}/v2.0",
        ),
    ],
)
def test_issuers_of_azure(url: str | None, issuer: str) -> None:
    assert aad_issuer(Aad(wellKnownURL=url, tenantID=TENANT)) == issuer


@pytest.mark.parametrize("tenant", ["common", "organizations", "consumers", "contoso.onmicrosoft.com", "{tenantID}"])
def test_no_issuer_stands_for_several_directories(tenant: str) -> None:
    """Tokens name one by its ID: the API server would compare that with another name, or take anybody's."""
    url = f"https://login.microsoftonline.com/{tenant}/v2.0/.well-known/openid-configuration"
    with pytest.raises(PydanticCustomError, match="is not the ID of one directory"):
        aad_issuer(Aad(wellKnownURL=url))


def test_a_site_that_asks_for_aad_without_saying_which_is_refused(tmp_path: Path) -> None:
    reading = read_site(write_site(tmp_path, services="authentication: {OIDC: true, OIDC-type: AAD}\n"))
    assert {problem.code for problem in reading.problems if problem.is_error} == {"site.issuer", "site.missing"}


@pytest.mark.parametrize(
    "word",
    [
        *("http://sso.example.org", "sso.example.org", "https://", "https://sso.example.org?a=b", "https://a/#b"),
        *(
            "https://me:word@sso.example.org",
            "https://@sso.example.org",
            "https://sso.example.org:port",
            "https://a/%zz",
        ),
        *("https://a%20b/", "https://[::1]/", "https://sso.example.org:99999", "https://kubernetes.default.svc/"),
    ],
)
def test_no_issuers(word: str) -> None:
    with pytest.raises(PydanticCustomError):
        read_issuer(word)


@given(st.text(st.characters(codec="ascii"), max_size=30))
def test_an_issuer_is_only_what_api_servers_start_with(rest: str) -> None:
    word = f"https://{rest}"
    try:
        found = read_issuer(word)
    except PydanticCustomError:
        return
    assert found == word.strip()
    assert not set("?#%\\ ") & set(found)
    assert "@" not in found.split("/")[2]
