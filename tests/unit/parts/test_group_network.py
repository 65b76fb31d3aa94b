"""Which machines isolate groups, and what they are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import make_context, part_named
from pai_install.ports import API_SERVER_PORT
from pai_install.site import Site
from tests.addons import ROOT
from tests.unit.parts.test_job_recorder import GROUPS
from tests.unit.plan.conftest import CONFIG

MakeSite = Callable[..., Site]


@pytest.mark.parametrize(
    ("config", "services", "wanted"),
    [(CONFIG, "", False), (CONFIG, GROUPS, True), (f"{CONFIG}group_isolation: false\n", GROUPS, False)],
)
def test_nodes_of_sites_with_groups(
    make_site: MakeSite, components: ComponentSet, config: str, services: str, wanted: bool
) -> None:
    site = make_site(config=config, services=services)
    context = make_context(site, components, Path("/s"))
    part, addon = part_named("group_network"), part_named("addon.group_network")
    for machine in site.present_machines:
        if machine.node:
            assert (part.variables(context, machine) is not None) == wanted
    assert (addon.variables(context, context.leader) is not None) == wanted


def test_control_planes_publish_and_no_port_of_the_api_is_closed(make_site: MakeSite, components: ComponentSet) -> None:
    site = make_site(config=CONFIG, services=GROUPS)
    context, part = make_context(site, components, Path("/s")), part_named("group_network")
    for machine in (it for it in site.present_machines if it.node):
        made = part.variables(context, machine)
        assert made is not None
        told = made.variables()
        assert told["group_network_publishes"] == machine.control_plane
        assert told["group_network_namespaces"] == ["nlp", "vision-1"]
        assert {2379, 2380, 10250} <= set(told["group_network_ports"]["tcp"])
        assert API_SERVER_PORT not in told["group_network_ports"]["tcp"]
        assert 8472 in told["group_network_ports"]["udp"]
        written = yaml.safe_load((ROOT / "roles/group_network/vars/main.yml").read_text())
        given = {name.removeprefix("group_network_") for name in told}
        assert set(written["__group_network_settings"]) == given - {"publishes"}
