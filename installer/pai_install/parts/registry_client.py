"""Where containerd, the kubelet and Docker pull images from; all of it is changed without any restart."""

from __future__ import annotations

import base64
from collections.abc import Hashable
from typing import Annotated
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, everywhere, restarts
from pai_install.site import Machine, Site

DOCKER_HUB = "docker.io"
DOCKER_HUB_URL = "https://registry-1.docker.io"


class Endpoint(BaseModel):
    """What is asked in a registry's place. ca: PEM, "bundle" for that of the cache, or empty.

    auth_token: base64 of NAME:PASSWORD; a name that says it is a secret, to all who leave such out.
    """

    model_config = ConfigDict(frozen=True)
    endpoint: str  # not url: a change of places is no change of settings (plan.inventory)
    ca: str = ""
    auth_token: str = ""


class ClientUpstream(BaseModel):
    """A registry as images name it; fallback: whether its server is asked when no endpoint answers. ca: PEM."""

    model_config = ConfigDict(frozen=True)
    name: str
    server: str
    ca: str = ""
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
    after = ("container_runtime", "control_plane")
    removable = True

    def variables(self, context: Context, machine: Machine) -> RegistryClientVariables | None:
        """The same on all machines; None where images come from the registries that they name."""
        del machine
        site = context.site
        upstreams = (*_hub(site), *_insecure(site))
        if not upstreams:
            return None
        return RegistryClientVariables(
            upstreams=upstreams,
            docker_mirrors=_docker_mirrors(site),
            insecure_registries=site.settings.openpai_docker_insecure_registries,
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)


def _hub(site: Site) -> tuple[ClientUpstream, ...]:
    mirrors = tuple(_endpoint(url) for url in site.settings.openpai_docker_registry_mirrors)
    return (ClientUpstream(name=DOCKER_HUB, server=DOCKER_HUB_URL, endpoints=mirrors),) if mirrors else ()


def _docker_mirrors(site: Site) -> tuple[str, ...]:
    """Docker refuses to start with a login in a mirror's address, and gives a mirror no login otherwise."""
    return tuple(url for url in site.settings.openpai_docker_registry_mirrors if not _endpoint(url).auth_token)


def _endpoint(url: str) -> Endpoint:
    """A login in the address is given as a header: containerd passes over it otherwise."""
    parts = urlsplit(url)
    login, found, host = parts.netloc.rpartition("@")
    token = base64.b64encode(unquote(login).encode()).decode() if found else ""
    return Endpoint(endpoint=urlunsplit(parts._replace(netloc=host)), auth_token=token)


def _insecure(site: Site) -> tuple[ClientUpstream, ...]:
    registries = site.settings.openpai_docker_insecure_registries
    return tuple(ClientUpstream(name=name, server=f"http://{name}") for name in registries)
