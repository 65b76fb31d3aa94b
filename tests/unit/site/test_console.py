"""Which sites get the console, and what its section and OpenPAI's sections make of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import DER_cert_to_PEM_cert

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from syrupy.assertion import SnapshotAssertion

from pai_install.documents.problem import Problem
from pai_install.registry.certificates import make_authority, make_serving
from pai_install.site.console import SiteConsole, addresses, console_of, has_console
from pai_install.site.load import load_site, read_site
from pai_install.site.model import Site
from pai_install.site.rules.pending import pending
from tests.unit.site.sites import CONFIG, write_site

GROUPS = "authentication: {group-manager: {grouplist: [{groupname: nlp}]}}\n"
KUEUE = "scheduler: {type: kueue}\nvirtual-clusters: [{name: default, share: rest, groups: [nlp]}]\n"
BOTH = GROUPS + KUEUE
WHOLE = f"{BOTH}console: {{names: [pai.example.org], certificate: pai.crt, key: {{file: pai.key}}}}\n"
NAMES = ("pai.example.org",)
CERTIFICATE = ("site.certificate", "console.key", True)
REDIRECT = "redirect of browsers to the console"


def site_of(folder: Path, services: str) -> Site:
    return load_site(write_site(folder, services=services)).site


def console(folder: Path, services: str) -> SiteConsole:
    found = console_of(site_of(folder, BOTH + services))
    assert found is not None
    return found


def problems(folder: Path, services: str) -> list[Problem]:
    """The problems of the console's sections."""
    found = read_site(write_site(folder, services=services)).problems
    return [it for it in found if it.path.startswith(("console", "rest-server", "webportal", "pylon"))]


def codes(folder: Path, services: str) -> list[tuple[str, str, str]]:
    """Code, path, and severity of these problems."""
    return [(it.code, it.path, it.severity) for it in problems(folder, services)]


@pytest.mark.parametrize(
    ("services", "wanted"),
    [
        (GROUPS, False),
        (BOTH, True),
        (f"{BOTH}console:\n", True),
        (f"{BOTH}console: true\n", True),
        (f"{BOTH}console: false\n", False),
        (f"{BOTH}console: 'false'\n", False),
        (f"{BOTH}console: {{enabled: false}}\n", False),
        ("console: true\n", False),
    ],
)
def test_sites_with_groups_and_a_scheduler_get_it(tmp_path: Path, services: str, wanted: bool) -> None:
    site = site_of(tmp_path, services)
    assert has_console(site) is wanted
    assert (console_of(site) is not None) is wanted
    assert bool(addresses(site)) is wanted


def test_without_a_section_it_has_its_defaults(tmp_path: Path) -> None:
    found, site = console(tmp_path, ""), site_of(tmp_path, BOTH)
    machine = site.control_planes[0]
    assert found.names == (machine.hostip, machine.hostname)
    assert (found.port, found.http_port, found.legacy, found.ports) == (443, 80, (), (443, 80, 8444))
    assert (found.certificate, found.key, found.language) == ("", None, "en")
    assert addresses(site) == (f"https://{machine.hostip}/",)


def test_the_name_of_a_control_plane_may_be_the_one_of_links(tmp_path: Path) -> None:
    assert addresses(site_of(tmp_path, f"{BOTH}console: {{names: [m1]}}\n")) == ("https://m1/",)


def test_all_keys(tmp_path: Path) -> None:
    services = (
        "console:\n  names: [pai.example.org, pai]\n  port: 8443\n  http: false\n  passwords: false\n"
        "  hide-users: true\n  legacy-ports: true\n  language: zh\n"
        "  sign-in: {session-hours: 12, idle-hours: 1, token-days: 30}\n"
        "  rates: {api-per-min: 60, list-per-min: 10, submit-per-hour: 100}\n"
    )
    found = console(tmp_path, services)
    assert found.names[:2] == ("pai.example.org", "pai")
    assert found.ports == (8443, 8444, 9186, 9286)
    assert (found.passwords, found.hide_users, found.language) == (False, True, "zh")
    assert found.sign_in.model_dump() == {"session_hours": 12, "idle_hours": 1, "token_days": 30}
    assert found.rates.model_dump() == {"api_per_min": 60, "list_per_min": 10, "submit_per_hour": 100}
    assert addresses(site_of(tmp_path, BOTH + services)) == ("https://pai.example.org:8443/",)


