"""The question to the site's registries, with its accounts, before any machine is given them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pydantic import BaseModel, ConfigDict

from pai_install.registry.model import Login, Registries, Upstream
from pai_install.site.services.registries import DOCKER_HUB, DOCKER_HUB_URL


class RegistryCheck(BaseModel):
    """name: name in the site. ca: PEM, or "". must_answer: a missing response is an error.

    insecure: any certificate is accepted, and plain HTTP too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    name: str
    address: str
    username: str = ""
    password: str = ""
    ca: str = ""
    insecure: bool = False
    must_answer: bool = False


def registry_checks(registries: Registries, insecure: Collection[str] = ()) -> Iterator[RegistryCheck]:
    """Yields upstreams of the cache, caches of the site, and private registries.

    insecure: registries that Docker and containerd use without a known certificate.
    """
    yield from map(_upstream, registries.cache.upstreams if registries.cache else ())
    yield from (_mirror(upstream) for upstream in registries.upstreams if upstream.mirror)
    yield from (_login(login, insecure=login.registry in insecure) for login in registries.logins)


def _upstream(upstream: Upstream) -> RegistryCheck:
    password = upstream.password.get_secret_value() if upstream.password else ""
    name = f"registry.upstreams {upstream.name}"
    return RegistryCheck(name=name, address=upstream.url, username=upstream.username, password=password, ca=upstream.ca)


def _mirror(upstream: Upstream) -> RegistryCheck:
    """The host alone: a path below /v2/ is a project, and has no /v2/ of its own."""
    return RegistryCheck(
        name=f"registry.upstreams {upstream.name}, mirror",
        address=upstream.mirror.partition("/v2/")[0],
        username=upstream.mirror_username,
        password=upstream.mirror_password.get_secret_value() if upstream.mirror_password else "",
        ca=upstream.mirror_ca,
        must_answer=True,
    )


def _login(login: Login, *, insecure: bool) -> RegistryCheck:
    return RegistryCheck(
        name=f"registry.logins {login.registry}",
        address=DOCKER_HUB_URL if login.registry == DOCKER_HUB else f"https://{login.registry}",
        username=login.username,
        password=login.password.get_secret_value(),
        insecure=insecure,
    )
