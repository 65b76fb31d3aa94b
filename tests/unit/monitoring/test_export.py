"""Files for a monitoring of the site's own."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.monitoring.dashboards import Dashboard, dashboards, grafana
from pai_install.monitoring.export import exported
from pai_install.monitoring.scrape import Scraping, configuration
from pai_install.site import Site, load_site
from tests.unit.site.sites import write_site

SERVICES = """
monitoring:
  web-hooks: [{name: team, url: https://hooks.example.com/pl4nted}]
"""
CONFIG = """
user: pai
password: example
enable_docker_cache: true
docker_cache_storage_backend: filesystem
"""
TLS = {"tls.crt": "certificate", "tls.key": "k3y", "ca.crt": "authority"}
LOGIN = {"username": "machines", "password": "p4ss"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return load_site(write_site(tmp_path, config=CONFIG, services=SERVICES)).site


@pytest.fixture
def addon() -> list[dict[str, Any]]:
    """The objects of HiveD's add-on."""
    text = (Path(__file__).parents[3] / "addons/hived/tests/plain.expected.yml").read_text()
    return [item for item in yaml.safe_load_all(text) if item]


def files(site: Site) -> dict[str, Any]:
    found = exported(site, Scraping(30, 9200, outside=True), LOGIN, TLS)
    return {path: yaml.safe_load(file.content) for path, file in found.items()}


def test_a_prometheus_outside_reads_what_it_reaches(site: Site) -> None:
    found = files(site)["prometheus/prometheus.yml"]
    targets = [
        target for job in found["scrape_configs"] for group in job["static_configs"] for target in group["targets"]
    ]
    assert not [target for target in targets if target.startswith("127.")]
    names = {job["job_name"].partition("-")[0] for job in found["scrape_configs"]}
    assert names == {"node", "kubelet", "apiserver", "registry"}
    (node,) = (job for job in found["scrape_configs"] if job["job_name"] == "node")
    nodes = {f"{machine.hostip}:9200" for machine in site.present_machines if machine.node}
    assert {target for group in node["static_configs"] for target in group["targets"]} == nodes
    assert node["tls_config"]["key_file"] == "tls/tls.key"


def test_only_files_for_their_owner_have_secrets(site: Site) -> None:
    found = exported(site, Scraping(30, 9100, outside=True), LOGIN, TLS)
    shown = "".join(file.content for file in found.values() if not file.secret)
    assert not [secret for secret in ("pl4nted", "k3y", "p4ss") if secret in shown]
    assert {path for path, file in found.items() if file.secret} == {
        *(f"prometheus/tls/{name}" for name in (*TLS, "cache-password")),
        "kubernetes/secret.yaml",
    }


@pytest.mark.parametrize(("kind", "read"), [("hived", True), ("kueue", False)])
def test_the_bridge_of_hived_is_read_where_it_is_the_scheduler(
    tmp_path: Path, kind: str, read: bool, addon: Any
) -> None:
    services = f"monitoring: true\nscheduler: {{type: {kind}}}\n"
    found = load_site(write_site(tmp_path / "s", config="user: pai\npassword: example\n", services=services)).site
    jobs = {job["job_name"]: job for job in configuration(found, Scraping(30, 9100), "")["scrape_configs"]}
    assert ("hived" in jobs, "kueue" in jobs) == (read, not read)
    assert ("kubernetes/podmonitor.yaml" in files(found)) == read
    if read:
        (pods,) = (it for it in addon if it["kind"] == "Deployment" and it["metadata"]["name"] == "hived")
        monitor = files(found)["kubernetes/podmonitor.yaml"]["spec"]
        labels = pods["spec"]["template"]["metadata"]["labels"]
        assert monitor["selector"]["matchLabels"].items() <= labels.items()
        assert monitor["namespaceSelector"]["matchNames"] == [pods["metadata"]["namespace"]]
        ports = [port["name"] for it in pods["spec"]["template"]["spec"]["initContainers"] for port in it["ports"]]
        assert [it["port"] for it in monitor["podMetricsEndpoints"]] == ports
        assert jobs["hived"]["relabel_configs"][0]["regex"] in ports


def test_without_a_certificate_there_is_no_secret(site: Site) -> None:
    found = exported(site, Scraping(30, 9100, outside=True), {}, {})
    assert not [path for path, file in found.items() if file.secret]


def test_the_operator_gets_the_same_rules_and_the_scrape_of_the_exporters(site: Site) -> None:
    found = files(site)
    assert found["kubernetes/prometheusrule.yaml"]["spec"] == found["prometheus/rules.yml"]
    scrape = found["kubernetes/scrapeconfig.yaml"]["spec"]
    assert scrape["tlsConfig"]["serverName"] == "node-exporter.pai.internal"
    assert {key for rule in scrape["metricRelabelings"] for key in rule} <= {
        "action",
        "regex",
        "replacement",
        "sourceLabels",
        "targetLabel",
    }
    secret = found["kubernetes/secret.yaml"]
    assert secret["metadata"]["name"] == scrape["tlsConfig"]["keySecret"]["name"]
    assert secret["stringData"] == TLS


@pytest.mark.parametrize(("name", "dashboard"), dashboards().items())
def test_a_dashboard_has_variables_and_no_overlap(name: str, dashboard: Dashboard) -> None:
    made = grafana(name, dashboard)
    json.dumps(made)
    variables = {variable["name"] for variable in made["templating"]["list"]}
    assert variables == {"datasource", *({"node"} if name == "node" else ())}
    places = [panel["gridPos"] for panel in made["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    rows = [(place["y"], place["x"], place["h"], place["w"]) for place in places]
    assert rows == sorted(rows)
    for before, after in pairwise(places):
        assert after["y"] >= before["y"] + before["h"] or after["x"] >= before["x"] + before["w"]