def test_openpais_sections_count_where_ours_says_nothing(tmp_path: Path) -> None:
    theirs = (
        "rest-server: {server-port: 19186, jwt-expire-time: 2d, rate-limit-api-per-min: 7,"
        " rate-limit-list-job-per-min: 8, rate-limit-submit-job-per-hour: 9}\n"
        "webportal: {server-port: 19286}\n"
        "pylon: {port: 8080, domain: pai.example.org, uri: 'https://other.example.org:8443/', ssl: {port: 8443}}\n"
    )
    found = console(tmp_path, f"{theirs}console: {{legacy-ports: true}}\n")
    assert found.ports == (8443, 8080, 8444, 19186, 19286)
    assert found.names[:2] == ("pai.example.org", "other.example.org")
    assert found.rates.model_dump() == {"api_per_min": 7, "list_per_min": 8, "submit_per_hour": 9}
    assert found.sign_in.session_hours == 48
    ours = "console: {port: 443, sign-in: {session-hours: 3}, rates: {api-per-min: 70}}\n"
    found = console(tmp_path, theirs + ours)
    assert (found.port, found.sign_in.session_hours) == (443, 3)
    assert found.rates.model_dump() == {"api_per_min": 70, "list_per_min": 8, "submit_per_hour": 9}


@pytest.mark.parametrize(
    ("life", "hours"), [("604800", 168), ("7d", 168), ("30d", 168), ("1h", 1), ("60", 1), ("never", 168)]
)
def test_openpais_life_of_tokens_is_limited(tmp_path: Path, life: str, hours: int) -> None:
    found = console(tmp_path, f"rest-server: {{jwt-expire-time: '{life}'}}\n")
    assert found.sign_in.session_hours == hours


def pair(names: Sequence[str] = NAMES, now: datetime | None = None) -> tuple[str, str]:
    """A certificate of an authority of its own, which is valid for a year, and its key."""
    begin = now or datetime.now(UTC)
    return make_serving(*make_authority("site", begin), names, begin)


def with_pair(folder: Path, certificate: str, key: str, more: str = "names: [pai.example.org]") -> list[Problem]:
    """The problems of a console with this certificate and this key."""
    (folder / "pai.crt").write_text(certificate)
    (folder / "pai.key").touch(mode=0o600)
    (folder / "pai.key").write_text(key)
    services = f"{BOTH}console: {{certificate: pai.crt, key: {{file: pai.key}}, {more}}}\n"
    return problems(folder, services)


def test_half_a_certificate_is_an_error(tmp_path: Path) -> None:
    assert with_pair(tmp_path, *pair()) == []
    missing = ("site.missing", "console.certificate", "error")
    assert codes(tmp_path, f"{BOTH}console: {{certificate: pai.crt}}\n") == [missing]
    assert codes(tmp_path, f"{BOTH}console: {{key: {{file: pai.key}}}}\n") == [("site.missing", "console.key", "error")]
    loaded = console_of(load_site(write_site(tmp_path, services=WHOLE)).site)
    assert loaded is not None
    assert loaded.certificate.startswith("-----BEGIN CERTIFICATE-----")


