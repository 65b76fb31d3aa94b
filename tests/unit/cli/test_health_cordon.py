"""`health --act cordon` goes through the site's lock, the journal and a report, like every verb that acts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import ExitCode
from pai_install.health.report import HealthReport
from pai_install.kube.labels import CORDONED_BY_HEALTH
from pai_install.run.lock import site_lock
from pai_install.run.state import open_state
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.health.act.test_cordon import report
from tests.unit.operations.test_nodes import node


class HealthRun:
    """Machine `one` is sick, `two` has recovered."""

    def run(self, _request: object) -> HealthReport:
        return report(bad=["one"], good=["two", "master"])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("pai_install.app.health.health_run", lambda _app, _request: HealthRun())
    return write_site(tmp_path / "cluster")


@pytest.fixture
def world(in_world: Any) -> World:
    ours = node("two", cordoned=True, labels={CORDONED_BY_HEALTH: "gpu-xid"})
    made: World = in_world(World(api=FakeCluster.of(node("one"), ours, node("master"))))
    return made


def spec(world: World, name: str) -> tuple[Any, Any]:
    (item,) = (item for ref, item in world.api.objects.items() if ref.name == name)
    return item["spec"].get("unschedulable"), item["metadata"]["labels"].get(CORDONED_BY_HEALTH)


def test_sick_machine_is_cordoned_and_the_run_is_on_record(site: Path, world: World, capsys: Any) -> None:
    words = ["health", "--site", str(site), "--act", "cordon", "--max-cordoned", "0.5"]
    assert run(words) == ExitCode.VERIFICATION_FAILED
    assert spec(world, "one") == (True, "gpu-remap-failed")
    err = capsys.readouterr().err
    assert "cordoned one: gpu-remap-failed" in err
    state = open_state(site)
    begun = json.loads(state.journal.read_text().splitlines()[0])
    assert (begun["operation"], begun["phases"]) == ("health --act cordon", ["cordon"])
    saved = json.loads((state.reports()[0].parent / "plan.json").read_text())
    assert saved["arguments"] == {"max_cordoned": 0.5}
    assert saved["phases"][0]["hosts"][0]["reasons"] == ["check gpu-remap-failed failed"]
    assert run(words) == ExitCode.VERIFICATION_FAILED
    assert len(state.reports()) == 1, "a run without work leaves no report"


def test_nothing_is_cordoned_while_another_run_has_the_site(site: Path, world: World, capsys: Any) -> None:
    with site_lock(open_state(site).path, "apply"):
        assert run(["health", "--site", str(site), "--act", "cordon"]) == ExitCode.PREFLIGHT_FAILED
    assert spec(world, "one") == (None, None)
    assert "code: site-locked" in capsys.readouterr().err


def test_node_that_cannot_be_changed_is_an_error(site: Path, world: World, capsys: Any) -> None:
    def refuse(*_: object) -> None:
        raise KeyboardInterrupt

    world.api.patch = refuse  # type: ignore[assignment,method-assign]
    assert run(["health", "--site", str(site), "--act", "cordon"]) == ExitCode.INTERRUPTED
    assert "cordoned one" not in capsys.readouterr().err
