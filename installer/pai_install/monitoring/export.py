"""Files for a monitoring of the site's own: scrapes, rules, objects of the operator, and dashboards. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from pai_install.monitoring.dashboards import dashboards, grafana
from pai_install.monitoring.routes import routing_of
from pai_install.monitoring.rules import own_rule_groups, rule_groups
from pai_install.monitoring.scrape import (
    HIVED,
    HIVED_NAMESPACE,
    HIVED_PORT_NAME,
    Scraping,
    configuration,
    exporter_tls,
    outside,
)
from pai_install.site import Site
from pai_install.site.schedulers import scheduler_of
from pai_install.site.services.own_monitoring import Monitoring

NAMESPACE = "pai-monitoring"
_SECRET = "pai-node-exporter-client"  # noqa: S105 - the name of an object
_WIDTH = 120
_HIVED_MONITOR = {
    "namespaceSelector": {"matchNames": [HIVED_NAMESPACE]},
    "selector": {"matchLabels": {"app.kubernetes.io/name": HIVED}},
    "podMetricsEndpoints": [
        {"port": HIVED_PORT_NAME, "relabelings": [{"targetLabel": "job", "replacement": HIVED}]},
    ],
}


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """secret: it contains a key."""

    content: str
    secret: bool = False


def exported(
    site: Site, scraping: Scraping, login: Mapping[str, str], tls: Mapping[str, str]
) -> dict[str, ExportedFile]:
    """Returns path -> file. login: of the registry cache. tls: files of the client of node exporters, {} for none."""
    rules = rule_groups(site.services.monitoring or Monitoring())
    inside = Scraping(scraping.scrape_s, scraping.exporter_port)
    files = {
        "prometheus/prometheus.yml": _yaml(outside(site, scraping, login.get("username", ""))),
        "prometheus/rules.yml": _yaml(rules),
        "alertmanager/alertmanager.yml": _yaml(routing_of(site).configuration),
        "kubernetes/prometheusrule.yaml": _yaml(_object("PrometheusRule", "v1", "pai-install", rules)),
        "kubernetes/scrapeconfig.yaml": _yaml(_object("ScrapeConfig", "v1alpha1", "pai-node", _scrape(site, inside))),
        **{f"grafana/{name}.json": json.dumps(grafana(name, it), indent=2) + "\n" for name, it in dashboards().items()},
    }
    if own := own_rule_groups(site):
        files["prometheus/customized.yml"] = _yaml(own)
        files["kubernetes/customized.yaml"] = _yaml(_object("PrometheusRule", "v1", "pai-customized", own))
    if scheduler_of(site) == HIVED:
        files["kubernetes/podmonitor.yaml"] = _yaml(_object("PodMonitor", "v1", "pai-hived", _HIVED_MONITOR))
    found = {path: ExportedFile(content) for path, content in files.items()}
    for name, content in (*tls.items(), *_password(login)):
        found[f"prometheus/tls/{name}"] = ExportedFile(content, secret=True)
    if tls:
        found["kubernetes/secret.yaml"] = ExportedFile(_yaml(_secret(tls)), secret=True)
    return found


def _password(login: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if login:
        yield "cache-password", login["password"]


def _yaml(data: object) -> str:
    return yaml.safe_dump(data, sort_keys=False, width=_WIDTH, allow_unicode=True)


def _object(kind: str, version: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"monitoring.coreos.com/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": dict(spec),
    }


def _secret(tls: Mapping[str, str]) -> dict[str, Any]:
    metadata = {"name": _SECRET, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(tls)}


def _scrape(site: Site, scraping: Scraping) -> dict[str, Any]:
    """Returns the scrape of node exporters. The operator has scrapes of the rest of the cluster itself."""
    jobs = configuration(site, scraping, "")["scrape_configs"]
    job = next(job for job in jobs if job["job_name"] == "node")
    return {
        "jobName": "node",
        "scheme": "HTTPS",
        "scrapeInterval": f"{scraping.scrape_s}s",
        "sampleLimit": job["sample_limit"],
        "labelLimit": job["label_limit"],
        "kubernetesSDConfigs": [{"role": "Node"}],
        "staticConfigs": job["static_configs"],
        "tlsConfig": {
            "ca": {"secret": {"name": _SECRET, "key": "ca.crt"}},
            "cert": {"secret": {"name": _SECRET, "key": "tls.crt"}},
            "keySecret": {"name": _SECRET, "key": "tls.key"},
            "serverName": exporter_tls("")["server_name"],
        },
        "relabelings": [_camel(rule) for rule in job["relabel_configs"]],
        "metricRelabelings": [_camel(rule) for rule in job["metric_relabel_configs"]],
    }


def _camel(rule: Mapping[str, Any]) -> dict[str, Any]:
    names = {"source_labels": "sourceLabels", "target_label": "targetLabel"}
    return {names.get(key, key): value for key, value in rule.items()}
