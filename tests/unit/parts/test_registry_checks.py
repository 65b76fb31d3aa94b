"""The registries that are asked before a machine is given them."""

from __future__ import annotations

from pathlib import Path

from pai_install.parts.registry_checks import registry_checks
from pai_install.registry.compile import registries_of
from tests.unit.registry.test_compile import ON, site_of
from tests.unit.site.sites import CONFIG

SERVICES = """\
registry:
  upstreams:
    - {name: quay.io, username: robot, password: quay-secret}
    - {name: ghcr.io, mirror: "https://harbor.example.com/v2/ghcr", mirror-username: m, mirror-password: mirror-secret}
  logins:
    - {registry: docker.io, username: hub, password: hub-secret}
    - {registry: "private.example.com:5000", username: p, password: private-secret}
"""


def test_all_that_the_site_names_is_asked_with_its_own_account(tmp_path: Path) -> None:
    asked = list(registry_checks(registries_of(site_of(tmp_path, ON, SERVICES))))
    assert [(it.name, it.address, it.username, it.password, it.must_answer) for it in asked] == [
        ("registry.upstreams docker.io", "https://registry-1.docker.io", "", "", False),
        ("registry.upstreams quay.io", "https://quay.io", "robot", "quay-secret", False),
        ("registry.upstreams ghcr.io, mirror", "https://harbor.example.com", "m", "mirror-secret", True),
        ("registry.logins docker.io", "https://registry-1.docker.io", "hub", "hub-secret", False),
        ("registry.logins private.example.com:5000", "https://private.example.com:5000", "p", "private-secret", False),
    ]


def test_a_site_that_names_none_asks_none(tmp_path: Path) -> None:
    assert list(registry_checks(registries_of(site_of(tmp_path, CONFIG)))) == []


def test_without_a_cache_only_what_machines_ask_themselves_is_asked(tmp_path: Path) -> None:
    asked = registry_checks(registries_of(site_of(tmp_path, CONFIG, SERVICES)))
    assert [it.name for it in asked] == [
        "registry.upstreams ghcr.io, mirror",
        "registry.logins docker.io",
        "registry.logins private.example.com:5000",
    ]


def test_a_registry_that_machines_ask_without_a_certificate_is_asked_so(tmp_path: Path) -> None:
    registries = registries_of(site_of(tmp_path, CONFIG, SERVICES))
    asked = registry_checks(registries, ("private.example.com:5000",))
    assert [it.name for it in asked if it.insecure] == ["registry.logins private.example.com:5000"]
