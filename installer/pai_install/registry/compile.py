"""A site -> its registries. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from pydantic import SecretStr

from pai_install.registry.identity import Identity
from pai_install.registry.model import (
    CACHE_HOST,
    STORE_HOST,
    WEBHOOK_HOST,
    Azure,
    Cache,
    Login,
    Registries,
    ServedNames,
    Upstream,
)
from pai_install.site import Site
from pai_install.site.console import console_of
from pai_install.site.monitoring import has_gossip
from pai_install.site.schedulers import scheduler_of
from pai_install.site.services.registries import CACHE_PORT, DOCKER_HUB, RegistrySection, UpstreamEntry

_NO_SECRET = SecretStr("")
# names in certificates, which have no address
EXPORTER_NAME = "node-exporter.pai.internal"
SCRAPER_NAME = "prometheus.pai.internal"
ALERTMANAGER_NAME = "alertmanager.pai.internal"
COLLECTOR_NAME = "log-collector.pai.internal"
# a service of the cluster
LOGS_NAME = "logs.pai-logs.svc"


def registries_of(site: Site, identity: Identity | None = None) -> Registries:
    """All registries of a site. Raises PaiError where a secret of the cache is unavailable here.

    identity: the cache's, which says where the cache is reached until all machines are at the site's port.
    """
    section = _section(site)
    upstreams = _upstreams(site, section)
    cache = _cache(site, section, upstreams, identity) if wants_cache(site) else None
    return Registries(cache, upstreams, section.air_gapped, tuple(_logins(site, section)))


def wants_cache(site: Site) -> bool:
    """Whether the cluster shall have a cache: where one is switched on and has an upstream to serve."""
    wanted = site.settings.enable_docker_cache
    return wanted and any(not upstream.mirror for upstream in _upstreams(site, _section(site)))


def served_names(site: Site) -> ServedNames:
    """Returns the names of the cache and the component store. The first control-plane node uses 127.0.0.1 for its
    store.

    Includes the name of Volcano's admission webhook if Volcano is the scheduler, those of a console without a
    certificate of the site's own, and those of monitoring and of the store of logs.
    """
    leader = site.control_planes[0].hostip
    port = cache_port(site) if wants_cache(site) else 0
    webhook = (WEBHOOK_HOST,) if scheduler_of(site) == "volcano" else ()
    console = console_of(site)
    named = console.names if console is not None and not console.certificate else ()
    exporter, scraper = ((EXPORTER_NAME,), (SCRAPER_NAME,)) if site.services.monitoring else ((), ())
    logs, collector = ((LOGS_NAME,), (COLLECTOR_NAME,)) if site.services.logs else ((), ())
    gossip = (ALERTMANAGER_NAME,) if has_gossip(site) else ()
    store = (STORE_HOST, leader, "127.0.0.1")
    return ServedNames((CACHE_HOST, leader), store, port, webhook, named, exporter, scraper, logs, collector, gossip)


def cache_port(site: Site) -> int:
    """The port at which the site wants the cache."""
    section = site.services.docker_cache
    return section.service_nodeport if section is not None else CACHE_PORT


def _section(site: Site) -> RegistrySection:
    return site.services.registry or RegistrySection()


def _upstreams(site: Site, section: RegistrySection) -> tuple[Upstream, ...]:
    """docker.io first: a request that names no upstream is Docker's, and means it."""
    named = {entry.name: entry for entry in section.upstreams}
    if site.settings.enable_docker_cache and DOCKER_HUB not in named:
        named[DOCKER_HUB] = UpstreamEntry(name=DOCKER_HUB)
    ordered = sorted(named.values(), key=lambda entry: entry.name != DOCKER_HUB)
    return tuple(_upstream(entry, _url(site, entry)) for entry in ordered)


def _upstream(entry: UpstreamEntry, url: str) -> Upstream:
    return Upstream(
        name=entry.name,
        url=url,
        username=entry.username or "",
        password=entry.password,
        ca=entry.ca_file or "",
        mirror=entry.mirror or "",
        mirror_username=entry.mirror_username or "",
        mirror_password=entry.mirror_password,
        mirror_ca=entry.mirror_ca_file or "",
    )


def _url(site: Site, entry: UpstreamEntry) -> str:
    """config.yaml rules for docker.io, as for everything that both files can say."""
    settings = site.settings
    if entry.name != DOCKER_HUB:
        return entry.url or f"https://{entry.name}"
    if entry.url and "docker_cache_remote_url" not in settings.model_fields_set:
        return entry.url
    return settings.docker_cache_remote_url


def _cache(site: Site, section: RegistrySection, upstreams: tuple[Upstream, ...], identity: Identity | None) -> Cache:
    ports, account = identity.ports if identity else (), _account(site, section)
    return Cache(
        host=CACHE_HOST if site.settings.hosts_entries else site.control_planes[0].hostip,
        port=identity.used_port if identity and ports else cache_port(site),
        ports=ports or (cache_port(site),),
        upstreams=tuple(upstream for upstream in upstreams if not upstream.mirror),
        folder=site.settings.docker_cache_fs_mount_path,
        azure=account if site.settings.docker_cache_storage_backend == "azure" else None,
        users=_users(site),
        keep_days=section.keep_days,
        size_limit=section.size_limit or 0,
        account=account,
    )


def _account(site: Site, section: RegistrySection) -> Azure | None:
    settings = site.settings
    if not settings.docker_cache_azure_account_name:
        return None
    return Azure(
        account=settings.docker_cache_azure_account_name,
        key=settings.docker_cache_azure_account_key or _NO_SECRET,
        container=settings.docker_cache_azure_container_name,
        endpoint=section.azure_endpoint or "",
    )


def _users(site: Site) -> tuple[str, ...]:
    secret = site.settings.cache_htpasswd
    return () if secret is None else tuple(base64.b64decode(secret.get_secret_value()).decode().split())


def _logins(site: Site, section: RegistrySection) -> Iterator[Login]:
    """Yields the credentials of config.yaml first. They override other credentials of the same registry."""
    settings = site.settings
    first = settings.docker_registry_domain if settings.docker_registry_username else ""
    if settings.docker_registry_username and settings.docker_registry_password:
        yield Login(first, settings.docker_registry_username, settings.docker_registry_password)
    for entry in section.logins:
        if entry.registry != first or entry.groups:
            yield Login(entry.registry, entry.username, entry.password, tuple(dict.fromkeys(entry.groups)))
