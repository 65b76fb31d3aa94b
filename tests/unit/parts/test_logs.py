"""The store of logs of a site: what its pods get, where secrets are, and what stays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.model import ComponentSet
from pai_install.parts.logs import BUFFER, FOLDER
from pai_install.parts.registry import make_context, needed_components, part_named
from pai_install.plan.effects import impact
from pai_install.plan.observed import Observed, RoleRecord
from pai_install.ports import LOG_COLLECTOR_PORT, LOG_STORE_PORT
from pai_install.registry.compile import served_names
from pai_install.registry.identity import make_identity, renewed
from pai_install.site import Site
from tests.addons import ROOT

NOW = datetime(2026, 11, 1, tzinfo=UTC)
GIB = 2**30


def values(make_site: Callable[..., Site], components: ComponentSet, services: str = "logs: true\n") -> dict[str, Any]:
    site = make_site(services=services)
    context = make_context(site, components, Path("/s"), make_identity(served_names(site), NOW))
    made = part_named("addon.logs").variables(context, site.control_planes[0])
    assert made is not None
    (addon,) = made.model_dump()["wanted"]
    found: dict[str, Any] = addon["values"]
    return found


@pytest.mark.parametrize("services", ["", "logs: false\n", "monitoring: true\n"])
def test_a_site_without_logs_has_nothing_of_them(
    make_site: Callable[..., Site], components: ComponentSet, services: str
) -> None:
    site = make_site(services=services)
    context = make_context(site, components, Path("/s"))
    assert part_named("addon.logs").variables(context, site.control_planes[0]) is None
    assert "victoria-logs" not in needed_components(site)
    identity = make_identity(served_names(site), NOW)
    assert (identity.logs, identity.collector) == (None, None)


def test_settings(make_site: Callable[..., Site], components: ComponentSet) -> None:
    found = values(make_site, components)
    assert (found["days"], found["disk"]) == (14, 100 * GIB)
    found = values(make_site, components, "logs: {retention: 30d, disk: 20Gi}\n")
    assert (found["days"], found["disk"]) == (30, 20 * GIB)


@pytest.mark.parametrize("disk", [1, 100, 4096])
def test_two_days_of_all_machines_fit_the_disk(
    make_site: Callable[..., Site], components: ComponentSet, disk: int
) -> None:
    """The store keeps the last two days whatever their size."""
    found = values(make_site, components, f"logs: {{disk: {disk}Gi}}\n")
    assert found["front"]["all_per_minute"] * 60 * 48 <= disk * GIB
    assert found["front"]["one_per_minute"] * 4 <= found["front"]["all_per_minute"] * 1.01
    # HAProxy counts with 32 bits
    assert found["front"]["all_per_minute"] < 2**32


def test_secrets_are_only_below_secret_data(make_site: Callable[..., Site], components: ComponentSet) -> None:
    found = values(make_site, components)
    shown = json.dumps({name: value for name, value in found.items() if name not in ("server", "client")})
    assert "PRIVATE KEY" not in shown
    for side in ("server", "client"):
        assert "PRIVATE KEY" in found[side]["secret_data"]["tls.pem"]


def test_a_site_that_gets_a_store_keeps_its_identity(make_site: Callable[..., Site]) -> None:
    before = make_identity(served_names(make_site()), NOW)
    after = renewed(before, served_names(make_site(services="logs: true\n")), NOW)
    assert after.logs is not None
    assert after.collector is not None
    assert after.model_copy(update={"logs": None, "collector": None}) == before


def test_ports_of_the_add_on() -> None:
    text = (ROOT / "addons/logs/addon.yml").read_text()
    assert re.findall(r"port: (\d+)", text) == [str(LOG_STORE_PORT), str(LOG_COLLECTOR_PORT)]


@pytest.mark.parametrize(("wanted", "told"), [((), True), (({"name": "logs"},), False)])
def test_the_plan_names_the_data_that_stays(wanted: tuple[dict[str, str], ...], told: bool) -> None:
    seen = Observed(hostname="m", roles={"addon.logs": RoleRecord(settings={"a": "1"})})
    found = impact(("addon.logs",), (), {"cluster_addons_wanted": wanted}, seen)
    assert all(any(folder in word for word in found) == told for folder in (FOLDER, BUFFER))
