"""The Docker cache: what its role and its add-on are given, and what each of them is not."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.model import ComponentSet
from pai_install.parts.compiled import COMPILED
from pai_install.parts.docker_cache import CacheConfiguration, cache_values
from pai_install.parts.part import Space
from pai_install.parts.registry import images, make_context, needed_components, ports
from pai_install.plan.inventory import build_inventory
from pai_install.plan.redacted_inventory import without_secrets
from pai_install.redact import Redactor, secret_values
from pai_install.registry.content import Content
from pai_install.registry.identity import Identity, make_identity, with_content_kept, with_content_left, with_new_login
from pai_install.registry.model import ServedNames
from pai_install.site import Site
from tests.unit.plan.conftest import CONFIG

NAMES = ServedNames(cache=("docker-cache.pai.internal",), store=("registry.pai.internal",))
HASH = "$2y$05$abcdefghijklmnopqrstuuW0PjbpL1pSQBVqKqCJnxBYWUeVCgBsy"
CACHE = CONFIG + "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"
LOGIN = f"docker_cache_htpasswd: {base64.b64encode(f'admin:{HASH}'.encode()).decode()}\n"
AZURE = (
    CONFIG
    + "enable_docker_cache: true\ndocker_cache_azure_account_name: acc\n"
    + f"docker_cache_azure_account_key: {base64.b64encode(b'azure-planted').decode()}\n"
)

MakeSite = Callable[..., Site]


@cache
def identity() -> Identity:
    """One for all tests."""
    return make_identity(
        NAMES,
        datetime(2026, 1, 1, tzinfo=UTC),
    )


def variables(site: Site, components: ComponentSet, own: Identity | None = None) -> dict[str, Any]:
    """The role's, on the first control plane."""
    context = make_context(site, components, Path("/s"), own or identity())
    given = CacheConfiguration().variables(context, context.leader)
    assert given is not None
    return given.variables()


def values(site: Site, components: ComponentSet) -> dict[str, Any]:
    """The add-on's."""
    return cache_values(make_context(site, components, Path("/s"), identity()))


def with_upstreams(site_of: MakeSite, folder: Path, *upstreams: str, config: str = CACHE) -> Site:
    """A site that caches these besides Docker Hub; each is a mapping of YAML."""
    entries = "".join(f"\n    - {upstream}" for upstream in upstreams)
    (folder / "services-configuration.yaml").write_text(f"registry:\n  upstreams:{entries}\n")
    return site_of(config=config)


def test_nobody_gets_a_cache_who_does_not_want_one(make_site: MakeSite, components: ComponentSet) -> None:
    site = make_site()
    context = make_context(site, components, Path("/s"))
    assert CacheConfiguration().variables(context, context.leader) is None
    assert "haproxy" not in needed_components(site)
    assert 30500 not in {port.port for port in ports(site, context.leader)}
    wanted = build_inventory(context, {}).host_vars["master"]["cluster_addons_wanted"]
    assert "docker_cache" not in [addon["name"] for addon in wanted]


def test_the_first_control_plane_alone_holds_its_images(make_site: MakeSite) -> None:
    site = make_site(config=CACHE)
    held = {machine.hostname: set(images(site, machine)) & {"registry", "haproxy"} for machine in site.present_machines}
    assert held == {"master": {"registry", "haproxy"}, "worker1": set(), "worker2": set()}


def test_each_upstream_has_ports_of_its_own(make_site: MakeSite, components: ComponentSet, tmp_path: Path) -> None:
    site = with_upstreams(make_site, tmp_path, "{name: quay.io}", "{name: 'r.example.com:5000'}")
    found = variables(site, components)["docker_cache_upstreams"]
    assert [(it["name"], it["port"], it["debug_port"]) for it in found] == [
        ("docker.io", 5001, 6001),
        ("quay.io", 5002, 6002),
        ("r.example.com:5000", 5003, 6003),
    ]
    containers = [it["container"] for it in values(site, components)["registries"]]
    assert containers == ["docker-io-5001", "quay-io-5002", "r-example-com-5000-5003"]


def test_machines_log_in_only_where_people_have_to(make_site: MakeSite, components: ComponentSet) -> None:
    rotated = with_new_login(identity())
    assert variables(make_site(config=CACHE), components, rotated)["docker_cache_logins"] == []
    found = variables(make_site(config=CACHE + LOGIN), components, rotated)
    assert [login["generation"] for login in found["docker_cache_logins"]] == [1, 2]
    assert found["docker_cache_users"] == [{"name": "admin", "password_hash": HASH}]


def test_azure_takes_the_place_of_the_folder(make_site: MakeSite, components: ComponentSet) -> None:
    site = make_site(config=AZURE)
    assert variables(site, components)["docker_cache_azure"]["account"] == "acc"
    assert values(site, components)["folder"] == ""


