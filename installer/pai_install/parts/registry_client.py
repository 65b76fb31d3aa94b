"""Where containerd, the kubelet and Docker pull images from; all of it is changed without any restart."""

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
    """What is asked in a registry's place. ca: PEM, "bundle" for that of the cache, or empty.

    auth_token: base64 of NAME:PASSWORD; a name that says it is a secret, to all who leave such out.
    """

    model_config = ConfigDict(frozen=True)
    endpoint: str
    ca: str = ""
    auth_token: str = ""


class ClientUpstream(BaseModel):
    """A registry as images name it; fallback: whether its server is asked when no endpoint answers. ca: PEM.

    insecure: whether any certificate of the server will do.
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
    """containerd reads its files for every pull, the kubelet its logins; Docker is reloaded. cache: HOST:PORT."""

    role = "registry_client"
    upstreams: Annotated[tuple[ClientUpstream, ...], restarts()]
    ca: Annotated[str, restarts()] = ""
    cache: Annotated[str, restarts()] = ""
    docker_mirrors: Annotated[tuple[str, ...], restarts()]
    insecure_registries: Annotated[tuple[str, ...], restarts()]
    logins: Annotated[tuple[ClientLogin, ...], restarts()] = ()


class RegistryClient(Part):
    """Every machine of a site that says anything of registries; a site that says nothing pays nothing."""

    name = "registry_client"
    phase = "registries"
    model = RegistryClientVariables
    # no machine gets a login that the cache has not heard of, nor one that its registry refuses
    after = ("container_runtime", "control_plane", "docker_cache")
    removable = True

    def variables(self, context: Context, machine: Machine) -> RegistryClientVariables | None:
        """The same on all machines; None where images come from the registries that they name, without a login."""
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
    """Those of the section registry, docker.io where it has mirrors, registries without TLS; each once."""
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
    """Those that ask for no login: Docker sends a mirror none, and does not start with one in a mirror's address.

    Docker names no upstream when it asks a mirror: the cluster's cache takes its first one then.
    """
    cache = context.registries.cache
    first = cache.upstreams[0].name if cache and not cache.authenticated else ""
    ours = [cache.url] if cache and first == DOCKER_HUB else []
    own = [upstream for upstream in context.registries.upstreams if upstream.name == DOCKER_HUB and upstream.mirror]
    # of one with a path below /v2/ Docker would make another address
    theirs = [it.mirror for it in own if not (it.mirror_username or "/v2/" in it.mirror)]
    listed = context.site.settings.openpai_docker_registry_mirrors
    return tuple(dict.fromkeys([*theirs, *ours, *(url for url in listed if not _endpoint(url).auth_token)]))


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
