"""`scheduler test` and `scheduler switch` from argv to exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.schedulers.last_applied import kept_object
from pai_install.scheduling.read import scheduling_of
from pai_install.site.load import load_site
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.run.test_scheduler_switch import ENDED, RUNS

KEPT = Finding("scheduler-quota", Verdict.PASS, "cluster", "A queue holds no more than its quota: 2 of 2")
BROKEN = Finding("scheduler-gang", Verdict.FAIL, "cluster", "Jobs hold devices: 2 of 3", remedy="pai-install apply")
LEFT = Finding("scheduler-down", Verdict.SKIP, "cluster", "Pods start: --disruptive tries it")

BLOCK = """\
    physicalCluster:
      cellTypes:
        NODE: {childCellType: CPU, childCellNumber: 3, isNodeLevel: true}
      physicalCells:
        - {cellType: NODE, cellAddress: one}
    virtualClusters:
      default: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    (folder / "services-configuration.yaml").write_text(
        "scheduler: {type: kueue}\nvirtual-clusters: [{name: default, quota: [{sku: cpu, machines: 1}]}]\n"
    )
    return folder


def worker(name: str) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "metadata": {"name": name}, "spec": {}, "status": status}


@pytest.fixture
def world(in_world: Any) -> World:
    api = FakeCluster.of(worker("one"), worker("two"))
    made: World = in_world(World(api=api, promises=(BROKEN, KEPT, LEFT)))
    return made


def test_a_broken_promise_fails_the_test_and_every_promise_is_in_the_table(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    assert run(["scheduler", "test", "--site", str(site), "--back", "60"]) == ExitCode.VERIFICATION_FAILED
    out = capsys.readouterr().out
    assert "PROPERTY  VERDICT  SEEN\n" in out
    assert out == snapshot
    (asked,) = [row["scheduler-test"] for row in world.asked if "scheduler-test" in row]
    assert (asked["backend"], asked["machines"], asked["bounds"]["back_s"]) == ("kueue", ["one", "two"], 60)


def test_the_report_as_json_has_every_finding(site: Path, world: World, capsys: Any) -> None:
    world.promises = (KEPT, LEFT)
    assert run(["scheduler", "test", "--site", str(site), "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    assert [(row["id"], row["verdict"]) for row in report["findings"]] == [
        ("scheduler-quota", "PASS"),
        ("scheduler-down", "SKIP"),
    ]


def test_a_cluster_without_a_free_worker_is_told(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    world.api = FakeCluster()
    assert run(["scheduler", "test", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    assert capsys.readouterr().err == snapshot
    assert not [row for row in world.asked if "scheduler-test" in row]


@pytest.mark.parametrize("words", [["--backend", "slurm"], ["--back", "1"], ["--wait", "1"]])
def test_wrong_arguments_ask_no_machine(site: Path, world: World, words: list[str]) -> None:
    assert run(["scheduler", "test", "--site", str(site), *words]) == ExitCode.USAGE
    assert world.ansible.requests == []


def test_a_site_without_a_scheduler_names_the_option(tmp_path: Path, world: World, capsys: Any) -> None:
    folder = write_site(tmp_path / "plain")
    assert run(["scheduler", "test", "--site", str(folder)]) == ExitCode.USAGE
    assert "--backend" in capsys.readouterr().err
    assert world.ansible.requests == []


class TestSwitch:
    """`scheduler switch` from argv to the file."""

    def switch(self, site: Path, *words: str) -> int:
        return run(["scheduler", "switch", "--site", str(site), *words])

    def text(self, site: Path) -> str:
        return (site / "services-configuration.yaml").read_text()

    def test_jobs_that_run_refuse_it_and_are_named(
        self, site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
    ) -> None:
        world.api = FakeCluster.of(RUNS)
        before = self.text(site)
        assert self.switch(site, "--to", "volcano", "--yes") == ExitCode.PREFLIGHT_FAILED
        said = capsys.readouterr().err
        assert said == snapshot
        assert self.text(site) == before
        assert world.ansible.requests == []

    def test_check_shows_the_file_the_plan_and_the_jobs_and_changes_nothing(
        self, site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
    ) -> None:
        world.api = FakeCluster.of(RUNS)
        before = self.text(site)
        assert self.switch(site, "--to", "volcano", "--check") == ExitCode.OK
        said = capsys.readouterr()
        assert "+scheduler: {type: volcano}" in said.out
        assert said.err == snapshot
        assert self.text(site) == before

    def test_what_is_left_of_jobs_is_named_the_step_is_given_all_and_the_report_is_json(
        self, site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
    ) -> None:
        world.api = FakeCluster.of(ENDED)
        assert self.switch(site, "--to", "default", "--yes", "--format", "json") == ExitCode.OK
        said = capsys.readouterr()
        assert json.loads(said.out)["ok"] is True
        assert said.err == snapshot
        assert "default: " in said.err, "what it does not keep"
        (asked,) = [row["scheduler-switch"] for row in world.asked if "scheduler-switch" in row]
        assert asked == {"before": "kueue", "to": "default", "force": False, "edits": True, "devices": []}

    def test_the_cluster_says_what_it_has_whatever_the_file_says(
        self, site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
    ) -> None:
        """As after a switch that was interrupted."""
        scheduling = scheduling_of(load_site(site).site)
        assert scheduling is not None
        kept = kept_object(replace(scheduling, backend="volcano"))
        world.api = FakeCluster.of(kept)
        assert self.switch(site, "--to", "kueue", "--yes") == ExitCode.OK
        (asked,) = [row["scheduler-switch"] for row in world.asked if "scheduler-switch" in row]
        assert (asked["before"], asked["to"]) == ("volcano", "kueue")
        assert capsys.readouterr().err == snapshot

    def test_what_it_is_already_is_left_alone(self, site: Path, world: World) -> None:
        assert self.switch(site, "--to", "kueue", "--yes") == ExitCode.OK
        assert not [row for row in world.asked if "scheduler-switch" in row]

    def test_openpais_block_is_migrated_first(
        self, site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
    ) -> None:
        device = "computing-device: {type: nvidia.com/gpu, model: A100, count: 3}"
        layout = (site / "layout.yaml").read_text().replace("cpu: {vcore: 4}", f"cpu: {{vcore: 4}}\n    {device}")
        (site / "layout.yaml").write_text(layout)
        (site / "services-configuration.yaml").write_text(f"hivedscheduler:\n  config: |\n{BLOCK}")
        assert self.switch(site, "--to", "kueue", "--yes") == ExitCode.USAGE
        assert capsys.readouterr().err == snapshot
        assert world.ansible.requests == []

    def test_without_an_answer_nothing_is_asked(self, site: Path, world: World, capsys: Any) -> None:
        assert self.switch(site, "--to", "volcano") == ExitCode.USAGE
        assert "add --yes" in capsys.readouterr().err
        assert world.api.calls == []
