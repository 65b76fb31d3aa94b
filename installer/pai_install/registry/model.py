"""Registries as values: where images come from, what the cache keeps, and who is logged in where."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import SecretStr

CACHE_HOST = "docker-cache.pai.internal"
STORE_HOST = "registry.pai.internal"


# Volcano's, which makes none itself
WEBHOOK_HOST = "volcano-admission-service.pai-volcano.svc"


@dataclass(frozen=True, slots=True)
class ServedNames:
    """What machines ask the cache and the component store by: names and addresses that certificates are made for.

    port: the one at which the site wants the cache, 0 for no cache. webhook: what the API server asks the scheduler's
    admission by; none where the site has none of ours to make a certificate for.
    """

    cache: tuple[str, ...]
    store: tuple[str, ...]
    port: int = 0
    webhook: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Upstream:
    """A registry that images are named after, e.g. "quay.io".

    ca, mirror_ca: PEM of whom to trust beside the system's authorities, or "". mirror: URL of the site's own
    pull-through cache for it, or ""; where there is one, ours does not serve this upstream.
    """

    name: str
    url: str
    username: str = ""
    password: SecretStr | None = None
    ca: str = ""
    mirror: str = ""
    mirror_username: str = ""
    mirror_password: SecretStr | None = None
    mirror_ca: str = ""


@dataclass(frozen=True, slots=True)
class Azure:
    """A container in an Azure storage account. endpoint: URL of another blob service, or ""."""

    account: str
    key: SecretStr
    container: str
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class Cache:
    """Our cache. host, port: what machines reach it by. ports: where it answers, that one among them.

    upstreams: those it serves, never empty; docker.io first.
    folder: its content on the first control plane, where azure is None. account: what the site's files say of Azure,
    also where the content is in the folder. users: htpasswd lines, NAME:BCRYPT-HASH.
    keep_days: without use; in Azure: after content was fetched. size_limit: bytes in the folder, 0 for as many as leave
    its disk some room.
    """

    host: str
    port: int
    upstreams: tuple[Upstream, ...]
    folder: str
    azure: Azure | None
    users: tuple[str, ...]
    keep_days: int
    size_limit: int
    ports: tuple[int, ...]
    account: Azure | None = None

    @property
    def authenticated(self) -> bool:
        """Whether it asks for a login."""
        return bool(self.users)

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Its address with the scheme."""
        return f"https://{self.address}"


@dataclass(frozen=True, slots=True)
class Login:
    """An account at a registry (host or host:port). groups: whose pods alone pull with it; none: all machines do."""

    registry: str
    username: str
    password: SecretStr
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registries:
    """All of a site. air_gapped: machines never ask an upstream themselves."""

    cache: Cache | None
    upstreams: tuple[Upstream, ...]
    air_gapped: bool
    logins: tuple[Login, ...]

    @property
    def of_machines(self) -> tuple[Login, ...]:
        """The accounts that all machines pull with, for every pod."""
        return tuple(login for login in self.logins if not login.groups)
