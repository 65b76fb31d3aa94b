"""Alerts as data: texts, thresholds, and routes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pai_install.monitoring.rules import Alert, alerts, rule_groups
from pai_install.site.services.own_monitoring import Monitoring, Thresholds

ROOT = Path(__file__).parents[3]
ALL = {name: alert for group in alerts().values() for name, alert in group.items()}


def test_names_are_unique() -> None:
    assert len(ALL) == sum(len(group) for group in alerts().values())


@pytest.mark.parametrize(("name", "alert"), ALL.items())
def test_texts_are_one_sentence_without_a_full_stop(name: str, alert: Alert) -> None:
    for text in (alert.summary, alert.action):
        assert not text.endswith("."), name
        assert ";" not in text, name
    assert alert.meaning.endswith("."), name


def test_a_page_that_an_alert_names_exists() -> None:
    rules = [rule for group in rule_groups(Monitoring())["groups"] for rule in group["rules"] if "alert" in rule]
    texts = [rule["annotations"][key] for rule in rules for key in ("docs", "action")]
    named = {page for text in texts for page in re.findall(r"docs/[\w/-]+\.md", text)}
    assert named >= {"docs/alerts.md", "docs/high-availability.md"}
    assert [page for page in sorted(named) if not (ROOT / page).is_file()] == []
    headings = {line.removeprefix("### ").lower() for line in (ROOT / "docs/alerts.md").read_text().splitlines()}
    assert {text.partition("#")[2] for text in texts if "#" in text} <= headings


def test_every_threshold_is_used() -> None:
    used = {threshold for alert in ALL.values() for threshold in alert.thresholds}
    assert used == {name.replace("_", "-") for name in Thresholds.model_fields}


def test_a_site_changes_a_threshold() -> None:
    wanted = Monitoring.model_validate({"thresholds": {"gpu-celsius": 85, "series": 1_234_567}})
    found = json.dumps(rule_groups(wanted))
    assert "DCGM_FI_DEV_GPU_TEMP >= 85" in found
    assert "> 1234567 " in found


def test_alerts_of_hardware_have_a_label_that_maintenance_spares() -> None:
    rules = [rule for group in rule_groups(Monitoring())["groups"] for rule in group["rules"] if "alert" in rule]
    labelled = {rule["alert"] for rule in rules if rule["labels"].get("hardware") == "true"}
    assert labelled == {name for name, alert in ALL.items() if alert.hardware}
    assert "GpuXidFatal" in labelled
