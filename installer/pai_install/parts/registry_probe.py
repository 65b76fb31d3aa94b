"""The question to the site's registries, with its accounts, before a machine is given them: on the first control plane."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from pai_install.parts.container_runtime import proxy_of
from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, is_leader
from pai_install.registry.model import Login, Registries, Upstream
from pai_install.site import Machine, Site

_HUB = {"docker.io": "https://registry-1.docker.io"}


class AskedRegistry(BaseModel):
    """name: what the site calls it. ca: PEM, or "". must_answer: whether silence is an error; a cache starts without."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    name: str
    url: str
    username: str = ""
    password: str = ""
    ca: str = ""
    must_answer: bool = False


class RegistryProbeVariables(RoleVariables):
    """What to ask, and through which proxy."""

    role = "registry_probe"
    registries: tuple[AskedRegistry, ...]
    proxy: dict[str, str]


class RegistryProbe(Part):
    """The first control plane of a site that names a registry."""

    name = "registry_probe"
    phase = "addons"
    model = RegistryProbeVariables
    after = ("control_plane",)

    def applies(self, site: Site, machine: Machine) -> bool:
        """The first control plane."""
        return is_leader(site, machine)

    def variables(self, context: Context, machine: Machine) -> RegistryProbeVariables | None:
        """Upstreams of the cache, caches of the site's own, private registries; None where there is nothing to ask."""
        del machine
        asked = tuple(_asked(context.registries))
        return RegistryProbeVariables(registries=asked, proxy=proxy_of(context.site)) if asked else None


def _asked(registries: Registries) -> Iterator[AskedRegistry]:
    yield from map(_upstream, registries.cache.upstreams if registries.cache else ())
    yield from (_mirror(upstream) for upstream in registries.upstreams if upstream.mirror)
    yield from map(_login, registries.logins)


def _upstream(upstream: Upstream) -> AskedRegistry:
    password = upstream.password.get_secret_value() if upstream.password else ""
    name = f"registry.upstreams {upstream.name}"
    return AskedRegistry(name=name, url=upstream.url, username=upstream.username, password=password, ca=upstream.ca)


def _mirror(upstream: Upstream) -> AskedRegistry:
    """The host alone: a path below /v2/ is a project, and has no /v2/ of its own."""
    return AskedRegistry(
        name=f"registry.upstreams {upstream.name}, mirror",
        url=upstream.mirror.partition("/v2/")[0],
        username=upstream.mirror_username,
        password=upstream.mirror_password.get_secret_value() if upstream.mirror_password else "",
        ca=upstream.mirror_ca,
        must_answer=True,
    )


def _login(login: Login) -> AskedRegistry:
    return AskedRegistry(
        name=f"registry.logins {login.registry}",
        url=_HUB.get(login.registry, f"https://{login.registry}"),
        username=login.username,
        password=login.password.get_secret_value(),
    )
