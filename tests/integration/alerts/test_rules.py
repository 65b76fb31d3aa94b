"""Every alert with promtool: it does not fire just below its threshold, fires beyond it, and resolves."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from pai_install.monitoring.dashboards import dashboards
from pai_install.monitoring.export import exported
from pai_install.monitoring.rules import alerts, rule_groups
from pai_install.monitoring.scrape import Scraping
from pai_install.site import load_site
from pai_install.site.services.own_monitoring import Monitoring
from tests.integration.alerts.scenarios import scenarios
from tests.unit.site.sites import write_site

ALL = {name: alert for group in alerts().values() for name, alert in group.items()}


def run(promtool: Path, folder: Path, *words: str) -> None:
    """Runs promtool, which must succeed."""
    done = subprocess.run([promtool, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_scenario() -> None:
    assert {scenario.alert for scenario in scenarios(ALL)} == ALL.keys() - {"Watchdog"}


@pytest.mark.parametrize("step", [1, 5])
def test_every_alert_fires_beyond_its_threshold_alone(promtool: Path, tmp_path: Path, step: int) -> None:
    (tmp_path / "rules.yml").write_text(json.dumps(rule_groups(Monitoring())))
    tests = [scenario.test() for scenario in scenarios(ALL) if scenario.step == step]
    document = {"rule_files": ["rules.yml"], "evaluation_interval": f"{step}m", "tests": tests}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    run(promtool, tmp_path, "check", "rules", "rules.yml")
    run(promtool, tmp_path, "test", "rules", "tests.yml")


def test_exported_files_and_queries_are_valid(promtool: Path, tmp_path: Path) -> None:
    config = "user: pai\npassword: example\nenable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"
    site = load_site(write_site(tmp_path / "site", config=config, services="monitoring: true\n")).site
    tls = dict.fromkeys(("tls.crt", "tls.key", "ca.crt"), "x")
    found = exported(site, Scraping(30, 9100, outside=True), {"username": "a", "password": "b"}, tls)
    for path, file in found.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(file.content)
    own = tmp_path / "prometheus"
    (own / "cluster").mkdir()
    for name in ("ca.crt", "token"):
        (own / "cluster" / name).write_text("x")
    run(promtool, own, "check", "config", "prometheus.yml")
    queries = [query for board in dashboards().values() for panel in board.panels for query in panel.queries.values()]
    rules = [{"record": f"query_{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "queries.yml").write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    run(promtool, tmp_path, "check", "rules", "queries.yml")


# metrics of a node that is off for an hour, with two pods of a DaemonSet, one of them on the node
OFF = {
    'up{job="node", node="n1"}': "0x60",
    'kube_node_status_condition{node="n1", condition="Ready", status="true"}': "0x60",
    'kube_node_status_condition{node="n1", condition="Ready", status="unknown"}': "1x60",
    'kube_node_status_condition{node="n2", condition="Ready", status="true"}': "1x60",
    'kube_pod_status_ready{namespace="kube-system", pod="proxy-1", uid="1", condition="false"}': "1x60",
    'kube_pod_status_phase{namespace="kube-system", pod="proxy-1", uid="1", phase="Running"}': "1x60",
    'kube_pod_info{namespace="kube-system", pod="proxy-1", uid="1", node="n1"}': "1x60",
    'kube_daemonset_status_desired_number_scheduled{namespace="kube-system", daemonset="proxy"}': "2x60",
    'kube_daemonset_status_number_ready{namespace="kube-system", daemonset="proxy"}': "1x60",
}


def test_every_alert_that_a_dead_node_causes_names_the_node(promtool: Path, tmp_path: Path) -> None:
    """Otherwise MachineDown could not silence it."""
    (tmp_path / "rules.yml").write_text(json.dumps(rule_groups(Monitoring())))
    own = 'ALERTS{alertstate="firing", alertname!="Watchdog"}'
    named = ("MachineDown", "NodeUnreachable", "PodOfSystemNotReady")
    samples = [{"labels": f'{{alertname="{name}", node="n1"}}', "value": 1} for name in named]
    check = {"expr": f"group by (alertname, node) ({own})", "eval_time": "50m", "exp_samples": samples}
    series = [{"series": name, "values": values} for name, values in OFF.items()]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [check]}
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    run(promtool, tmp_path, "test", "rules", "tests.yml")
