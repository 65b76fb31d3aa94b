"""The alerts: data of rules.yml, and their form for Prometheus. Pure but for reading the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pai_install.site import Site
from pai_install.site.services.own_monitoring import Monitoring
from pai_install.system.yaml import load_untrusted_yaml, load_yaml

RULES = Path(__file__).parent / "rules.yml"
XIDS = Path(__file__).parents[1] / "health/judge/xid.yml"
OPENPAI_NAMES = Path(__file__).parent / "openpai_names.yml"
_WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_JOB_LABELS = {"job_name": "job", "username": "user", "virtual_cluster": "virtual_cluster"}
_OF_PODS = 'kube_pod_labels{label_pai_install_job!=""}'
for _new, _old in _JOB_LABELS.items():
    _OF_PODS = f'label_replace({_OF_PODS}, "{_new}", "$1", "label_pai_install_{_old}", "(.*)")'
_OF_JOB = (
    f"* on (namespace, pod) group_left ({', '.join(_JOB_LABELS)}) "
    f"max by (namespace, pod, {', '.join(_JOB_LABELS)}) ({_OF_PODS})"
)
_DURATION = r"^[0-9]+[smhd]$"
_PLACE = re.compile(r"\{([a-z][a-z-]*)\}")
PAGE = "docs/alerts.md"
# computed once for alerts and pages: over an hour of all devices of 1,000 nodes, a page would wait for seconds
RECORDED: Mapping[str, str] = {
    "pai_node_cpu_busy_ratio": '1 - avg by (node) (rate(node_cpu_seconds_total{mode="idle"}[5m]))',
    "pai_node_filesystem_used_ratio": "max by (node) (1 - node_filesystem_avail_bytes / node_filesystem_size_bytes)",
    "pai_node_received_bytes_rate": "sum by (node) (rate(node_network_receive_bytes_total[5m]))",
    "pai_node_sent_bytes_rate": "sum by (node) (rate(node_network_transmit_bytes_total[5m]))",
    "pai_node_read_bytes_rate": "sum by (node) (rate(node_disk_read_bytes_total[5m]))",
    "pai_node_written_bytes_rate": "sum by (node) (rate(node_disk_written_bytes_total[5m]))",
    "pai_node_gpu_busy_percent": "avg by (node) (DCGM_FI_DEV_GPU_UTIL)",
    "pai_node_gpu_memory_ratio": "sum by (node) (DCGM_FI_DEV_FB_USED) / sum by (node) (DCGM_FI_DEV_FB_TOTAL)",
    "pai_node_gpu_celsius": "max by (node) (DCGM_FI_DEV_GPU_TEMP)",
    "pai_node_gpu_watts": "sum by (node) (DCGM_FI_DEV_POWER_USAGE)",
}
# groups that are evaluated each minute, because their alerts wait for minutes and their expressions read much
_EACH_MINUTE = ("machines", "health", "pods", "jobs")

Severity = Literal["fatal", "error", "warn", "info", "none"]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Alert(_Data):
    """One alert. summary: a template of Prometheus. when: an expression with {threshold} of the site.

    hardware: sent also during maintenance.
    """

    summary: str
    meaning: str
    when: str
    for_: Annotated[str, Field(alias="for", pattern=_DURATION)] = "0s"
    severity: Severity
    action: str
    hardware: bool = False

    @property
    def thresholds(self) -> tuple[str, ...]:
        """The names of thresholds of the site in its expression."""
        return tuple(name for name in dict.fromkeys(_PLACE.findall(self.when)) if name not in ("disk", *xids()))


class _File(_Data):
    groups: Mapping[str, Mapping[str, Alert]]


@cache
def alerts() -> Mapping[str, Mapping[str, Alert]]:
    """Returns group -> name -> alert. Raises pydantic's ValidationError for an invalid file, a bug in pai-install."""
    return _File.model_validate(load_yaml(RULES.read_text(encoding="utf-8"))).groups


def rule_groups(wanted: Monitoring) -> dict[str, Any]:
    """Returns the rules with the thresholds of a site, for Prometheus."""
    values = _thresholds(wanted)
    recorded = [{"record": name, "expr": expression} for name, expression in RECORDED.items()]
    return {
        "groups": [
            {"name": "pai-recorded", "interval": "1m", "rules": recorded},
            *(
                {
                    "name": f"pai-{group}",
                    **({"interval": "1m"} if group in _EACH_MINUTE else {}),
                    "rules": [_rule(name, alert, values) for name, alert in members.items()],
                }
                for group, members in alerts().items()
            ),
        ]
    }


def own_rule_groups(site: Site) -> dict[str, Any] | None:
    """Returns the rules of prometheus.customized-alerts, or None without any."""
    section = site.services.prometheus
    if section is None or section.customized_alerts is None:
        return None
    found: dict[str, Any] = load_untrusted_yaml(section.customized_alerts)
    names = [{"record": name, "expr": expression} for name, expression in _openpai_names(section.customized_alerts)]
    return {"groups": [*([{"name": "pai-openpai-names", "rules": names}] if names else []), *found["groups"]]}


def _openpai_names(text: str) -> Iterator[tuple[str, str]]:
    """Yields the metrics of OpenPAI that a text uses, with their expressions."""
    table: Mapping[str, str] = load_yaml(OPENPAI_NAMES.read_text(encoding="utf-8"))
    words = set(_WORD.findall(text))
    for name, expression in table.items():
        # Each rule costs evaluation, so only names that the site's own rules use are recorded.
        if name in words:
            yield name, expression.replace("{job}", _OF_JOB)


def _thresholds(wanted: Monitoring) -> Mapping[str, str]:
    """Returns name -> number, as PromQL writes it."""
    numbers = {name.replace("_", "-"): value for name, value in wanted.thresholds.model_dump().items()}
    # str() of a small float may have an exponent, and of 90.0 a useless zero.
    shown = {name: f"{Decimal(str(value)).normalize():f}" for name, value in {**numbers, "disk": wanted.disk}.items()}
    return {**shown, **xids()}


@cache
def xids() -> Mapping[str, str]:
    """Returns the numbers of Xids that warn and that are fatal, by the list of the health checks, as expressions."""
    found: dict[str, list[int]] = {"WARN": [], "FAIL": []}
    for numbers, _name, verdict, *_ in load_yaml(XIDS.read_text(encoding="utf-8"))["xids"]:
        found.setdefault(verdict, []).extend(numbers if isinstance(numbers, list) else [numbers])
    return {
        name: "|".join(map(str, sorted(found[verdict])))
        for name, verdict in (("xid-warn", "WARN"), ("xid-fatal", "FAIL"))
    }


def _rule(name: str, alert: Alert, values: Mapping[str, str]) -> dict[str, Any]:
    expression = _PLACE.sub(lambda found: values[found.group(1)], alert.when)
    annotations = {"summary": alert.summary, "action": alert.action, "docs": f"{PAGE}#{name.lower()}"}
    held = {} if alert.for_ == "0s" else {"for": alert.for_}
    return {
        "alert": name,
        "expr": expression,
        **held,
        "labels": {"severity": alert.severity, **({"hardware": "true"} if alert.hardware else {})},
        "annotations": annotations,
    }
