"""Monitoring of a site: who exports, what the pod gets, and where secrets are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.components.model import ComponentSet
from pai_install.monitoring.scrape import Scraping, configuration, outside
from pai_install.parts.base import hosts
from pai_install.parts.monitoring import FOLDER, monitoring_values
from pai_install.parts.registry import machine_ports, make_context, needed_components, part_named, ports
from pai_install.plan.effects import impact
from pai_install.plan.observed import Observed, RoleRecord
from pai_install.ports import GOSSIP_PORT
from pai_install.preflight.needs import peer_ports
from pai_install.registry.compile import served_names
from pai_install.registry.identity import make_identity, renewed
from pai_install.site import Site
from tests.addons import addon_action

ROOT = Path(__file__).parents[3]
LAYOUTS = ROOT / "layouts"
SERVICES = """
monitoring:
  retention: 30d
  web-hooks: [{name: team, url: https://hooks.example.com/pl4nted, token: t0ken}]
prometheus: {scrape_interval: 15}
node-exporter: {port: 9200}
"""
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def values(make_site: Callable[..., Site], components: ComponentSet, services: str = SERVICES) -> dict[str, Any]:
    site = make_site(services=services)
    context = make_context(site, components, Path("/s"), make_identity(served_names(site), NOW))
    made = part_named("addon.monitoring").variables(context, site.control_planes[0])
    assert made is not None
    (addon,) = made.model_dump()["wanted"]
    found: dict[str, Any] = addon["values"]
    return found


@pytest.mark.parametrize("services", ["", "monitoring: false\n"])
def test_without_monitoring_nothing_of_it_is_wanted(
    make_site: Callable[..., Site], components: ComponentSet, services: str
) -> None:
    site = make_site(services=services)
    context = make_context(site, components, Path("/s"))
    for machine in site.present_machines:
        assert part_named("node_exporter").variables(context, machine) is None
    assert part_named("addon.monitoring").variables(context, site.control_planes[0]) is None
    assert not needed_components(site) & {"prometheus", "alertmanager", "node-exporter", "kube-state-metrics"}
    identity = make_identity(served_names(site), NOW)
    assert (identity.exporter, identity.scraper) == (None, None)


def test_every_machine_exports_with_the_same_certificate(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    site = make_site(services=SERVICES)
    identity = make_identity(served_names(site), NOW)
    context = make_context(site, components, Path("/s"), identity)
    part = part_named("node_exporter")
    made = [part.variables(context, machine) for machine in site.present_machines]
    assert len({it.model_dump_json() for it in made if it is not None}) == 1
    first = made[0]
    assert first is not None
    found = first.model_dump()
    assert identity.exporter is not None
    assert (found["port"], found["private_key"]) == (9200, identity.exporter.chain)


def test_prometheus_reads_what_the_site_says(make_site: Callable[..., Site], components: ComponentSet) -> None:
    found = values(make_site, components)
    assert (found["retention"], found["disk"]) == ("30d", f"{50 * 2**30}B")
    configuration = json.loads(found["configuration"]["prometheus.yml"])
    assert configuration["global"]["scrape_interval"] == "15s"
    jobs = {job["job_name"]: job for job in configuration["scrape_configs"]}
    assert jobs["node"]["relabel_configs"][0]["replacement"] == "$1:9200"
    assert all(job["sample_limit"] for job in jobs.values())
    rules = json.loads(found["configuration"]["rules.yml"])
    assert {rule["alert"] for group in rules["groups"] for rule in group["rules"] if "alert" in rule} > {
        "MachineDown",
        "GpuXid",
    }


@pytest.fixture
def team(make_site: Callable[..., Site]) -> Site:
    """A site with a file server that is no node."""
    layout, services = ((LAYOUTS / f"team/{name}.yaml").read_text() for name in ("layout", "services-configuration"))
    return make_site(layout, services=services + SERVICES)


def test_a_file_server_beside_the_nodes_is_monitored(team: Site, components: ComponentSet) -> None:
    """Its full disk stops jobs, and Kubernetes does not know it."""
    context = make_context(team, components, Path("/s"), make_identity(served_names(team), NOW))
    server, worker = team.machine("files-1"), team.machine("t4-1")
    part = part_named("node_exporter")
    made = part.variables(context, server)
    assert part.applies(team, server)
    assert made == part.variables(context, worker)
    # it downloads the program from the component store, by its name
    assert hosts(context, server)["10.40.0.1"] == ("registry.pai.internal",)
    assert 5080 in peer_ports(team, server, team.control_planes[0])
    assert 9200 in peer_ports(team, team.control_planes[0], server)
    scraping = Scraping(30, 9200)
    (job,) = (it for it in configuration(team, scraping, "")["scrape_configs"] if it["job_name"] == "node")
    labels = {"node": "files-1", "instance": "files-1"}
    assert job["static_configs"] == [{"targets": ["10.40.3.1:9200"], "labels": labels}]
    # rules of discovered nodes leave the address and the labels of the others alone
    assert all(rule["regex"] == "(.+)" for rule in job["relabel_configs"] if "source_labels" in rule)
    (job,) = (
        it for it in outside(team, replace(scraping, outside=True), "")["scrape_configs"] if it["job_name"] == "node"
    )
    assert {it["labels"]["node"] for it in job["static_configs"]} == {it.hostname for it in team.present_machines}


@pytest.mark.parametrize(("layout", "replicas"), [("team", 1), ("one-node", 2)])
def test_one_store_opens_no_port_for_gossip(
    make_site: Callable[..., Site], components: ComponentSet, layout: str, replicas: int
) -> None:
    text, services = (LAYOUTS / layout / "layout.yaml").read_text(), f"monitoring: {{replicas: {replicas}}}\n"
    site = make_site(text, services=services)
    identity = make_identity(served_names(site), NOW)
    made = monitoring_values(make_context(site, components, Path("/s"), identity))
    assert (identity.alertmanager, made["gossip"]["peers"], made["receivers"]["secret_data"]) == (None, [], {})
    assert GOSSIP_PORT not in {it.port for machine in site.present_machines for it in ports(site, machine)}


def test_two_stores_gossip_between_control_planes_alone(
    make_site: Callable[..., Site], components: ComponentSet
) -> None:
    text = (LAYOUTS / "team/layout.yaml").read_text()
    before = make_identity(served_names(make_site(text, services="monitoring: true\n")), NOW)
    site = make_site(text, services="monitoring: {replicas: 2}\n")
    identity = renewed(before, served_names(site), NOW)
    # a site of before keeps all others
    assert identity.model_copy(update={"alertmanager": None}) == before
    made = monitoring_values(make_context(site, components, Path("/s"), identity))
    assert made["gossip"]["peers"] == [f"{it.hostip}:9094" for it in site.control_planes]
    files = made["receivers"]["secret_data"]
    assert identity.alertmanager is not None
    assert (files["gossip.pem"], files["gossip-ca.crt"]) == (identity.alertmanager.chain, identity.bundle)
    tls = json.loads(files["gossip.yml"])
    assert tls["tls_server_config"]["client_auth_type"] == "RequireAndVerifyClientCert"
    assert tls["tls_server_config"]["client_allowed_sans"] == [tls["tls_client_config"]["server_name"]]
    first, second = site.control_planes[:2]
    assert GOSSIP_PORT in peer_ports(site, first, second)
    assert not [it for it in site.workers if not it.control_plane and GOSSIP_PORT in peer_ports(site, it, first)]
    assert GOSSIP_PORT in machine_ports(site)["tcp"]


@pytest.mark.parametrize(("layout", "pods"), [("team", 2), ("one-node", 1)])
def test_two_stores_are_two_pods_on_two_control_planes(
    make_site: Callable[..., Site], components: ComponentSet, layout: str, pods: int
) -> None:
    site = make_site((LAYOUTS / layout / "layout.yaml").read_text(), services="monitoring: {replicas: 2}\n")
    made = monitoring_values(make_context(site, components, Path("/s")))
    given = ROOT / "addons/monitoring/tests/plain.input.yml"
    words = {**yaml.safe_load(given.read_text())["values"], "replicas": made["replicas"]}
    objects = addon_action().objects_of(given.parents[1], words, ())
    (found,) = (it["spec"] for it in objects if (it["kind"], it["metadata"]["name"]) == ("Deployment", "monitoring"))
    assert found["replicas"] == pods
    apart = found["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [it["topologyKey"] for it in apart] == ["kubernetes.io/hostname"]
    # a store of its own, on the disk of its node
    assert {"path": FOLDER, "type": "DirectoryOrCreate"} in [
        it.get("hostPath") for it in found["template"]["spec"]["volumes"]
    ]


def test_without_monitoring_a_file_server_knows_no_store(team: Site, components: ComponentSet) -> None:
    plain = team.model_copy(update={"services": team.services.model_copy(update={"monitoring": None})})
    context = make_context(plain, components, Path("/s"))
    assert hosts(context, plain.machine("files-1")) == {"10.40.3.1": ("files-1",)}
    assert peer_ports(plain, plain.machine("files-1"), plain.control_planes[0]) == (22,)


def test_no_worker_is_named(make_site: Callable[..., Site], components: ComponentSet) -> None:
    site, text = make_site(services=SERVICES), json.dumps(values(make_site, components))
    workers = [it for it in site.workers if not it.control_plane]
    assert not [it.hostname for it in workers if f'"{it.hostname}"' in text or f'"{it.hostip}' in text]


def test_secrets_are_only_below_secret_data(make_site: Callable[..., Site], components: ComponentSet) -> None:
    found = values(make_site, components)
    shown = json.dumps({name: value for name, value in found.items() if name not in ("identity", "receivers")})
    for secret in ("pl4nted", "t0ken", "PRIVATE KEY"):
        assert secret not in shown
    assert found["receivers"]["secret_data"] == {
        "hook-0": "https://hooks.example.com/pl4nted",
        "hook-0-token": "t0ken",
    }
    assert "PRIVATE KEY" in found["identity"]["secret_data"]["tls.key"]


@pytest.mark.parametrize(("wanted", "told"), [((), True), (({"name": "monitoring"},), False)])
def test_the_plan_names_the_data_that_stays(wanted: tuple[dict[str, str], ...], told: bool) -> None:
    seen = Observed(hostname="m", roles={"addon.monitoring": RoleRecord(settings={"a": "1"})})
    found = impact(("addon.monitoring",), (), {"cluster_addons_wanted": wanted}, seen)
    assert any(FOLDER in word for word in found) == told
