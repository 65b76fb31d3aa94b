"""Which sites get the console, and what its section and OpenPAI's sections make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.site.console import SiteConsole, addresses, console_of, has_console
from pai_install.site.load import load_site, read_site
from pai_install.site.model import Site
from pai_install.site.rules.pending import pending
from tests.internet.authority import Authority
from tests.unit.site.sites import write_site

GROUPS = "authentication: {group-manager: {grouplist: [{groupname: nlp}]}}\n"
KUEUE = "scheduler: {type: kueue}\nvirtual-clusters: [{name: default, share: rest, groups: [nlp]}]\n"
BOTH = GROUPS + KUEUE


def site_of(folder: Path, services: str) -> Site:
    return load_site(write_site(folder, services=services)).site


def console(folder: Path, services: str) -> SiteConsole:
    found = console_of(site_of(folder, BOTH + services))
    assert found is not None
    return found


def codes(folder: Path, services: str) -> list[tuple[str, str, str]]:
    """Code, path, and severity of the problems of the console's sections."""
    found = read_site(write_site(folder, services=services)).problems
    theirs = ("console", "rest-server", "webportal", "pylon")
    return [(it.code, it.path, it.severity) for it in found if it.path.startswith(theirs)]


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


def test_half_a_certificate_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pai.crt").write_text(Authority("console", tmp_path).pem)
    missing = ("site.missing", "console.certificate", "error")
    assert codes(tmp_path, f"{BOTH}console: {{certificate: pai.crt}}\n") == [missing]
    key = tmp_path / "pai.key"
    key.write_text("key")
    key.chmod(0o600)
    assert codes(tmp_path, f"{BOTH}console: {{key: {{file: pai.key}}}}\n") == [("site.missing", "console.key", "error")]
    whole = f"{BOTH}console: {{certificate: pai.crt, key: {{file: pai.key}}}}\n"
    assert codes(tmp_path, whole) == []
    found = console_of(site_of(tmp_path, whole))
    assert found is not None
    assert found.certificate.startswith("-----BEGIN CERTIFICATE-----")


@pytest.mark.parametrize(
    ("services", "problem"),
    [
        ("console: {}\n", ("site.no-effect", "console", "warning")),
        (f"{BOTH}console: {{port: 80}}\n", ("site.port", "console.port", "error")),
        (f"{BOTH}console: {{web-port: 443}}\n", ("site.port", "console.web-port", "error")),
        (f"{BOTH}console: {{web-port: 9286, legacy-ports: true}}\n", ("site.port", "console.web-port", "error")),
        (
            f"{BOTH}rest-server: {{default-pai-admin-username: a, default-pai-admin-password: admin-password}}\n",
            ("site.public-secret", "rest-server.default-pai-admin-password", "warning"),
        ),
        (
            f"{BOTH}rest-server: {{default-pai-admin-username: a, default-pai-admin-password: Password1}}\n",
            ("site.public-secret", "rest-server.default-pai-admin-password", "warning"),
        ),
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