def test_a_key_that_the_pods_cannot_load_is_an_error(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    certificate, key = pair()
    private = load_pem_private_key(key.encode(), None)
    form = (Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    encrypted = private.private_bytes(*form).decode()
    keys = {"of another": pair()[1], "none": "key", "empty": "", "certificate": certificate, "encrypted": encrypted}
    wrong = {name: with_pair(tmp_path, certificate, text) for name, text in keys.items()}
    assert all((it.code, it.path, it.is_error) == CERTIFICATE for [it] in wrong.values())
    assert {name: f"{it.message}: {it.remedy}" for name, [it] in wrong.items()} == snapshot
    # openssl ecparam writes parameters before the key, and a server takes the first certificate of a chain
    parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    other = pair()[0]
    assert with_pair(tmp_path, certificate + other, parameters + key) == []
    [order] = with_pair(tmp_path, other + certificate, key)
    assert order == wrong["of another"][0]


def test_what_openssl_refuses_is_an_error(tmp_path: Path) -> None:
    """A short RSA key, and on the other side a version of X.509 that only OpenSSL takes."""
    private = generate_private_key(65537, 1024)  # noqa: S505
    begin, name = datetime.now(UTC), x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "a")])
    names = x509.SubjectAlternativeName([x509.DNSName(NAMES[0])])
    builder = x509.CertificateBuilder(name, name, private.public_key(), 1, begin, begin + timedelta(days=9))
    signed = builder.add_extension(names, critical=False).sign(private, SHA256())
    key = private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    [short] = with_pair(tmp_path, signed.public_bytes(Encoding.PEM).decode(), key)
    assert (short.code, short.path, short.is_error) == CERTIFICATE
    assert short.message == "has 1024 bits, and TLS needs 2048"
    der = signed.public_bytes(Encoding.DER).replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x05")
    [malformed] = with_pair(tmp_path, DER_cert_to_PEM_cert(der), key)
    assert (malformed.path, malformed.message) == ("console.certificate", "is malformed")


def test_a_key_that_is_not_there_now_is_no_error(tmp_path: Path) -> None:
    with_pair(tmp_path, *pair())
    (tmp_path / "pai.key").unlink()
    assert codes(tmp_path, WHOLE) == [("site.secret-missing", "console.key", "warning")]


@pytest.mark.parametrize("days", [-400, 30])
def test_a_certificate_that_is_not_valid_now_is_a_warning(tmp_path: Path, days: int) -> None:
    now = datetime.now(UTC) + timedelta(days=days)
    [problem] = with_pair(tmp_path, *pair(now=now))
    assert (problem.code, problem.path, problem.severity) == (
        "site.certificate-time",
        "console.certificate",
        "warning",
    )
    assert (
        problem.message == f"is valid from {now - timedelta(days=1):%F} to {now + timedelta(days=397):%F}, and not now"
    )


@pytest.mark.parametrize(
    ("covered", "more", "missing"),
    [
        (["*.example.org"], "names: [pai.example.org]", ""),
        (["PAI.example.org", "pai"], "names: [pai.example.org, pai]", ""),
        (["*.org"], "names: [pai.example.org]", "pai.example.org"),
        (["example.org"], "names: [pai.example.org, example.org]", "pai.example.org"),
        (["pai.example.org"], "names: [pai.example.org, pai, lab]", "pai, lab"),
        (["10.0.0.1"], "port: 443", ""),
        (["pai.example.org"], "port: 443", "10.0.0.1"),
        (["*.0.0.1"], "port: 443", "10.0.0.1"),
        (["10.0.0.1", "pai.example.org"], "names: [pai.example.org]", ""),
    ],
)
def test_names_that_a_certificate_does_not_cover_are_a_warning(
    tmp_path: Path, covered: list[str], more: str, missing: str
) -> None:
    found = with_pair(tmp_path, *pair(covered), more)
    message = f"does not cover {missing}: browsers and clients refuse it there"
    wanted = [("site.certificate-names", "console.certificate", "warning", message)] if missing else []
    assert [(it.code, it.path, it.severity, it.message) for it in found] == wanted


@pytest.mark.parametrize(
    ("services", "path", "message"),
    [
        ("console: {port: 8443}\npylon: {port: 8443}\n", "console.port", f"8443 is already in use: {REDIRECT}"),
        ("console: {port: 80}\n", "console.port", f"80 is already in use: {REDIRECT}"),
        ("pylon: {ssl: {port: 80}}\n", "pylon.ssl.port", f"80 is already in use: {REDIRECT}"),
        ("pylon: {port: 8444}\n", "pylon.port", "8444 is already in use: web pages of jobs"),
        ("console: {port: 9186, legacy-ports: true}\n", "console.port", "9186 is already in use: OpenPAI's API"),
        (
            "console: {legacy-ports: true}\nrest-server: {server-port: 443}\n",
            "rest-server.server-port",
            "443 is already in use: console",
        ),
        (
            "console: {legacy-ports: true}\nwebportal: {server-port: 9186}\n",
            "webportal.server-port",
            "9186 is already in use: OpenPAI's API",
        ),
        ("console: {web-port: 443}\n", "console.web-port", "443 is already in use: console"),
        ("console: {port: 6443}\n", "console.port", "6443 is already in use: Kubernetes API"),
        ("console: {web-port: 5080}\n", "console.web-port", "5080 is already in use: component store"),
        ("console: {port: 9091}\nmonitoring: true\n", "console.port", "9091 is already in use: Prometheus"),
    ],
)
def test_a_port_of_two_programs_is_an_error(tmp_path: Path, services: str, path: str, message: str) -> None:
    [problem] = problems(tmp_path, BOTH + services)
    assert (problem.code, problem.path, problem.message) == ("site.port", path, message)
    assert problem.remedy.startswith("choose another port")
    assert ("http: false" in problem.remedy) is (REDIRECT in message or path == "pylon.port")
    line = problem.path.partition(".")[0]
    assert (BOTH + services).splitlines()[problem.line - 1].startswith(line)


