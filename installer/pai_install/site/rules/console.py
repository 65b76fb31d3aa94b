"""Rules of the console: half a certificate, public passwords, and keys of OpenPAI with another meaning."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import SecretStr

from pai_install.documents.document import Document
from pai_install.site.console import console_of, has_console, link_of
from pai_install.site.model import Site
from pai_install.site.passwords import is_public
from pai_install.site.rules.problems import Wrong, add_problems
from pai_install.site.secret import MissingSecret
from pai_install.site.services.console import HTTP_PORT

# everyone reads them in OpenPAI's documentation
_PUBLIC_KEY = "pai-secret"
_PUBLIC = "is the public default of OpenPAI and is not used"
_GUESSED = "is a public password and is not used"


def check_console(source: Document, site: Site) -> None:
    """Adds problems of the console and of OpenPAI's sections with a meaning for it."""
    section = site.services.console
    if section is not None and section.enabled and not has_console(site):
        remedy = "add groups to authentication and a section scheduler, or write console: false"
        message = "has no effect without groups and a scheduler"
        source.add(("console",), "site.no-effect", message, remedy, severity="warning")
    if has_console(site):
        add_problems(source, (*_certificate(site), *_ports(site), *_public(site), *_undeployed(site), *_plugins(site)))


def _certificate(site: Site) -> Iterator[Wrong]:
    section = site.services.console
    if section is None or (section.certificate is None) == (section.key is None):
        return
    given, other = ("certificate", "key") if section.key is None else ("key", "certificate")
    yield Wrong(("console", given), "missing", f"needs {other}", f"add {other}, or remove {given}")


def _ports(site: Site) -> Iterator[Wrong]:
    section = site.services.console
    if section is not None and section.http and section.port == HTTP_PORT:
        yield Wrong(
            ("console", "port"), "port", "is the port of the redirect", "choose another port, or add http: false"
        )
    console = console_of(site)
    if console is not None and console.ports.count(console.web_port) > 1:
        yield Wrong(("console", "web-port"), "port", "is another port of the console", "choose another port")


def _public(site: Site) -> Iterator[Wrong]:
    """Passwords and keys of OpenPAI's documentation: no one signs in with them. Such a site stays valid otherwise."""
    rest = site.services.rest_server
    if rest is None:
        return
    if is_public(_value(rest.default_pai_admin_password)):
        remedy = "write a password of your own: {file: PATH}"
        yield Wrong(("rest-server", "default-pai-admin-password"), "public-secret", _GUESSED, remedy, "warning")
    if _value(rest.jwt_secret) == _PUBLIC_KEY:
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
