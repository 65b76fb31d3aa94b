"""Values of the add-on console: settings, certificate, account, and ports of the web server. Pure."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from pai_install.parts.context import Context
from pai_install.parts.logs import has_logs
from pai_install.parts.monitoring import has_monitoring
from pai_install.parts.part import Port
from pai_install.ports import ALERTMANAGER_PORT, API_PROXY_PORT, CONSOLE_METRICS_PORT, LOG_STORE_PORT, PROMETHEUS_PORT
from pai_install.registry.identity import Identity, Serving
from pai_install.site import Site
from pai_install.site.console import SiteConsole, console_of
from pai_install.site.directory import Directory, directory_of
from pai_install.site.groups import administrates, groups_of
from pai_install.site.schedulers import scheduler_of
from pai_install.site.secret import MissingSecret
from pai_install.users.changes import UserGroup
from pai_install.users.console_rights import console_objects
from pai_install.users.first_administrator import FirstAdministrator, first_administrator

_SECRETS, _SETTINGS, _ACCOUNT = "/run/console", "/etc/console", "/run/account"
_PROGRAM = "python3"


def console_values(context: Context) -> dict[str, Any]:
    """Returns the values of the add-on's templates.

    settings: of the program. secrets: files, certificate and key among them. version: what pods replace themselves for.
    objects: namespace, account, and rights. passwords: of the first administrator.
    """
    site, console = context.site, console_of(context.site)
    if console is None:
        raise ValueError("the site wants no console")
    directory = directory_of(site.services)
    secrets = _secrets(console, context.identity, directory)
    spaces = [group.namespace for group in groups_of(site.services)]
    first = _first_administrator(site, context.identity)
    own = console_objects(scheduler_of(site), spaces, context.components.kubernetes_version)
    return {
        "objects": [*own, *(first.objects if first else ())],
        "passwords": [first.secret] if first else [],
        "settings": _settings(site, console, directory, context.image("busybox")),
        "authority": directory.authority if directory else "",
        "secrets": {"secret_data": secrets},
        "port": console.port,
        "http_port": console.http_port,
        "web_port": console.web_port,
        "legacy": list(console.legacy),
        # A changed secret changes this value, so the pods restart and read the new one.
        "version": _digest(secrets),
    }


def _first_administrator(site: Site, identity: Identity | None) -> FirstAdministrator | None:
    """The user of OpenPAI's keys, once the site has an identity with a secret of its own."""
    rest = site.services.rest_server
    if identity is None or rest is None or not rest.default_pai_admin_username:
        return None
    password = rest.default_pai_admin_password
    if password is None or isinstance(password, MissingSecret):
        return None
    groups = [UserGroup(one.name, one.namespace, administrates(one)) for one in groups_of(site.services)]
    name, salt = rest.default_pai_admin_username, identity.salt.get_secret_value()
    return first_administrator(name, password.get_secret_value(), groups, salt)


def console_ports(site: Site) -> tuple[Port, ...]:
    """The ports of the web server on every control plane."""
    console = console_of(site)
    purposes = {}
    if console is not None:
        purposes = {console.http_port: "redirect of browsers to the console", console.web_port: "web pages of jobs"}
    ports = console.ports if console else ()
    own = [CONSOLE_METRICS_PORT] if console is not None and has_monitoring(site) else []
    return (
        *(Port(port, purposes.get(port, "console"), (_PROGRAM,), clients="machines") for port in ports),
        *(Port(port, "metrics of the console", (_PROGRAM,), clients="itself") for port in own),
    )


def _settings(site: Site, console: SiteConsole, directory: Directory | None, image: str) -> dict[str, Any]:
    """The settings as `pai_install.console.settings` reads them. Defaults of that program are not repeated."""
    found: dict[str, Any] = {
        "names": list(console.names),
        "port": console.port,
        "http_port": console.http_port or None,
        "certificate": f"{_SECRETS}/tls.crt",
        "key": f"{_SECRETS}/tls.key",
        "signing_key": f"{_SECRETS}/signing.key",
        # The machine's own proxy asks any control plane that answers, so one that is down does not matter.
        "api_server": f"https://127.0.0.1:{API_PROXY_PORT}",
        "api_authority": f"{_ACCOUNT}/ca.crt",
        "api_token": f"{_ACCOUNT}/token",
        "sign_in": {
            "passwords": console.passwords,
            "hide_users": console.hide_users,
            **console.sign_in.model_dump(),
        },
        "rates": console.rates.model_dump(),
        "language": console.language,
    }
    found["code"] = {"image": image, "network": str(site.settings.pod_cidr)}
    if console.web_port:
        found["web_pages"] = {"port": console.web_port, "network": str(site.settings.pod_cidr)}
    if console.links:
        found["links"] = [{"title": title, "address": address} for title, address in console.links]
    if console.legacy:
        found["legacy_ports"] = dict(zip(("rest_server", "webportal"), console.legacy, strict=True))
    if has_monitoring(site):
        found["metrics_port"] = CONSOLE_METRICS_PORT
        found["monitoring"] = {
            "prometheus": f"http://127.0.0.1:{PROMETHEUS_PORT}",
            "alertmanager": f"http://127.0.0.1:{ALERTMANAGER_PORT}",
        }
    if has_logs(site):
        found["logs"] = f"http://127.0.0.1:{LOG_STORE_PORT}"
    if directory is not None:
        found["oidc"] = _oidc(directory)
    return found


def _oidc(directory: Directory) -> dict[str, Any]:
    return {
        "issuer": directory.issuer,
        "client_id": directory.client,
        "client_secret": f"{_SECRETS}/client-secret" if directory.client_secret else None,
        "authority": f"{_SETTINGS}/issuer.crt" if directory.authority else None,
        "username_claim": directory.username,
        "groups_claim": directory.groups,
    }


def _secrets(console: SiteConsole, identity: Identity | None, directory: Directory | None) -> dict[str, str]:
    """File -> content. Empty certificates before the site has an identity, as `plan` on a new site."""
    serving = identity.console if identity else None
    own = console.certificate and console.key
    return {
        "tls.crt": console.certificate if own else serving.certificate if serving else "",
        "tls.key": console.key.get_secret_value() if own and console.key else _private(serving),
        "signing.key": _signing_key(identity),
        **(
            {"client-secret": directory.client_secret.get_secret_value()}
            if directory and directory.client_secret
            else {}
        ),
    }


def _private(serving: Serving | None) -> str:
    return serving.key.get_secret_value() if serving else ""


def _signing_key(identity: Identity | None) -> str:
    """The key of tokens and of addresses of logs. It is the same as long as the site has its identity."""
    salt = identity.salt.get_secret_value() if identity else ""
    return hmac.new(salt.encode(), b"console signing key", "sha256").hexdigest()


def _digest(secrets: dict[str, str]) -> str:
    """Of all secrets, with the signing key so that no one guesses a secret by it: pods read them at their start."""
    text = "\0".join(f"{name}\0{content}" for name, content in sorted(secrets.items()))
    return hmac.new(secrets["signing.key"].encode(), text.encode(), hashlib.sha256).hexdigest()[:16]
