"""Values of the add-on monitoring: Prometheus, Alertmanager, and kube-state-metrics in one pod. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pai_install.monitoring.gossip import gossip_files
from pai_install.monitoring.routes import routing_of
from pai_install.monitoring.rules import own_rule_groups, rule_groups
from pai_install.monitoring.scrape import Scraping, configuration, remote_token
from pai_install.monitoring.state import state_arguments
from pai_install.parts.context import Context
from pai_install.parts.node_exporter import exporter_port
from pai_install.parts.part import Port
from pai_install.parts.scheduling import has_volcano
from pai_install.ports import (
    ALERTMANAGER_PORT,
    GOSSIP_PORT,
    KUBE_STATE_METRICS_OWN_PORT,
    KUBE_STATE_METRICS_PORT,
    PROMETHEUS_PORT,
)
from pai_install.registry.identity import Identity
from pai_install.registry.model import Cache
from pai_install.site import Site
from pai_install.site.monitoring import has_gossip, monitored_by
from pai_install.site.services.own_monitoring import Monitoring

FOLDER = "/var/lib/pai-install/monitoring"
_SCRAPE_S = 30
# memory of Prometheus in MiB: of itself, and of each node with its pods (measured: docs/monitoring.md)
_OWN_MIB, _NODE_MIB = 512, 4
# a new limit restarts Prometheus: not for each new node
_STEP_MIB = 256
_GO_SHARE = 0.9


def has_monitoring(site: Site) -> bool:
    """Whether the site monitors its cluster."""
    return site.services.monitoring is not None


def monitoring_values(context: Context) -> dict[str, Any]:
    """Returns the values of the pod. configuration, routes: files as texts. identity, receivers: secrets."""
    site = context.site
    wanted = site.services.monitoring or Monitoring()
    routing, volcano = routing_of(site), has_volcano(site)
    memory = _OWN_MIB + math.ceil(_NODE_MIB * len(site.present_machines) / _STEP_MIB) * _STEP_MIB
    own = own_rules(site)
    login = cache_login(context.registries.cache, context.identity)
    scraping = Scraping(scrape_seconds(site), exporter_port(site))
    peers = [f"{it.hostip}:{GOSSIP_PORT}" for it in site.control_planes] if has_gossip(site) else []
    return {
        "replicas": monitored_by(site),
        "leader": context.leader.hostname,
        "folder": FOLDER,
        "retention": f"{wanted.retention}d",
        "disk": f"{wanted.disk}B",
        "memory": f"{memory}Mi",
        # Go's collector does not know the container's limit. Near this value it frees memory before the kernel kills.
        "go_memory": f"{int(memory * _GO_SHARE)}MiB",
        "prometheus_port": PROMETHEUS_PORT,
        "alertmanager_port": ALERTMANAGER_PORT,
        "state_port": KUBE_STATE_METRICS_PORT,
        "volcano": volcano,
        "state_arguments": [*state_arguments(volcano=volcano), f"--telemetry-port={KUBE_STATE_METRICS_OWN_PORT}"],
        "configuration": {
            "prometheus.yml": json.dumps(configuration(site, scraping, login.get("username", "")), indent=1),
            "rules.yml": json.dumps(rule_groups(wanted), indent=1),
            **({"customized.yml": own} if own else {}),
        },
        "routes": json.dumps(routing.configuration, indent=1),
        "identity": {"secret_data": {**scraper_files(context.identity), **_passwords(wanted, login)}},
        "receivers": {"secret_data": {**routing.secrets, **(gossip_files(context.identity) if peers else {})}},
        "gossip": {"port": GOSSIP_PORT, "peers": peers},
    }


def monitoring_ports(site: Site) -> tuple[Port, ...]:
    """The port of the gossip."""
    gossip = Port(GOSSIP_PORT, "gossip of Alertmanagers", ("alertmanager",), clients="control planes")
    return (gossip,) if has_gossip(site) else ()


def own_rules(site: Site) -> str | None:
    """Returns the file of the site's own rules, or None without monitoring or rules."""
    found = own_rule_groups(site) if has_monitoring(site) else None
    return json.dumps(found, indent=1) if found else None


def _passwords(wanted: Monitoring, login: Mapping[str, str]) -> dict[str, str]:
    tokens = {remote_token(number): it.token for number, it in enumerate(wanted.remote_write) if it.token is not None}
    found = {name: token.get_secret_value() for name, token in tokens.items()}
    return {"cache-password": login.get("password", ""), **found}


def scrape_seconds(site: Site) -> int:
    """Returns the time between two readings."""
    section = site.services.prometheus
    return section.scrape_interval if section is not None else _SCRAPE_S


def cache_login(cache: Cache | None, identity: Identity | None) -> Mapping[str, str]:
    """Returns the login of machines at the registry cache, or {} for a cache that asks for none."""
    if cache is None or identity is None or not cache.authenticated:
        return {}
    return {"username": identity.login.name, "password": identity.login.password.get_secret_value()}


def scraper_files(identity: Identity | None) -> Mapping[str, str]:
    """Returns the certificate that node exporters ask for, and the authorities, empty before the first run."""
    scraper = identity.scraper if identity is not None else None
    if identity is None or scraper is None:
        return {"tls.crt": "", "tls.key": "", "ca.crt": ""}
    return {"tls.crt": scraper.certificate, "tls.key": scraper.key.get_secret_value(), "ca.crt": identity.bundle}
