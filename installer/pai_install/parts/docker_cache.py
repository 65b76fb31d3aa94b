"""The Docker cache's configuration on the first control-plane node. The add-on of the same name runs the cache."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pai_install.parts.container_runtime import proxy_of
from pai_install.parts.context import Context
from pai_install.parts.part import Part, Port, RoleVariables, Space, is_leader
from pai_install.parts.registry_checks import RegistryCheck, registry_checks
from pai_install.registry.compile import registries_of, wants_cache
from pai_install.registry.content import content_of, place_of
from pai_install.registry.identity import Identity
from pai_install.registry.model import Cache, Upstream
from pai_install.site import Machine, Site

FRONT_PORT = 5000
FIRST_PORT = 5001
FIRST_DEBUG_PORT = 6001
# Raise it when the role writes another configuration of the registries for the same settings: they read it at start.
FORM = 1
_LEAST_GIB = 10
_ENOUGH_GIB = 200


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class CachedRegistry(_Value):
    """One cached registry. port, debug_port: of its process, on the pod's loopback."""

    name: str
    remote: str
    username: str
    password: str
    ca: str
    port: int
    debug_port: int


class CacheUser(_Value):
    """An account of the admin's."""

    name: str
    password_hash: str


class MachineAccount(_Value):
    """An account of the machines."""

    name: str
    password: str
    generation: int


class DockerCacheVariables(RoleVariables):
    """Configuration of the pod.

    azure: account, access_key, container, endpoint, empty for the folder. private_key: with the certificate chain
    before it. places: setting of the site -> FILE:LINE:COLUMN. move: source, target, and keep_hours while the content
    is copied.
    """

    role = "docker_cache"
    port: int = FRONT_PORT
    folder: str = "/var/lib/registry"
    azure: dict[str, str] = Field(default_factory=dict)
    keep_days: int = 30
    size_limit: int = 0
    upstreams: tuple[CachedRegistry, ...] = ()
    users: tuple[CacheUser, ...] = ()
    logins: tuple[MachineAccount, ...] = ()
    private_key: str = ""
    proxy: dict[str, str]
    asked: tuple[RegistryCheck, ...]
    places: dict[str, str] = Field(default_factory=dict)
    move: dict[str, Any] = Field(default_factory=dict)


class CacheConfiguration(Part):
    """The first control plane, where the site wants a cache."""

    name = "docker_cache"
    phase = "addons"
    model = DockerCacheVariables
    after = ("control_plane", "api_proxy")
    removable = True
    # Places are for messages, and a move ends with its copy. Neither is a reason to run the role again.
    not_settings = frozenset({"docker_cache_places", "docker_cache_move"})

    def applies(self, site: Site, machine: Machine) -> bool:
        """The first control plane, also where the configuration is to be taken away."""
        return is_leader(site, machine)

    def variables(self, context: Context, machine: Machine) -> DockerCacheVariables | None:
        """Returns all variables with secrets. Without a cache, it returns only the used registries, or None."""
        del machine
        insecure = context.site.settings.openpai_docker_insecure_registries
        requested, proxy = tuple(registry_checks(context.registries, insecure)), proxy_of(context.site)
        cache, identity = context.registries.cache, context.identity
        if cache is not None and identity is not None:
            found = _cache_variables(cache, identity, requested, proxy)
            return found.model_copy(update={"places": dict(context.site.places), "move": _move(context.site, identity)})
        return DockerCacheVariables(asked=requested, proxy=proxy) if requested else None

    def components(self, site: Site) -> frozenset[str]:
        """Returns the components of the add-on's pod."""
        return frozenset({"registry", "haproxy", "busybox"}) if wants_cache(site) else frozenset()

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """Returns the ports for requests of machines. The kernel responds for the Service."""
        del machine
        cache = registries_of(site).cache
        return (Port(cache.port, "Docker cache", clients="machines"),) if cache else ()

    def space(self, site: Site, machine: Machine) -> Mapping[str, Space]:
        """The content, where it is kept on the machine."""
        del machine
        cache = registries_of(site).cache
        return {cache.folder: _space(cache.size_limit)} if cache and not cache.azure else {}