@pytest.mark.parametrize(
    "services",
    [
        "console: {port: 80}\npylon: {port: 8080}\n",
        "console: {port: 80, http: false}\n",
        "console: {port: 9186}\n",
        "console: {port: 8444, web-port: 8443}\n",
        "console: {port: 9091}\n",
    ],
)
def test_ports_that_another_program_leaves_are_no_problem(tmp_path: Path, services: str) -> None:
    assert codes(tmp_path, BOTH + services) == []


def test_the_port_of_web_pages_is_free_without_them(tmp_path: Path) -> None:
    config = f"{CONFIG}group_isolation: false\n"
    site = write_site(tmp_path, config=config, services=f"{BOTH}console: {{port: 8444}}\n")
    assert not [it for it in read_site(site).problems if it.is_error]


ADMINS = BOTH.replace("{grouplist", "{admin-group: {groupname: admins}, grouplist")


@pytest.mark.parametrize(
    ("name", "password", "code", "why"),
    [
        *((name, name, "weak-secret", "fewer than 8 characters") for name in ("admin", "root", "a")),
        *(("admin", word, "weak-secret", "fewer than 8 characters") for word in ("123456", "pai", "admin1")),
        ("admin", "x" * 257, "weak-secret", "more than 256 characters"),
        ("Team_A.user", "Team_A.user", "weak-secret", "is the name of the user"),
        ("admin", "admin-password", "public-secret", "is a public default"),
        ("admin", "Password1", "public-secret", "is a public default"),
    ],
)
def test_a_refused_first_password_is_a_warning(tmp_path: Path, name: str, password: str, code: str, why: str) -> None:
    login = f"  default-pai-admin-username: '{name}'\n  default-pai-admin-password: '{password}'\n"
    services = f"{ADMINS}rest-server:\n{login}"
    [problem] = problems(tmp_path, services)
    assert (problem.code, problem.severity) == (f"site.{code}", "warning")
    assert problem.path == "rest-server.default-pai-admin-password"
    assert problem.line == len(services.splitlines())
    assert why in problem.message
    assert problem.message.endswith("and is not used")


def test_an_empty_file_is_no_first_password(tmp_path: Path) -> None:
    (tmp_path / "word").touch(mode=0o600)
    login = "{default-pai-admin-username: admin, default-pai-admin-password: {file: word}}"
    assert codes(tmp_path, f"{ADMINS}rest-server: {login}\n") == [
        ("site.weak-secret", "rest-server.default-pai-admin-password", "warning")
    ]


@pytest.mark.parametrize(
    ("groups", "name", "code", "remedy"),
    [
        (ADMINS, "a b!", "site.user-name", "write a-b"),
        (ADMINS, "!", "site.user-name", "choose another name"),
        (BOTH, "admin", "site.no-effect", "add admin-group to authentication.group-manager"),
    ],
)
def test_a_first_administrator_who_is_not_made_is_a_warning(
    tmp_path: Path, groups: str, name: str, code: str, remedy: str
) -> None:
    login = f"{{default-pai-admin-username: '{name}', default-pai-admin-password: a password}}"
    [problem] = problems(tmp_path, f"{groups}rest-server: {login}\n")
    assert (problem.code, problem.path) == (code, "rest-server.default-pai-admin-username")
    assert (problem.severity, problem.remedy) == ("warning", remedy)


