"""The settings of the console: one JSON file, which the add-on mounts."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pai_install.errors import ExitCode, PaiError


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RateLimits(_Section):
    """Requests of one caller."""

    api_per_min: int = Field(default=600, ge=1)
    list_per_min: int = Field(default=120, ge=1)
    submit_per_hour: int = Field(default=3600, ge=1)


class SignInSettings(_Section):
    """Sign-in of people. passwords: whether users of the cluster have passwords. hide_users: an unknown user and a
    wrong password have the same error.
    """

    passwords: bool = True
    hide_users: bool = False
    session_hours: int = Field(default=168, ge=1, le=168)
    idle_hours: int = Field(default=8, ge=1, le=168)
    token_days: int = Field(default=90, ge=1, le=365)


class OidcSettings(_Section):
    """Client of an identity provider. client_secret, authority: files, or None."""

    issuer: str
    client_id: str
    client_secret: Path | None = None
    authority: Path | None = None
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    username_claim: str = "preferred_username"
    groups_claim: str = "groups"


class LegacyPorts(_Section):
    """Ports of OpenPAI's services without pylon."""

    rest_server: int = 9186
    webportal: int = 9286


class MonitoringSettings(_Section):
    """Addresses of Prometheus and Alertmanager on this machine."""

    prometheus: str
    alertmanager: str


class WebPagesSettings(_Section):
    """Web pages of jobs, such as notebooks. port: another one than that of the console. network: of all pods."""

    port: int = 8444
    network: str


class CodeSettings(_Section):
    """Code above 1 MiB. image: of the pod that receives it. network: of all pods."""

    image: str
    network: IPv4Network


class MenuLink(_Section):
    """A page of others in the menu."""

    title: str
    address: str = Field(pattern=r"^https?://[^/@]+(/|\?|#|$)")


class ConsoleSettings(_Section):
    """All settings.

    names: host names and addresses of the console, the first one for links. http_port: it redirects browsers. None: it
    is closed. metrics_port: numbers for Prometheus on the loopback. None: it is closed. signing_key: a file with random
    bytes that signs tokens and addresses of logs. certificate, key: PEM files. None: plain HTTP, for tests. api_server:
    address of the Kubernetes API. api_authority, api_token: files. logs: address of the store of logs on this machine.
    workers: threads for requests.
    """

    names: tuple[str, ...] = Field(min_length=1)
    host: str = "0.0.0.0"  # noqa: S104 - the pod serves the network of its node
    port: int = 443
    metrics_port: int | None = None
    http_port: int | None = 80
    legacy_ports: LegacyPorts | None = None
    certificate: Path | None = None
    key: Path | None = None
    signing_key: Path
    api_server: str
    api_authority: Path
    api_token: Path
    namespace: str = "pai-console"
    oidc: OidcSettings | None = None
    monitoring: MonitoringSettings | None = None
    logs: str | None = None
    web_pages: WebPagesSettings | None = None
    code: CodeSettings | None = None
    sign_in: SignInSettings = SignInSettings()
    rates: RateLimits = RateLimits()
    language: str = "en"
    links: tuple[MenuLink, ...] = ()
    workers: int = Field(default=40, ge=4, le=400)


def read_settings(path: Path) -> ConsoleSettings:
    """The settings in a file. Raises PaiError."""
    try:
        return ConsoleSettings.model_validate_json(path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except ValidationError as error:
        # without the values: one of them may be a secret
        found = "\n".join(f"{'.'.join(map(str, one['loc'])) or 'file'}: {one['msg']}" for one in error.errors())
        raise _unreadable(path, found) from error


def _unreadable(path: Path, why: str) -> PaiError:
    return PaiError(
        f"cannot read settings of the console: {path}",
        code="console-settings-invalid",
        details=why,
        remedy="run pai-install apply",
        exit_code=ExitCode.USAGE,
    )
