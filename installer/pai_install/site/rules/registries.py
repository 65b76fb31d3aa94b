"""Rules between the registries of both files: contradictions, dependencies, settings without effect."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from pydantic_core import PydanticCustomError

from pai_install.documents.document import Document
from pai_install.site.names import read_registry_host
from pai_install.site.rules.problems import Wrong, add_problems
from pai_install.site.rules.settings import wrong_keys
from pai_install.site.secret import MissingSecret
from pai_install.site.services import Services
from pai_install.site.services.registries import CACHE_PORT, DOCKER_HUB, RegistrySection, UpstreamEntry
from pai_install.site.settings import Settings

_CACHE_OFF = "has no effect: there is no cache without enable_docker_cache in config.yaml"
_SWITCH_ON = "add enable_docker_cache: true to config.yaml, or remove it"


def check_registry_settings(config: Document, settings: Settings) -> None:
    """Adds problems of the registries in config.yaml alone."""
    if settings.docker_registry_username is not None:
        _check_domain(config, settings)
    elif config.content.get("docker_registry_domain") is not None:
        message = "has no effect: OpenPAI's own services are not deployed, and no login is given for it"
        remedy = "add docker_registry_username and docker_registry_password, or remove it"
        config.add(("docker_registry_domain",), "site.no-effect", message, remedy, severity="warning")
    secret = settings.docker_cache_azure_account_key
    if secret is None or isinstance(secret, MissingSecret) or "docker_cache_azure_account_key" in wrong_keys(config):
        return
    try:
        base64.b64decode(secret.get_secret_value(), validate=True)
    except ValueError:
        message = "is not the key of a storage account, which is base64"
        remedy = "copy it from the account's access keys, up to the last ="
        config.add(("docker_cache_azure_account_key",), "site.azure-key", message, remedy)


def _check_domain(config: Document, settings: Settings) -> None:
    try:
        read_registry_host(settings.docker_registry_domain)
    except PydanticCustomError as error:
        words = error.context or {}
        key = "docker_registry_domain" if "docker_registry_domain" in config.content else "docker_registry_username"
        config.add((key,), error.type, str(words.get("message", "")), str(words.get("remedy", "")))


def check_registry(source: Document, section: RegistrySection, settings: Settings) -> None:
    """Adds problems between the section `registry` and config.yaml."""
    if not any(problem.is_error for problem in source.problems):
        rules = (_of_section, _of_upstreams, _of_logins)
        add_problems(source, chain.from_iterable(rule(section, settings) for rule in rules), ("registry",))


def check_cache_port(source: Document, services: Services, settings: Settings) -> None:
    """Adds an error if HiveD's Service uses the cache's port. The component store uses no port of Kubernetes."""
    section, hived = services.docker_cache, services.hivedscheduler
    port = section.service_nodeport if section is not None else CACHE_PORT
    if not settings.enable_docker_cache or hived is None or hived.webservice_port != port:
        return
    own, openpai_keys = ("docker-cache", "service_nodeport"), ("hivedscheduler", "webservice-port")
    path, other = (own, "hivedscheduler.webservice-port") if own in source.marks else (openpai_keys, "the cache")
    source.add(path, "site.port-twice", f"{port} is the port of {other} already", "choose another port")


def _of_section(section: RegistrySection, settings: Settings) -> Iterator[Wrong]:
    if not settings.enable_docker_cache:
        for key in ("keep-days", "size-limit", "azure-endpoint"):
            if key in section.given:
                yield Wrong((key,), "no-effect", _CACHE_OFF, _SWITCH_ON, "warning")
        if section.air_gapped and not section.upstreams:
            message = "has no effect: there is neither a cache nor an upstream below registry"
            yield Wrong(
                ("air-gapped",), "no-effect", message, "add enable_docker_cache: true to config.yaml", "warning"
            )
    elif section.azure_endpoint and settings.docker_cache_storage_backend != "azure":
        message = "has no effect: docker_cache_storage_backend in config.yaml is not azure"
        yield Wrong(("azure-endpoint",), "no-effect", message, "remove it", "warning")
    elif section.size_limit and settings.docker_cache_storage_backend == "azure":
        message = "cannot be kept: the content is in Azure, which does not tell what was used last"
        yield Wrong(("size-limit",), "azure-size", message, "remove it. keep-days limits the records of Azure")
    mirrored = {upstream.name for upstream in section.upstreams if upstream.mirror}
    if settings.enable_docker_cache and DOCKER_HUB in mirrored and len(mirrored) == len(section.upstreams):
        message = "leaves the cache of enable_docker_cache in config.yaml without an upstream: none is set up"
        yield Wrong(("upstreams",), "no-effect", message, "remove enable_docker_cache, or a mirror", "warning")


def _of_upstreams(section: RegistrySection, settings: Settings) -> Iterator[Wrong]:
    for number, upstream in enumerate(section.upstreams):
        for found in _of_upstream(upstream, section, settings):
            yield replace(found, path=("upstreams", number, *found.path))


def _of_upstream(upstream: UpstreamEntry, section: RegistrySection, settings: Settings) -> Iterator[Wrong]:
    mirrored = upstream.mirror or (upstream.name == DOCKER_HUB and settings.openpai_docker_registry_mirrors)
    if not settings.enable_docker_cache and not mirrored:
        if section.air_gapped:
            message = "cannot be reached: air-gapped, without a cache and without a mirror"
            remedy = "add enable_docker_cache: true to config.yaml, or mirror: URL"
            yield Wrong(("name",), "air-gapped", message, remedy)
        else:
            yield Wrong(("name",), "no-effect", _CACHE_OFF, _SWITCH_ON, "warning")
    for key, url, login in (
        ("url", upstream.url, upstream.username),
        ("mirror", upstream.mirror, upstream.mirror_username),
    ):
        if url and login and url.startswith("http:"):
            yield Wrong((key,), "plain-http", "the login goes there without encryption", "use https://", "warning")
    served = settings.enable_docker_cache and not upstream.mirror
    if served and upstream.username and settings.cache_htpasswd is None:
        message = "whoever reaches the cache pulls with this account: it asks for no login of its own"
        yield Wrong(
            ("username",), "open-cache", message, "add docker_cache_htpasswd to config.yaml, or leave it so", "warning"
        )
    cache_url = settings.docker_cache_remote_url
    ruled = upstream.name == DOCKER_HUB and "docker_cache_remote_url" in settings.model_fields_set
    if ruled and upstream.url not in (None, cache_url):
        message = f"does not count: docker_cache_remote_url in config.yaml rules, which is {cache_url}"
        yield Wrong(("url",), "overruled", message, "write one of them", "warning")


def _of_logins(section: RegistrySection, settings: Settings) -> Iterator[Wrong]:
    if settings.docker_registry_username is None:
        return
    for number, login in enumerate(section.logins):
        if login.registry == settings.docker_registry_domain and not login.groups:
            message = "does not count: docker_registry_username in config.yaml rules"
            yield Wrong(("logins", number, "registry"), "overruled", message, "write one of them", "warning")