@pytest.mark.parametrize(
    ("services", "problem"),
    [
        ("console: {}\n", ("site.no-effect", "console", "warning")),
        (f"{BOTH}console: {{web-port: 9286, legacy-ports: true}}\n", ("site.port", "console.web-port", "error")),
        (
            f"{BOTH}rest-server: {{jwt-secret: pai-secret}}\n",
            ("site.public-secret", "rest-server.jwt-secret", "warning"),
        ),
        (f"{BOTH}pylon: {{deploy-service: false}}\n", ("site.no-effect", "pylon.deploy-service", "warning")),
        (f"{BOTH}console: {{names: ['not a name']}}\n", ("site.hostname", "console.names[0]", "error")),
        (
            f"{BOTH}console: {{sign-in: {{session-hours: 200}}}}\n",
            ("site.range", "console.sign-in.session-hours", "error"),
        ),
    ],
)
def test_problems(tmp_path: Path, services: str, problem: tuple[str, str, str]) -> None:
    assert problem in codes(tmp_path, services)


@pytest.mark.parametrize("services", [GROUPS, f"{BOTH}console: false\npylon: {{deploy-service: false}}\n", BOTH])
def test_no_problems(tmp_path: Path, services: str) -> None:
    assert codes(tmp_path, services) == []


PAGE = "{title: Wiki, uri: 'https://wiki.example.org/pai?a=1#b'}"


def test_pages_of_plugins_are_links_of_the_menu(tmp_path: Path) -> None:
    services = f"webportal: {{plugins: [{PAGE}]}}\n"
    assert console(tmp_path, services).links == (("Wiki", "https://wiki.example.org/pai?a=1#b"),)
    assert codes(tmp_path, BOTH + services) == []


@pytest.mark.parametrize(
    "plugin",
    [
        "{title: A, uri: /scripts/plugins/marketplace.bundle.js}",
        "{title: A, uri: 'https://a.example.org/plugin.JS'}",
        "{title: A, uri: 'https://a.example.org/plugin.mjs?v=2'}",
        "{title: A, uri: 'javascript:alert(1)'}",
        "{title: A, uri: 'data:text/html,x'}",
        "{title: A, uri: '//a.example.org/'}",
        "{title: A, uri: 'HTTPS://a.example.org/'}",
        "{title: A, uri: 'https://a.example.org/a b'}",
        "{title: A, uri: 'https:///path'}",
        "{title: A, uri: 'https://pai.example.org@evil.example.org/'}",
        "{title: A, uri: 'https://[::1/'}",
        "{uri: 'https://a.example.org/'}",
        "{title: A}",
    ],
)
def test_scripts_of_plugins_are_no_links(tmp_path: Path, plugin: str) -> None:
    services = f"webportal: {{plugins: [{PAGE}, {plugin}]}}\n"
    assert [title for title, _ in console(tmp_path, services).links] == ["Wiki"]
    assert codes(tmp_path, BOTH + services) == [("site.no-effect", "webportal.plugins[1]", "warning")]


def test_keys_without_effect_are_said_with_their_section(tmp_path: Path) -> None:
    theirs = "rest-server: {jwt-secret: x1y2, sql-max-connection: 3}\nwebportal: {enable-job-transfer: true}\n"
    said = "\n".join(pending(site_of(tmp_path, BOTH + theirs + "pylon: {ssl: {crt_path: /x.crt}}\n")))
    for key in ("rest-server.jwt-secret", "rest-server.sql-max-connection", "webportal.enable-job-transfer"):
        assert key in said
    assert "write the files of pylon.ssl as `certificate` and `key`" in said
    assert "(pylon.ssl.crt_path)" in said
    pages = (
        "webportal: {save-template: true, marketplace: true, plugins: [{id: a, title: A, uri: 'https://a.example'}]}\n"
    )
    said = "\n".join(pending(site_of(tmp_path, BOTH + pages)))
    assert "templates take the place of the marketplace" in said
    assert "in this version" not in said
    assert "rest-server" in "\n".join(pending(site_of(tmp_path, theirs))), "no console: none of it has an effect"
