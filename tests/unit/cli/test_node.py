"""The verbs of nodes from argv to exit code, on a cluster in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.run.lock import site_lock
from pai_install.run.state import open_state
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.cluster.test_drain import pod
from tests.unit.operations.test_nodes import node


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


@pytest.fixture
def world(in_world: Any) -> World:
    made: World = in_world(World(api=FakeCluster.of(node("one"), node("two"), node("master"))))
    return made


def cordoned(world: World) -> set[str]:
    return {ref.name for ref, item in world.api.objects.items() if item.get("spec", {}).get("unschedulable")}


def test_cordon_goes_the_way_of_every_verb_that_acts(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    words = ["node", "cordon", "--site", str(site), "one", "two", "--yes"]
    assert run(words) == ExitCode.OK
    assert cordoned(world) == {"one", "two"}
    assert world.ansible.requests == [], "the API is enough"
    out, err = capsys.readouterr()
    assert err == snapshot
    assert out == snapshot
    assert "done in" in out
    assert "2 changes" in out
    state = open_state(site)
    begun = json.loads(state.journal.read_text().splitlines()[0])
    assert (begun["operation"], begun["phases"]) == ("node cordon", ["cordon"])
    report = json.loads(state.reports()[0].read_text())
    undo = report["phases"][0]["undo"]
    assert undo.split() == ["pai-install", "node", "uncordon", "one", "two"]
    kept = state.reports()[0]
    assert f"<code>{undo}</code>" in kept.with_suffix(".html").read_text()
    assert f"- `{undo}`" in kept.with_suffix(".md").read_text()
    assert report["phases"][0]["hosts"]["one"]["changes"][0]["task"] == "Cordon the node"
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().err == snapshot


def test_check_changes_nothing_and_its_plan_can_be_kept(site: Path, world: World, tmp_path: Path, capsys: Any) -> None:
    assert run(["node", "cordon", "--site", str(site), "one", "--check"]) == ExitCode.OK
    assert cordoned(world) == set()
    out, err = capsys.readouterr()
    assert "nothing was changed" in out
    kept = tmp_path / "kept.json"
    kept.write_text(Path(err.rpartition("plan: ")[2].strip()).read_text())
    assert run(["node", "cordon", "--site", str(site), "two", "--yes", "--plan", str(kept)]) == ExitCode.USAGE
    assert "code: plan-file-of-other-command" in capsys.readouterr().err
    assert run(["node", "cordon", "--site", str(site), "one", "--yes", "--plan", str(kept)]) == ExitCode.OK
    assert cordoned(world) == {"one"}
    code = run(["node", "cordon", "--site", str(site), "one", "--yes", "--plan", str(kept)])
    assert code == ExitCode.PREFLIGHT_FAILED
    assert "code: plan-file-outdated" in capsys.readouterr().err


def test_report_as_json(site: Path, world: World, capsys: Any) -> None:
    assert run(["node", "cordon", "--site", str(site), "one", "--yes", "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    assert report["phases"][0]["hosts"]["one"]["status"] == "changed"
    assert cordoned(world) == {"one"}


def test_wrong_names_and_no_names_are_usage_errors(site: Path, world: World, capsys: Any) -> None:
    assert run(["node", "cordon", "--site", str(site), "tow", "--yes"]) == ExitCode.USAGE
    assert "code: unknown-node" in capsys.readouterr().err
    assert run(["node", "cordon", "--site", str(site), "--yes"]) == ExitCode.USAGE
    assert run(["node", "cordon", "--site", str(site), "one"]) == ExitCode.USAGE, "nobody can be asked"
    assert cordoned(world) == set()


def test_one_at_a_time(site: Path, world: World) -> None:
    with site_lock(open_state(site).path, "apply"):
        assert run(["node", "cordon", "--site", str(site), "one", "--yes"]) == ExitCode.PREFLIGHT_FAILED
    assert cordoned(world) == set()


def test_uncordon_takes_back(site: Path, world: World) -> None:
    assert run(["node", "cordon", "--site", str(site), "one", "two", "--yes"]) == ExitCode.OK
    assert run(["node", "uncordon", "--site", str(site), "one", "--yes"]) == ExitCode.OK
    assert cordoned(world) == {"two"}


def test_drain_cordons_first_and_one_node_that_fails_does_not_stop_the_others(
    site: Path, in_world: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr("pai_install.run.cluster_calls._POLL_S", 0)
    held, free = pod("held", node="one"), pod("free", node="two")
    world = in_world(World(api=FakeCluster.of(node("one"), node("two"), held, free)))
    world.api.protected.add("held")
    words = ["node", "drain", "--site", str(site), "one", "two", "--yes", "--timeout", "1"]
    assert run(words) == ExitCode.STEP_FAILED
    assert cordoned(world) == {"one", "two"}
    out = capsys.readouterr().out
    assert out == snapshot
    assert "disruption budget" in out
    assert "free" not in {ref.name for ref in world.api.objects}
    world.api.protected.clear()
    assert run(words) == ExitCode.OK
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().err == snapshot
