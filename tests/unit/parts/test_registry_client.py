"""What every machine is told of registries, and that it is told nothing where the site says nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import make_context, part_named
from pai_install.plan.inventory import build_inventory
from pai_install.plan.redacted_inventory import without_secrets
from pai_install.registry.identity import make_identity
from pai_install.registry.model import ServedNames
from pai_install.site import Site
from tests.unit.plan.conftest import CONFIG

MakeSite = Callable[..., Site]
NAMES = ServedNames(cache=("docker-cache.pai.internal",), store=("registry.pai.internal",))
IDENTITY = make_identity(
    NAMES,
    datetime(2026, 1, 1, tzinfo=UTC),
)
CACHE = "https://docker-cache.pai.internal:30500"
CACHED = "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"
HTPASSWD = base64.b64encode(b"bob:$2y$05$abcdefghijklmnopqrstuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu\n").decode()
WITH_LOGIN = CACHED + f"docker_cache_htpasswd: {HTPASSWD}\n"
OWN = """\
registry:
  upstreams:
    - name: quay.io
    - {name: gcr.io, mirror: 'https://harbor.example/v2/gcr', mirror-username: u, mirror-password: planted-mirror}
"""


def site_of(make_site: MakeSite, config: str, services: str) -> Site:
    """A site with these lines beside those of all tests."""
    return make_site(config=CONFIG + config, services=services)


def machine_token() -> str:
    """The login of the machines as a header has it."""
    login = IDENTITY.login
    return base64.b64encode(f"{login.name}:{login.password.get_secret_value()}".encode()).decode()


def variables(
    make_site: MakeSite, components: ComponentSet, config: str = "", services: str = ""
) -> dict[str, Any] | None:
    """Those of the part on a worker, without the role's name in front."""
    site = site_of(make_site, config, services)
    context = make_context(site, components, Path("/s"), IDENTITY)
    made = part_named("registry_client").variables(context, site.workers[0])
    if made is None:
        return None
    return {name.removeprefix("registry_client_"): value for name, value in made.variables().items()}


def test_site_that_says_nothing_of_registries_has_no_work(make_site: MakeSite, components: ComponentSet) -> None:
    assert variables(make_site, components, "") is None


def test_mirrors_and_insecure_registries_reach_docker_and_containerd(
    make_site: MakeSite, components: ComponentSet
) -> None:
    insecure = "openpai_docker_insecure_registries: [r.example:5000]\n"
    made = variables(make_site, components, f"openpai_docker_registry_mirrors: [https://m.example]\n{insecure}")
    assert made is not None
    assert (made["docker_mirrors"], made["insecure_registries"]) == (["https://m.example"], ["r.example:5000"])
    hub, plain = made["upstreams"]
    assert (hub["name"], hub["server"], hub["fallback"]) == ("docker.io", "https://registry-1.docker.io", True)
    assert hub["endpoints"] == [{"endpoint": "https://m.example", "ca": "", "auth_token": ""}]
    assert (plain["name"], plain["server"], plain["insecure"]) == ("r.example:5000", "https://r.example:5000", True), (
        "some speak TLS all the same"
    )
    assert plain["endpoints"] == [{"endpoint": "http://r.example:5000", "ca": "", "auth_token": ""}]


def test_mirror_with_a_login_is_none_of_dockers(make_site: MakeSite, components: ComponentSet) -> None:
    """Docker would not start with it, and containerd passes over a login in an address."""
    made = variables(make_site, components, "openpai_docker_registry_mirrors: ['https://bob:p%40ss@m.example/x']\n")
    assert made is not None
    assert made["docker_mirrors"] == []
    assert made["upstreams"][0]["endpoints"] == [
        {"endpoint": "https://m.example/x", "ca": "", "auth_token": "Ym9iOnBAc3M="}
    ]


def test_another_mirror_is_another_setting(make_site: MakeSite, components: ComponentSet) -> None:
    def digests(mirror: str) -> Any:
        site = make_site(config=CONFIG + f"openpai_docker_registry_mirrors: ['{mirror}']\n")
        made = build_inventory(make_context(site, components, Path("/s")), {})
        return made.shared_vars.get("pai_settings") or made.host_vars["worker1"]["pai_settings"]

    first, second = (digests(f"https://bob:pass@{name}.example")["registry_client"] for name in ("a", "b"))
    assert {name for name in first if first[name] != second[name]} == {"registry_client_upstreams"}


