"""prometheus.customized-alerts: the structure of a rule file, and refusals at the user's line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pai_install.monitoring.rules import own_rule_groups
from pai_install.site import load_site
from pai_install.site.load import read_site
from tests.unit.site.sites import write_site

CONFIG = "user: pai\npassword: example\n"
GOOD = """
groups:
  - name: own
    interval: 30s
    rules:
      - alert: GpuPercent
        expr: avg(task_gpu_percent{virtual_cluster=~"default"}) by (job_name, username) < 0.3
        for: 1h
        labels: {severity: warn, tier: 2}
        annotations: {summary: "{{$labels.job_name}} is idle"}
      - record: job:hot
        expr: max by (job) (nvidiasmi_temperature)
"""
BAD = {
    "no YAML": "groups: [",
    "no groups": "rules: []",
    "a text": "hello",
    "no expression": "groups: [{name: a, rules: [{alert: A}]}]",
    "both": "groups: [{name: a, rules: [{alert: A, record: b, expr: up}]}]",
    "duration": "groups: [{name: a, rules: [{alert: A, expr: up, for: 5 minutes}]}]",
    "unknown key": "groups: [{name: a, rules: [{alert: A, expr: up, when: up}]}]",
    "same name": "groups: [{name: a, rules: []}, {name: a, rules: []}]",
    "our name": "groups: [{name: pai-nodes, rules: []}]",
    "alias": "groups: &a [{name: a, rules: *a}]",
    "many": f"groups: [{{name: a, rules: [{', '.join(['{alert: A, expr: up}'] * 1001)}]}}]",
    "long": f"groups: []\n#{'x' * 300_000}",
}


def services(text: str) -> str:
    block = "".join(f"    {line}\n" for line in text.strip("\n").splitlines())
    return f"monitoring: true\nprometheus:\n  customized-alerts: |\n{block}"


def test_rules_of_a_site_reach_prometheus_with_the_names_of_openpai_that_they_use(tmp_path: Path) -> None:
    groups = own_rule_groups(load_site(write_site(tmp_path, config=CONFIG, services=services(GOOD))).site)
    assert groups is not None
    names, own = groups["groups"]
    assert {rule["record"] for rule in names["rules"]} == {"task_gpu_percent", "nvidiasmi_temperature"}
    assert "{job}" not in json.dumps(names)
    assert [rule.get("alert") or rule["record"] for rule in own["rules"]] == ["GpuPercent", "job:hot"]


@pytest.mark.parametrize("case", BAD)
def test_other_texts_are_refused_at_their_line(tmp_path: Path, case: str) -> None:
    reading = read_site(write_site(tmp_path, config=CONFIG, services=services(BAD[case])))
    assert reading.site is None
    (problem,) = (problem for problem in reading.problems if problem.severity == "error")
    assert (problem.code, problem.line) == ("site.rules", 3)
    assert problem.remedy
    assert len(problem.message) < 400
