"""Rules of the console: certificate, ports, first administrator, and keys of OpenPAI with another meaning."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from pydantic import SecretStr

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath
from pai_install.site.certificate import key_problem, served_certificate
from pai_install.site.console import console_of, has_console, link_of, own_names
from pai_install.site.groups import administrates, groups_of
from pai_install.site.model import Site
from pai_install.site.passwords import first_password_problem, is_public
from pai_install.site.rules.ports import cluster_ports
from pai_install.site.rules.problems import Wrong, add_problems
from pai_install.site.secret import MissingSecret
from pai_install.site.services.openpai import RestServer
from pai_install.site.user_names import near_name, user_name, why_no_name

# everyone reads them in OpenPAI's documentation
_PUBLIC_KEY = "pai-secret"
_REDIRECT = "redirect of browsers to the console"
_PUBLIC = "is the public default of OpenPAI and is not used"


def check_console(source: Document, site: Site) -> None:
    """Adds problems of the console and of OpenPAI's sections with a meaning for it."""
    section = site.services.console
    if section is not None and section.enabled and not has_console(site):
        remedy = "add groups to authentication and a section scheduler, or write console: false"
        message = "has no effect without groups and a scheduler"
        source.add(("console",), "site.no-effect", message, remedy, severity="warning")
    if has_console(site):
        rules = (_certificate, _first_administrator, _public_key, _undeployed, _plugins)
        add_problems(source, (*(found for rule in rules for found in rule(site)), *_ports(source, site)))


def _certificate(site: Site) -> Iterator[Wrong]:
    section = site.services.console
    certificate, key = (section.certificate, section.key) if section is not None else (None, None)
    if certificate is not None and key is not None:
        yield from _pair(site, certificate, key)
    elif certificate is not None or key is not None:
        given, other = ("certificate", "key") if key is None else ("key", "certificate")
        yield Wrong(("console", given), "missing", f"needs {other}", f"add {other}, or remove {given}")


def _pair(site: Site, certificate: str, key: SecretStr) -> Iterator[Wrong]:
    """An error where the pods could not start, and a warning where clients refuse the certificate."""
    try:
        found = served_certificate(certificate)
    except ValueError:
        yield Wrong(("console", "certificate"), "certificate", "is malformed", "get another certificate")
        return
    wrong = None if isinstance(key, MissingSecret) else key_problem(certificate, key.get_secret_value())
    if wrong is not None:
        yield Wrong(("console", "key"), "certificate", *wrong)
    if not found.begin <= datetime.now(UTC) <= found.end:
        message = f"is valid from {found.begin:%Y-%m-%d} to {found.end:%Y-%m-%d}, and not now"
        yield Wrong(("console", "certificate"), "certificate-time", message, "get a new certificate", "warning")
    hosts = own_names(site) or tuple(machine.hostip for machine in site.control_planes)
    if uncovered := [host for host in hosts if not found.covers(host)]:
        message = f"does not cover {', '.join(uncovered)}: browsers and clients refuse it there"
        remedy = "write the names of the certificate into console.names, or get a certificate for these names"
        yield Wrong(("console", "certificate"), "certificate-names", message, remedy, "warning")


def _ports(source: Document, site: Site) -> Iterator[Wrong]:
    """Of two equal ports the one that the site wrote is wrong, and a key of OpenPAI before one of the console."""
    console = console_of(site)
    if console is None:
        return
    api, pages = console.legacy or (0, 0)
    uses: tuple[tuple[int, str, tuple[YamlPath, ...]], ...] = (
        (console.port, "console", (("console", "port"), ("pylon", "ssl", "port"))),
        (console.http_port, _REDIRECT, (("pylon", "port"),)),
        (console.web_port, "web pages of jobs", (("console", "web-port"),)),
        (api, "OpenPAI's API", (("rest-server", "server-port"),)),
        (pages, "OpenPAI's pages", (("webportal", "server-port"),)),
    )
    placed = [(port, use, next((it for it in paths if it in source.marks), ()), paths[0]) for port, use, paths in uses]
    taken = cluster_ports(site)
    for port, use, written, default in sorted(placed, key=lambda it: (bool(it[2]), it[2][:1] == ("console",))):
        if port in taken:
            remedy = (
                "choose another port, or add http: false" if _REDIRECT in (use, taken[port]) else "choose another port"
            )
            yield Wrong(written or default, "port", f"{port} is already in use: {taken[port]}", remedy)
        elif port:
            taken[port] = use


def _first_administrator(site: Site) -> Iterator[Wrong]:
    """Why `apply` makes no such user. Such a site stays valid: OpenPAI's own examples have public passwords."""
    rest = site.services.rest_server or RestServer()
    user = user_name(rest.default_pai_admin_username or "")
    if user and (why := why_no_name(user)):
        near = near_name(user)
        remedy = f"write {near}" if near else "choose another name"
        yield Wrong(
            ("rest-server", "default-pai-admin-username"),
            "user-name",
            f"{why}, so there is no such user",
            remedy,
            "warning",
        )
    elif user and not any(administrates(group) for group in groups_of(site.services)):
        message = "has no effect without a group of administrators"
        remedy = "add admin-group to authentication.group-manager"
        yield Wrong(("rest-server", "default-pai-admin-username"), "no-effect", message, remedy, "warning")
    secret = rest.default_pai_admin_password
    if secret is None or isinstance(secret, MissingSecret):
        return
    password = secret.get_secret_value()
    if why := first_password_problem(user, password):
        code = "public-secret" if is_public(password) else "weak-secret"
        remedy = "write a password of your own: {file: PATH}"
        path = ("rest-server", "default-pai-admin-password")
        yield Wrong(path, code, f"{why} and is not used", remedy, "warning")


def _public_key(site: Site) -> Iterator[Wrong]:
    rest = site.services.rest_server
    if rest is not None and _value(rest.jwt_secret) == _PUBLIC_KEY:
        remedy = "remove it: the console has keys of its own"
        yield Wrong(("rest-server", "jwt-secret"), "public-secret", _PUBLIC, remedy, "warning")


def _value(secret: SecretStr | None) -> str:
    return "" if secret is None or isinstance(secret, MissingSecret) else secret.get_secret_value()


def _undeployed(site: Site) -> Iterator[Wrong]:
    pylon = site.services.pylon
    if pylon is not None and pylon.deploy_service is False and site.services.console is None:
        message, remedy = "does not remove the console", "write console: false, or a section console"
        yield Wrong(("pylon", "deploy-service"), "no-effect", message, remedy, "warning")


def _plugins(site: Site) -> Iterator[Wrong]:
    """OpenPAI's pages run the script of a plugin, and pages of the console run none."""
    portal = site.services.webportal
    for number, plugin in enumerate(portal.plugins if portal is not None else ()):
        if link_of(plugin) is None:
            message, remedy = "is no page to link to", "write a title and the https address of a page, or remove it"
            yield Wrong(("webportal", "plugins", number), "no-effect", message, remedy, "warning")
