"""A site -> its registries."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pai_install.registry.compile import registries_of, served_names, wants_cache
from pai_install.registry.identity import at_port, make_identity, with_old_port
from pai_install.registry.model import Registries
from pai_install.site import Site, load_site
from tests.unit.site.sites import CONFIG, write_site

ON = CONFIG + "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"
HASH = "$2y$05$" + "a" * 53


def site_of(folder: Path, config: str = ON, services: str = "") -> Site:
    """A site with a cache."""
    return load_site(write_site(folder, config=config, services=services or None)).site


def compiled(folder: Path, config: str = ON, services: str = "") -> Registries:
    """Its registries."""
    return registries_of(site_of(folder, config, services))


def test_a_site_that_says_nothing_has_none(tmp_path: Path) -> None:
    site = site_of(tmp_path, CONFIG)
    assert registries_of(site) == Registries(None, (), air_gapped=False, logins=())
    assert not wants_cache(site)


def test_a_cache_serves_docker_hub_by_itself(tmp_path: Path) -> None:
    cache = compiled(tmp_path).cache
    assert cache is not None
    assert (cache.url, cache.folder) == ("https://docker-cache.pai.internal:30500", "/var/lib/registry")
    assert [(upstream.name, upstream.url) for upstream in cache.upstreams] == [
        ("docker.io", "https://registry-1.docker.io")
    ]
    assert (cache.azure, cache.users, cache.keep_days, cache.size_limit) == (None, (), 30, 0)


def test_without_our_names_it_is_reached_by_address(tmp_path: Path) -> None:
    site = site_of(tmp_path, ON + "hosts_entries: false\n", "docker-cache: {service_nodeport: 30600}\n")
    cache = registries_of(site).cache
    assert cache is not None
    assert cache.url == "https://10.0.0.1:30600"
    assert cache.ports == (30600,)
    names = served_names(site)
    assert names.cache == ("docker-cache.pai.internal", "10.0.0.1")
    assert names.store == ("registry.pai.internal", "10.0.0.1", "127.0.0.1")
    assert (names.port, names.webhook) == (30600, ())


def test_volcano_is_given_a_certificate(tmp_path: Path) -> None:
    site = site_of(tmp_path, CONFIG, "scheduler: {type: volcano}\n")
    assert served_names(site).webhook == ("volcano-admission-service.pai-volcano.svc",)


def test_until_all_machines_have_moved_the_identity_says_where_it_is(tmp_path: Path) -> None:
    site = site_of(tmp_path, services="docker-cache: {service_nodeport: 30600}\n")
    identity = make_identity(replace(served_names(site), port=30500), datetime.now(UTC))
    cache = registries_of(site, with_old_port(at_port(identity, served_names(site).port))).cache
    assert cache is not None
    assert (cache.port, cache.ports) == (30500, (30500, 30600))


def test_docker_hub_is_first_and_an_upstream_with_a_mirror_is_not_ours(tmp_path: Path) -> None:
    services = """\
registry:
  keep-days: 2
  size-limit: 200Gi
  upstreams:
    - {name: quay.io, username: robot, password: quay-secret}
    - {name: ghcr.io, mirror: "https://harbor.example.com/ghcr"}
    - {name: docker.io, url: "https://hub.example.com"}
"""
    found = compiled(tmp_path, services=services)
    assert found.cache is not None
    assert [upstream.name for upstream in found.upstreams] == ["docker.io", "quay.io", "ghcr.io"]
    assert [upstream.url for upstream in found.cache.upstreams] == ["https://hub.example.com", "https://quay.io"]
    assert (found.cache.keep_days, found.cache.size_limit) == (2, 200 * 2**30)
    assert "quay-secret" not in repr(found)


def test_config_yaml_rules_for_docker_hub_and_its_login(tmp_path: Path) -> None:
    config = ON + (
        "docker_cache_remote_url: https://mirror.example.com\n"
        "docker_registry_domain: harbor.example.com\n"
        "docker_registry_username: first\ndocker_registry_password: one\n"
    )
    services = """\
registry:
  upstreams: [{name: docker.io, url: "https://hub.example.com"}]
  logins:
    - {registry: harbor.example.com, username: second, password: two}
    - {registry: "other.example.com:5000", username: third, password: three}
"""
    found = compiled(tmp_path, config, services)
    assert found.upstreams[0].url == "https://mirror.example.com"
    assert [(login.registry, login.username) for login in found.logins] == [
        ("harbor.example.com", "first"),
        ("other.example.com:5000", "third"),
    ]


def test_a_cache_that_has_nothing_to_serve_is_none(tmp_path: Path) -> None:
    services = 'registry: {upstreams: [{name: docker.io, mirror: "https://harbor.example.com"}]}\n'
    found = compiled(tmp_path, services=services)
    assert found.cache is None
    assert found.upstreams[0].mirror == "https://harbor.example.com"


def test_azure_and_logins_of_the_cache(tmp_path: Path) -> None:
    users = base64.b64encode(f"alice:{HASH}\nbob:{HASH}\n".encode()).decode()
    config = CONFIG + (
        "enable_docker_cache: true\ndocker_cache_azure_account_name: account\n"
        f"docker_cache_azure_account_key: a2V5\ndocker_cache_htpasswd: {users}\n"
    )
    cache = compiled(tmp_path, config, 'registry: {azure-endpoint: "http://10.0.0.7:10000/account"}\n').cache
    assert cache is not None
    assert cache.azure is not None
    assert (cache.azure.account, cache.azure.container) == ("account", "dockerregistry")
    assert cache.azure.key.get_secret_value() == "a2V5"
    assert cache.azure.endpoint == "http://10.0.0.7:10000/account"
    assert cache.authenticated
    assert cache.users == (f"alice:{HASH}", f"bob:{HASH}")
