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
from pai_install.monitoring.scrape import Scraping, configuration
from pai_install.parts.monitoring import own_rules
from pai_install.run.own_rules import require_valid
from pai_install.site import load_site
from pai_install.site.services.own_monitoring import Monitoring
from tests.errors import raises
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


OWN = """
monitoring:
  remote-write: [{name: far, url: https://store.example.com/write, token: planted}]
prometheus:
  customized-alerts: |
    groups:
      - name: own
        rules:
          - {alert: Busy, expr: 'avg by (username) (task_gpu_percent{virtual_cluster="default"}) > 90', for: 1h}
          - {alert: Large, expr: task_mem_usage_byte > 1e12 or task_cpu_percent > 1 or task_gpu_mem_percent > 99}
          - {alert: Old, expr: nvidiasmi_utilization_memory + nvidiasmi_performance_state > configured_gpu_count}
"""


def test_rules_of_a_site_are_checked_before_prometheus_gets_them(promtool: Path, tmp_path: Path) -> None:
    def rules_of(services: str) -> str:
        folder = write_site(tmp_path / "site", config="user: pai\npassword: example\n", services=services)
        found = own_rules(load_site(folder).site)
        assert found is not None
        return found

    require_valid(rules_of(OWN), promtool)
    with raises("own-rules-invalid"):
        require_valid(rules_of(OWN.replace("> 90", "> > 90")), promtool)


def test_a_rule_of_openpai_gets_the_labels_of_the_job(promtool: Path, tmp_path: Path) -> None:
    folder = write_site(tmp_path / "site", config="user: pai\npassword: example\n", services=OWN)
    own = own_rules(load_site(folder).site)
    assert own is not None
    (tmp_path / "rules.yml").write_text(own)
    job = 'label_pai_install_job="j", label_pai_install_user="alice", label_pai_install_virtual_cluster="default"'
    series = {
        'DCGM_FI_DEV_GPU_UTIL{gpu="0", namespace="vision", pod="j-0", node="n1"}': "95x90",
        f'kube_pod_labels{{namespace="vision", pod="j-0", uid="1", {job}}}': "1x90",
        'kube_pod_labels{namespace="vision", pod="other", uid="2"}': "1x90",
    }
    check = {"alertname": "Busy", "eval_time": "80m", "exp_alerts": [{"exp_labels": {"username": "alice"}}]}
    listed = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": listed, "alert_rule_test": [check]}
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    run(promtool, tmp_path, "test", "rules", "tests.yml")


def test_a_configuration_with_rules_and_remote_stores_is_valid(promtool: Path, tmp_path: Path) -> None:
    folder = write_site(tmp_path / "site", config="user: pai\npassword: example\n", services=OWN)
    made = configuration(load_site(folder).site, Scraping(30, 9100), "")
    assert "planted" not in json.dumps(made)
    for name in ("rules.yml", "customized.yml"):
        (tmp_path / name).write_text("groups: []")
    text = json.dumps(made).replace("/etc/prometheus-tls", str(tmp_path)).replace("/etc/prometheus", str(tmp_path))
    text = text.replace("/var/run/secrets/kubernetes.io/serviceaccount", str(tmp_path))
    for name in ("tls.crt", "tls.key", "ca.crt", "token", "remote-0-token"):
        (tmp_path / name).write_text("x")
    (tmp_path / "prometheus.yml").write_text(text)
    run(promtool, tmp_path, "check", "config", "--syntax-only", "prometheus.yml")


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
