"""Snapshots of etcd are taken where the site asks for them, on control planes alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import make_context, part_named
from pai_install.plan.inventory import build_inventory
from pai_install.plan.observed import RoleRecord
from pai_install.plan.planner import make_plan
from pai_install.site import Site
from tests.unit.plan.conftest import CONFIG, ROLES, converged

ROLE = Path(__file__).parents[3] / "roles" / "etcd_backup"


def test_a_site_that_asks_for_none_has_none(site: Site, components: ComponentSet) -> None:
    context = make_context(site, components, site.directory)
    assert part_named("etcd_backup").variables(context, context.leader) is None
    assert part_named("etcd_backup").space(site, context.leader) == {}


def test_schedule_and_number_go_to_control_planes(make_site: Callable[..., Site], components: ComponentSet) -> None:
    site = make_site(config=CONFIG + "etcd_backup: {schedule: hourly, keep: 24}\n")
    inventory = build_inventory(make_context(site, components, site.directory), dict.fromkeys(ROLES, "1"))
    own = inventory.variables_of("master")
    assert (own["etcd_backup_schedule"], own["etcd_backup_keep"]) == ("hourly", 24)
    assert "etcd_backup_schedule" not in inventory.variables_of("worker1")


def test_defaults_of_the_setting_are_those_of_the_role(make_site: Callable[..., Site]) -> None:
    wanted = make_site(config=CONFIG + "etcd_backup: {}\n").settings.etcd_backup
    assert wanted is not None
    assert wanted.schedule == "daily"
    assert wanted.keep == yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())["etcd_backup_keep"]


def test_a_site_that_no_longer_asks_has_the_timer_removed(site: Site, components: ComponentSet) -> None:
    context = make_context(site, components, site.directory)
    inventory = build_inventory(context, dict.fromkeys(ROLES, "1"))
    machines = converged(inventory)
    had = {**machines["master"].roles, "etcd_backup": RoleRecord(settings={"etcd_backup_keep": "x"})}
    machines["master"] = machines["master"].model_copy(update={"roles": had})
    (step,) = make_plan(site, inventory, machines).steps
    assert (step.name, step.hosts[0].reasons) == ("addons", ("the site no longer asks for etcd_backup",))
