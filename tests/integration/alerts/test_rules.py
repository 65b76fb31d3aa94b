"""Every alert with promtool: it does not fire just below its threshold, fires beyond it, and resolves."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from pai_install.monitoring.rules import alerts, rule_groups
from pai_install.site.services.own_monitoring import Monitoring
from tests.integration.alerts.scenarios import scenarios

ALL = {name: alert for group in alerts().values() for name, alert in group.items()}


def test_every_alert_has_a_scenario() -> None:
    assert {scenario.alert for scenario in scenarios(ALL)} == ALL.keys() - {"Watchdog"}


@pytest.mark.parametrize("step", [1, 5])
def test_every_alert_fires_beyond_its_threshold_alone(promtool: Path, tmp_path: Path, step: int) -> None:
    (tmp_path / "rules.yml").write_text(json.dumps(rule_groups(Monitoring())))
    tests = [scenario.test() for scenario in scenarios(ALL) if scenario.step == step]
    document = {"rule_files": ["rules.yml"], "evaluation_interval": f"{step}m", "tests": tests}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    for words in (["check", "rules", "rules.yml"], ["test", "rules", "tests.yml"]):
        done = subprocess.run([promtool, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