def _space(size_limit: int) -> Space:
    """Returns the space for the content, within its limit."""
    most = size_limit // 2**30 or _ENOUGH_GIB
    return Space(min(_LEAST_GIB, most), min(_ENOUGH_GIB, most))


def _cache_variables(
    cache: Cache, identity: Identity, asked: tuple[RegistryCheck, ...], proxy: dict[str, str]
) -> DockerCacheVariables:
    logins = identity.logins if cache.authenticated else ()
    return DockerCacheVariables(
        folder=cache.folder,
        azure=_azure(cache),
        keep_days=cache.keep_days,
        size_limit=cache.size_limit,
        upstreams=tuple(_upstream(number, upstream) for number, upstream in enumerate(cache.upstreams)),
        users=tuple(_user(line) for line in cache.users),
        logins=tuple(
            MachineAccount(name=it.name, password=it.password.get_secret_value(), generation=it.generation)
            for it in logins
        ),
        private_key=identity.cache.chain,
        proxy=proxy,
        asked=asked,
    )


def _move(site: Site, identity: Identity) -> dict[str, Any]:
    """Returns source and target while the content is copied to the place in the site's files, or {}."""
    source, cache = identity.content or identity.left, registries_of(site).cache
    if source is None or cache is None:
        return {}
    target = place_of(cache, content_of(cache))
    return {"source": place_of(cache, source), "target": target, "keep_hours": cache.keep_days * 24}


def cache_values(context: Context) -> dict[str, Any]:
    """Returns the values of the add-on's templates, without secrets.

    containers: name, file, and upstream of each registry. digest: of the files that registries read at their start.
    """
    cache, identity = context.registries.cache, context.identity
    if cache is None:
        raise ValueError("the site wants no cache")
    salt = identity.salt.get_secret_value() if identity else ""
    upstreams = [_upstream(number, upstream) for number, upstream in enumerate(cache.upstreams)]
    return {
        "leader": context.leader.hostname,
        "node_ports": list(cache.ports),
        "front_port": FRONT_PORT,
        "folder": "" if cache.azure else cache.folder,
        "registries": [{"container": _container(it), "upstream": it.name} for it in upstreams],
        "digest": _digest(cache, upstreams, proxy_of(context.site), salt),
    }


def _digest(cache: Cache, upstreams: list[CachedRegistry], proxy: dict[str, str], salt: str) -> str:
    """Returns a digest of the files that a registry reads at its start. A reader of pods cannot guess a secret by it.

    It excludes credentials for upstreams, because a registry reads them on demand.
    """
    read = {
        "form": FORM,
        "azure": _azure(cache),
        "folder": cache.folder,
        "keep_days": cache.keep_days if cache.azure else 0,  # the folder's is another program's
        "proxy": proxy,
        "upstreams": [it.model_dump(exclude={"username", "password"}) for it in upstreams],
    }
    return hmac.new(salt.encode(), json.dumps(read, sort_keys=True).encode(), "sha256").hexdigest()[:16]


def _azure(cache: Cache) -> dict[str, str]:
    azure = cache.azure
    if azure is None:
        return {}
    key = azure.key.get_secret_value()
    return {"account": azure.account, "access_key": key, "container": azure.container, "endpoint": azure.endpoint}


def _upstream(number: int, upstream: Upstream) -> CachedRegistry:
    return CachedRegistry(
        name=upstream.name,
        remote=upstream.url,
        username=upstream.username,
        password=upstream.password.get_secret_value() if upstream.password else "",
        ca=upstream.ca,
        port=FIRST_PORT + number,
        debug_port=FIRST_DEBUG_PORT + number,
    )


def _user(line: str) -> CacheUser:
    name, _, password_hash = line.partition(":")
    return CacheUser(name=name, password_hash=password_hash)


def _container(upstream: CachedRegistry) -> str:
    """Returns a valid container name from the registry's name. The port makes it unique."""
    # Two registries may yield the same word once its other letters are gone or it is cut.
    word = re.sub(r"[^a-z0-9]+", "-", upstream.name.lower()).strip("-")
    return f"{word[:50]}-{upstream.port}"
