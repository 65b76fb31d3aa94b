"""Sources of images for containerd, the kubelet, and Docker. Changes need no restart."""

from __future__ import annotations

import base64
from collections.abc import Hashable, Iterator
from typing import Annotated
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, SecretStr

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, everywhere, restarts
from pai_install.registry.model import Login, Upstream
from pai_install.site import Machine, Site
from pai_install.site.services.registries import DOCKER_HUB, DOCKER_HUB_URL


class Endpoint(BaseModel):
    """A replacement of a registry. ca: PEM, "bundle" for the cache's, or empty.

    auth_token: base64 of NAME:PASSWORD. Its name marks it as a secret for redaction.
    """

    model_config = ConfigDict(frozen=True)
    endpoint: str
    ca: str = ""
    auth_token: str = ""


class ClientUpstream(BaseModel):
    """A registry in image names. fallback: use its server if no endpoint responds. ca: PEM.

    insecure: accept any certificate of the server.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    server: str
    ca: str = ""
    insecure: bool = False
    fallback: bool = True
    endpoints: tuple[Endpoint, ...] = ()


class ClientLogin(BaseModel):
    """A login at a private registry."""

    model_config = ConfigDict(frozen=True)
    registry: str
    auth_token: str


class RegistryClientVariables(RoleVariables):
    """containerd reads its files on every pull, the kubelet its credentials. Docker is reloaded. cache: HOST:PORT."""

    role = "registry_client"
    upstreams: Annotated[tuple[ClientUpstream, ...], restarts()]
    ca: Annotated[str, restarts()] = ""
    cache: Annotated[str, restarts()] = ""
    docker_mirrors: Annotated[tuple[str, ...], restarts()]
    insecure_registries: Annotated[tuple[str, ...], restarts()]
    logins: Annotated[tuple[ClientLogin, ...], restarts()] = ()


class RegistryClient(Part):
    """All machines of a site with registry settings. A site without them has no such part."""

    name = "registry_client"
    phase = "registries"
    model = RegistryClientVariables
    # no machine gets a login that the cache has not heard of, nor one that its registry refuses
    after = ("container_runtime", "control_plane", "docker_cache")
    removable = True

    def variables(self, context: Context, machine: Machine) -> RegistryClientVariables | None:
        """Returns the same variables for all machines, or None if images come from their own registries without
        credentials.
        """
        del machine
        upstreams, logins = _upstreams(context), tuple(map(_login, context.registries.of_machines))
        if not (upstreams or logins):
            return None
        cache = context.registries.cache
        return RegistryClientVariables(
            upstreams=upstreams,
            ca=context.authorities,
            cache=cache.address if cache else "",
            docker_mirrors=_docker_mirrors(context),
            insecure_registries=context.site.settings.openpai_docker_insecure_registries,
            logins=logins,
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)


def _upstreams(context: Context) -> tuple[ClientUpstream, ...]:
    """Returns the upstreams of the section registry, docker.io with mirrors, and registries without TLS, each once."""
    settings = context.site.settings
    found = {upstream.name: _upstream(context, upstream) for upstream in context.registries.upstreams}
    if settings.openpai_docker_registry_mirrors and DOCKER_HUB not in found:
        found[DOCKER_HUB] = _upstream(context, Upstream(DOCKER_HUB, DOCKER_HUB_URL))
    for name in settings.openpai_docker_insecure_registries:
        # some that are listed speak TLS all the same: without it first, then with it
        plain = Endpoint(endpoint=f"http://{name}")
        found.setdefault(name, ClientUpstream(name=name, server=f"https://{name}", insecure=True, endpoints=(plain,)))
    return tuple(found.values())


def _upstream(context: Context, upstream: Upstream) -> ClientUpstream:
    """Nearest first: a cache, then the mirrors of docker.io, then the registry itself but on an air-gapped site."""
    cached = [*_mirror(upstream), *_cache(context, upstream)]
    mirrors = context.site.settings.openpai_docker_registry_mirrors if upstream.name == DOCKER_HUB else ()
    return ClientUpstream(
        name=upstream.name,
        server=upstream.url,
        ca=upstream.ca,
        fallback=not context.registries.air_gapped,
        endpoints=(*cached, *map(_endpoint, mirrors)),
    )


def _mirror(upstream: Upstream) -> Iterator[Endpoint]:
    """The site's own cache of it."""
    if upstream.mirror:
        token = _token(upstream.mirror_username, upstream.mirror_password) if upstream.mirror_password else ""
        yield Endpoint(endpoint=upstream.mirror, ca=upstream.mirror_ca, auth_token=token)


def _cache(context: Context, upstream: Upstream) -> Iterator[Endpoint]:
    """The cluster's cache, where it serves the upstream."""
    cache, identity = context.registries.cache, context.identity
    if cache is None or upstream.name not in {served.name for served in cache.upstreams}:
        return
    login = identity.login if identity and cache.authenticated else None
    token = _token(login.name, login.password) if login else ""
    yield Endpoint(endpoint=cache.url, ca="bundle", auth_token=token)


def _docker_mirrors(context: Context) -> tuple[str, ...]:
    """Returns mirrors without credentials. Docker sends a mirror none, and does not start with credentials in its
    address.

    Docker sends a mirror no upstream name, so the cluster's cache uses its first one.
    """
    cache = context.registries.cache
    first = cache.upstreams[0].name if cache and not cache.authenticated else ""
    caches = [cache.url] if cache and first == DOCKER_HUB else []
    own = [upstream for upstream in context.registries.upstreams if upstream.name == DOCKER_HUB and upstream.mirror]
    # of one with a path below /v2/ Docker would make another address
    mirrors = [it.mirror for it in own if not (it.mirror_username or "/v2/" in it.mirror)]
    listed = context.site.settings.openpai_docker_registry_mirrors
    return tuple(dict.fromkeys([*mirrors, *caches, *(url for url in listed if not _endpoint(url).auth_token)]))


def _login(login: Login) -> ClientLogin:
    return ClientLogin(registry=login.registry, auth_token=_token(login.username, login.password))


def _token(name: str, password: SecretStr) -> str:
    return base64.b64encode(f"{name}:{password.get_secret_value()}".encode()).decode()


def _endpoint(url: str) -> Endpoint:
    """A mirror by its address. A login in it is given as a header: containerd passes over it otherwise."""
    parts = urlsplit(url)
    login, found, host = parts.netloc.rpartition("@")
    token = base64.b64encode(unquote(login).encode()).decode() if found else ""
    return Endpoint(endpoint=urlunsplit(parts._replace(netloc=host)), auth_token=token)
