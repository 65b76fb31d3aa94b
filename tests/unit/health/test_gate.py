"""The health check at the end of an installation."""

from __future__ import annotations

from pathlib import Path

from pai_install.checks.verdict import Verdict
from pai_install.engine.base import Event, EventKind
from pai_install.health.collect.run import PLAYBOOK
from pai_install.health.gate import health_gate
from pai_install.health.memory.store import HealthStore
from pai_install.site.load import load_site
from tests.replay import ReplayEngine

from .machines import gpu_change, healthy
from .test_checkup import LAYOUT, answer, document


def test_gate_gives_what_is_wrong_and_one_pass_per_good_machine(tmp_path: Path) -> None:
    (tmp_path / "layout.yaml").write_text(LAYOUT)
    (tmp_path / "config.yaml").write_text("user: pai\npassword: planted-secret\n")
    sick = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy(2, "gpu-02"))
    events = (
        answer("gpu-01", document(healthy(2, "gpu-01"))),
        answer("gpu-02", document(sick)),
        Event(EventKind.UNREACHABLE, host="master", result={"msg": "no route"}),
        Event(EventKind.DONE),
    )
    gate = health_gate(load_site(tmp_path).site, tmp_path / "health", ReplayEngine({PLAYBOOK: events}), print)
    found = gate(("gpu-01", "gpu-02", "master"))
    verdicts = {(item.subject, item.id): item.verdict for item in found}
    assert verdicts == {
        ("master", "machine-reachable"): Verdict.FAIL,
        ("gpu-02 0000:18:00.0", "gpu-remap-failed"): Verdict.FAIL,
        ("gpu-01", "health"): Verdict.PASS,
    }
    assert HealthStore(tmp_path / "health").history("gpu-02")[0].failed == ("gpu-remap-failed",)