def test_content_has_a_limit_and_the_registries_start_anew_for_it_in_azure_alone(
    make_site: MakeSite, components: ComponentSet, tmp_path: Path
) -> None:
    digests = {}
    for config, days in product((CACHE, AZURE), (30, 7)):
        limit = "\n  size-limit: 100Gi" if config == CACHE else ""
        (tmp_path / "services-configuration.yaml").write_text(f"registry:\n  keep-days: {days}{limit}\n")
        site = make_site(config=config)
        given = variables(site, components)
        assert given["docker_cache_keep_days"] == days
        assert given["docker_cache_size_limit"] == (100 * 2**30 if config == CACHE else 0)
        digests[config, days] = values(site, components)["digest"]
    assert digests[CACHE, 30] == digests[CACHE, 7]
    assert digests[AZURE, 30] != digests[AZURE, 7]


@pytest.mark.parametrize(("limit", "least", "enough"), [("5Gi", 5, 5), ("50Gi", 10, 50), ("2Ti", 10, 200)])
def test_no_more_room_is_asked_for_than_the_content_may_have(
    make_site: MakeSite, tmp_path: Path, limit: str, least: int, enough: int
) -> None:
    (tmp_path / "services-configuration.yaml").write_text(f"registry: {{size-limit: {limit}}}\n")
    site = make_site(config=CACHE)
    assert CacheConfiguration().space(site, site.control_planes[0]) == {"/var/lib/registry": Space(least, enough)}


def test_the_add_on_gets_what_it_is_said_to(make_site: MakeSite, components: ComponentSet) -> None:
    assert values(make_site(config=CACHE), components).keys() == COMPILED["docker_cache"].names


class TestDigest:
    """What starts the pod anew: what a registry reads when it starts, and nothing else."""

    def test_another_certificate_or_login_does_not(
        self, make_site: MakeSite, components: ComponentSet, tmp_path: Path
    ) -> None:
        entry = "{name: quay.io, username: robot, password: %s}"
        before = values(with_upstreams(make_site, tmp_path, entry % "one"), components)
        after = values(with_upstreams(make_site, tmp_path, entry % "two", config=CACHE + LOGIN), components)
        assert before["digest"] == after["digest"]

    @pytest.mark.parametrize(
        ("upstream", "config"),
        [
            ("{name: quay.io, url: 'https://other.example.com'}", CACHE),
            ("{name: ghcr.io}", CACHE),
            ("{name: quay.io}", CACHE + "docker_cache_fs_mount_path: /mnt/cache\n"),
            ("{name: quay.io}", AZURE),
            ("{name: quay.io}", CACHE + "https_proxy: 'http://proxy.example.com:3128'\n"),
        ],
    )
    def test_another_upstream_or_storage_does(
        self, make_site: MakeSite, components: ComponentSet, tmp_path: Path, upstream: str, config: str
    ) -> None:
        before = values(with_upstreams(make_site, tmp_path, "{name: quay.io}"), components)
        after = values(with_upstreams(make_site, tmp_path, upstream, config=config), components)
        assert before["digest"] != after["digest"]


@pytest.fixture
def secret_site(make_site: MakeSite, tmp_path: Path) -> Site:
    """With a secret in every place that can have one."""
    entry = "{name: quay.io, username: robot, password: upstream-planted}"
    return with_upstreams(make_site, tmp_path, entry, config=AZURE + LOGIN)


def secrets() -> list[str]:
    """All of them, the private key by a line of its own."""
    key = identity().cache.key.get_secret_value().splitlines()[1]
    azure = base64.b64encode(b"azure-planted").decode()
    return ["upstream-planted", azure, HASH, identity().login.password.get_secret_value(), key]


def test_the_role_has_secrets_and_the_add_on_none(secret_site: Site, components: ComponentSet) -> None:
    given = json.dumps(variables(secret_site, components))
    assert all(secret in given for secret in secrets())
    assert not [secret for secret in secrets() if secret in json.dumps(values(secret_site, components))]


def test_no_secret_is_shown(secret_site: Site, components: ComponentSet) -> None:
    context = make_context(secret_site, components, Path("/s"), identity())
    inventory = build_inventory(context, {}).as_ansible()
    shown = json.dumps(without_secrets(inventory))
    masked = json.dumps(Redactor(secret_values(inventory)).mapping(inventory))
    assert not [secret for secret in secrets() if secret in shown or secret in masked]


def test_while_content_moves_the_cache_stays_where_it_is(make_site: MakeSite, components: ComponentSet) -> None:
    site = make_site(config=AZURE)
    kept = with_content_kept(identity(), Content(folder="/old"))
    given = variables(site, components, kept)
    assert (given["docker_cache_folder"], given["docker_cache_azure"]) == ("/old", {})
    move = given["docker_cache_move"]
    assert move["source"] == {"folder": "/old"}
    assert (move["target"]["account"], move["target"]["container"]) == ("acc", "dockerregistry")
    assert base64.b64encode(b"azure-planted").decode() in secret_values(given)
    assert given["docker_cache_places"]["docker_cache_azure_account_key"].endswith(":1")
    after = variables(site, components, with_content_left(kept))
    assert after["docker_cache_azure"]["account"] == "acc"
    assert after["docker_cache_move"] == move
    assert variables(site, components)["docker_cache_move"] == {}
