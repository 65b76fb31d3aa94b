"""`scheduler test` from argv to exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster

KEPT = Finding("scheduler-quota", Verdict.PASS, "cluster", "A queue holds no more than its quota: 2 of 2")
BROKEN = Finding("scheduler-gang", Verdict.FAIL, "cluster", "Jobs hold devices: 2 of 3", remedy="pai-install apply")
LEFT = Finding("scheduler-down", Verdict.SKIP, "cluster", "Pods start: --disruptive tries it")


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
    site: Path, world: World, capsys: Any
) -> None:
    assert run(["scheduler", "test", "--site", str(site), "--back", "60"]) == ExitCode.VERIFICATION_FAILED
    out = capsys.readouterr().out
    assert "PROPERTY  VERDICT  SEEN\n" in out
    assert "gang      FAIL     Jobs hold devices: 2 of 3\n" in out
    assert "quota     PASS     A queue holds no more than its quota: 2 of 2\n" in out
    assert "down      SKIP     Pods start: --disruptive tries it\n" in out
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


def test_a_cluster_without_a_free_worker_is_told(site: Path, world: World, capsys: Any) -> None:
    world.api = FakeCluster()
    assert run(["scheduler", "test", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    assert "no worker is Ready and takes pods" in capsys.readouterr().err
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
