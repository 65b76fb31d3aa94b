"""Registries as values: sources of images, content of the cache, and credentials."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import SecretStr

CACHE_HOST = "docker-cache.pai.internal"
STORE_HOST = "registry.pai.internal"


# Volcano's, which makes none itself
WEBHOOK_HOST = "volcano-admission-service.pai-volcano.svc"


@dataclass(frozen=True, slots=True)
class ServedNames:
    """Names and addresses of the cache and the component store, for their certificates.

    port: desired port of the cache, 0 for no cache. webhook: names of the scheduler's admission webhook, empty if it
    needs no certificate of ours. console: the same for the console. exporter: names of the metrics of machines,
    scraper: of their client; empty without monitoring. alertmanager: of Alertmanagers, empty without gossip. logs:
    names of the store of logs, collector: of its clients; empty without a store.
    """

    cache: tuple[str, ...]
    store: tuple[str, ...]
    port: int = 0
    webhook: tuple[str, ...] = ()
    console: tuple[str, ...] = ()
    exporter: tuple[str, ...] = ()
    scraper: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    collector: tuple[str, ...] = ()
    alertmanager: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Upstream:
    """A registry in image names, such as "quay.io".

    ca, mirror_ca: PEM of authorities in addition to the system's, or "". mirror: URL of the site's own pull-through
    cache for it, or "". With a mirror, our cache does not serve this upstream.
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
    """Our cache. host, port: address for machines. ports: all served ports, including `port`.

    upstreams: never empty, docker.io first.
    folder: its content on the first control-plane node, if azure is None. account: Azure settings of the site, even if
    the content is in the folder. users: htpasswd lines, NAME:BCRYPT-HASH.
    keep_days: days without use, in Azure days after the pull. size_limit: bytes in the folder, 0 for a limit by free
    disk space.
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
    """An account at a registry (host or host:port). groups: only their pods use it. Empty: all machines use it."""

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
