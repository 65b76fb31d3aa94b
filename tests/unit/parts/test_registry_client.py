"""What every machine is told of registries, and that it is told nothing where the site says nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import make_context, part_named
from pai_install.plan.inventory import build_inventory
from pai_install.site import Site
from tests.unit.plan.conftest import CONFIG

MakeSite = Callable[..., Site]


def variables(make_site: MakeSite, components: ComponentSet, config: str) -> dict[str, Any] | None:
    """Those of the part on a worker, without the role's name in front."""
    site = make_site(config=CONFIG + config)
    made = part_named("registry_client").variables(make_context(site, components, Path("/s")), site.workers[0])
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
    assert (plain["name"], plain["server"], plain["endpoints"]) == ("r.example:5000", "http://r.example:5000", [])


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
