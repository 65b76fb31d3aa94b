"""Whom Alertmanager tells: web hooks, and the administrator by OpenPAI's section."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pai_install.monitoring.routes import SECRETS, routing_of
from pai_install.site import Site, load_site
from pai_install.site.load import read_site
from pai_install.site.rules.pending import pending
from tests.unit.site.sites import write_site

MAIL = """
monitoring: true
alert-manager:
  repeat-interval: 12h
  alert-handler:
    email-configs:
      admin-receiver: admin@example.com
      smtp-host: smtp.example.com
      smtp-port: {port}
      smtp-from: pai@example.com
      smtp-auth-username: pai
      smtp-auth-password: planted-mail
"""


def site(folder: Path, services: str) -> Site:
    return load_site(write_site(folder, config="user: pai\npassword: example\n", services=services)).site


@pytest.mark.parametrize(("port", "tls"), [(587, True), (25, False)])
def test_mail_by_the_section_of_openpai(tmp_path: Path, port: int, tls: bool) -> None:
    routing = routing_of(site(tmp_path, MAIL.format(port=port)))
    (config,) = routing.configuration["receivers"][1]["email_configs"]
    assert (config["to"], config["smarthost"]) == ("admin@example.com", f"smtp.example.com:{port}")
    assert config["require_tls"] == tls
    assert all(f".Annotations.{name}" in config["text"] for name in ("summary", "action", "docs"))
    assert config["auth_password_file"] == f"{SECRETS}/mail-password"
    assert routing.secrets == {"mail-password": "planted-mail"}
    assert "planted-mail" not in json.dumps(routing.configuration)
    assert routing.configuration["route"]["repeat_interval"] == "12h"


def test_without_a_receiver_nothing_is_sent(tmp_path: Path) -> None:
    routing = routing_of(site(tmp_path, "monitoring: true\n"))
    assert routing.configuration["receivers"][1] == {"name": "everybody", "webhook_configs": [], "email_configs": []}
    assert routing.secrets == {}


def test_a_dead_node_and_maintenance_silence_the_rest(tmp_path: Path) -> None:
    dead, kept, *others = routing_of(site(tmp_path, "monitoring: true\n")).configuration["inhibit_rules"]
    assert all(rule["equal"] == ["node"] for rule in (dead, kept, *others))
    assert 'hardware!="true"' in kept["target_matchers"]


@pytest.mark.parametrize(
    ("services", "told"), [("prometheus: {port: 1}\n", True), ("monitoring: true\nprometheus: {}\n", False)]
)
def test_openpais_sections_need_monitoring(tmp_path: Path, services: str, told: bool) -> None:
    assert any("monitoring: true" in line for line in pending(site(tmp_path, services))) == told


OPENPAI = """
monitoring: true
prometheus: {port: 9191}
alert-manager:
  customized-routes: {routes: [{receiver: a}]}
  cert-expiration-checker: {alert-residual-days: 20}
  cluster-utilization: {schedule: "0 0 * * *"}
  job-status-change-notification: {enable: true}
  customized-receivers:
    - name: a
      actions: {email-admin: null, stop-jobs: null, cordon-nodes: null}
"""


def test_keys_of_openpai_without_effect_are_explained_at_their_lines(tmp_path: Path) -> None:
    reading = read_site(write_site(tmp_path, config="user: pai\npassword: example\n", services=OPENPAI))
    found = [problem for problem in reading.problems if problem.code == "site.no-effect"]
    assert sorted(problem.line for problem in found) == [3, 5, 6, 7, 8, 11, 11]
    assert all(problem.severity == "warning" and problem.remedy for problem in found)


def test_without_monitoring_they_are_not_named_one_by_one(tmp_path: Path) -> None:
    text = OPENPAI.replace("monitoring: true", "monitoring: false")
    reading = read_site(write_site(tmp_path, config="user: pai\npassword: example\n", services=text))
    assert "site.no-effect" not in {problem.code for problem in reading.problems}