def test_upstreams_are_asked_by_the_cache_and_mirrors_in_their_place(
    make_site: MakeSite, components: ComponentSet
) -> None:
    made = variables(make_site, components, CACHED + "openpai_docker_registry_mirrors: [https://m.example]\n", OWN)
    assert made is not None
    asked = {entry["name"]: [end["endpoint"] for end in entry["endpoints"]] for entry in made["upstreams"]}
    assert asked == {
        "docker.io": [CACHE, "https://m.example"],
        "quay.io": [CACHE],
        "gcr.io": ["https://harbor.example/v2/gcr"],
    }
    assert made["upstreams"][0]["endpoints"][0] == {"endpoint": CACHE, "ca": "bundle", "auth_token": ""}
    assert made["docker_mirrors"] == [CACHE, "https://m.example"]
    assert (made["ca"], made["cache"]) == (IDENTITY.bundle, CACHE.removeprefix("https://"))
    assert {entry["fallback"] for entry in made["upstreams"]} == {True}


def test_docker_asks_a_mirror_with_an_authority_of_its_own(
    make_site: MakeSite, components: ComponentSet, tmp_path: Path
) -> None:
    """It is given the authority, as containerd is."""
    pem = IDENTITY.bundle
    (tmp_path / "harbor.pem").write_text(pem)
    mirror = f"{{name: docker.io, mirror: 'https://harbor.example', mirror-ca-file: '{tmp_path}/harbor.pem'}}"
    made = variables(make_site, components, "", f"registry: {{upstreams: [{mirror}]}}\n")
    assert made is not None
    assert made["docker_mirrors"] == ["https://harbor.example"]
    assert made["upstreams"][0]["endpoints"] == [{"endpoint": "https://harbor.example", "ca": pem, "auth_token": ""}]


def test_cache_with_logins_is_none_of_dockers(make_site: MakeSite, components: ComponentSet) -> None:
    """Docker sends a mirror no login: it asks Docker Hub directly."""
    made = variables(make_site, components, WITH_LOGIN)
    assert made is not None
    assert made["docker_mirrors"] == []
    assert made["upstreams"][0]["endpoints"] == [{"endpoint": CACHE, "ca": "bundle", "auth_token": machine_token()}]


def test_air_gapped_machines_never_ask_an_upstream(make_site: MakeSite, components: ComponentSet) -> None:
    made = variables(make_site, components, CACHED, "registry: {air-gapped: true}\n")
    assert made is not None
    assert [entry["fallback"] for entry in made["upstreams"]] == [False]


def test_logins_of_both_files(make_site: MakeSite, components: ComponentSet) -> None:
    config = "docker_registry_domain: r.example\ndocker_registry_username: a\ndocker_registry_password: planted-login\n"
    services = "registry: {logins: [{registry: 's.example:5000', username: b, password: planted-other}]}\n"
    made = variables(make_site, components, config, services)
    assert made is not None
    assert made["logins"] == [
        {"registry": "r.example", "auth_token": base64.b64encode(b"a:planted-login").decode()},
        {"registry": "s.example:5000", "auth_token": base64.b64encode(b"b:planted-other").decode()},
    ]
    assert made["upstreams"] == []


def test_no_login_is_shown(make_site: MakeSite, components: ComponentSet) -> None:
    """Neither in what is written of a run nor in an inventory for everybody's eyes."""
    login = "registry: {logins: [{registry: 's.example', username: b, password: planted-other}]}"
    services = OWN + login.removeprefix("registry: {").removesuffix("}").replace("logins", "  logins") + "\n"
    site = site_of(make_site, WITH_LOGIN, services)
    inventory = build_inventory(make_context(site, components, Path("/s"), IDENTITY), {})
    planted = (b"u:planted-mirror", b"b:planted-other")
    secrets = [machine_token(), *(base64.b64encode(word).decode() for word in planted)]
    written = json.dumps(inventory.as_ansible())
    assert all(secret in written for secret in secrets)
    masked = json.dumps(inventory.redactor.mapping(inventory.as_ansible()))
    shown = json.dumps(without_secrets(inventory.as_ansible()))
    assert not [secret for secret in secrets if secret in masked or secret in shown]
    assert inventory.redactor.text(f'Authorization = "Basic {secrets[0]}"') == 'Authorization = "Basic ********"'
