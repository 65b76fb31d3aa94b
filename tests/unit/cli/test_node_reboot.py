"""`node reboot` and `node replace` from argv to exit code, on a cluster in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.operations.removed_machines import NAME, removed_machines
from pai_install.run.state import open_state
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.operations.test_node_remove import node
from tests.unit.runs import done, event


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.run.cluster_calls._POLL_S", 0)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


class Rebooting(FakeCluster):
    """Every node has another boot whenever it is asked for again."""

    asked = 0

    def list(self, *selects: Any) -> tuple[tuple[JsonObject, ...], ...]:
        self.asked += 1
        for ref, item in self.objects.items():
            if ref.kind == "node":
                item["status"]["nodeInfo"]["bootID"] = f"boot-{self.asked}"
        return super().list(*selects)


def world_of(sick: Sequence[Finding] = (), failed: Sequence[str] = ()) -> World:
    """Three nodes whose machines reboot."""
    events = [event("failed" if host in failed else "changed", host, "Reboot") for host in ("one", "two")]
    script: dict[str, Any] = {"reboot.yml": done(*events, failures=failed, rc=2 if failed else 0)}
    nodes = (node(name, identity=f"id-{name}") for name in ("master", "one", "two"))
    return World(script=script, api=Rebooting.of(*nodes), sick=tuple(sick))


def cordoned(world: World) -> set[str]:
    return {ref.name for ref, item in world.api.objects.items() if item.get("spec", {}).get("unschedulable")}


def reboots(world: World) -> list[tuple[str, ...]]:
    return [request.limit for request in world.ansible.requests if request.playbook == "reboot.yml"]


def reboot(site: Path, *words: str) -> int:
    return run(["node", "reboot", "--site", str(site), "one", "two", "--yes", *words])


def test_one_after_the_other_and_all_back_in_scheduling(site: Path, in_world: Any) -> None:
    world = in_world(world_of())
    assert reboot(site) == ExitCode.OK
    assert reboots(world) == [("one",), ("two",)]
    assert cordoned(world) == set()


def test_two_at_a_time(site: Path, in_world: Any) -> None:
    world = in_world(world_of())
    assert reboot(site, "--max-unavailable", "100%") == ExitCode.OK
    assert reboots(world) == [("one", "two")]


def test_the_first_bad_batch_is_the_last(site: Path, in_world: Any, capsys: Any) -> None:
    world = in_world(world_of(failed=("one",)))
    assert reboot(site) == ExitCode.STEP_FAILED
    assert reboots(world) == [("one",)]
    assert cordoned(world) == {"one"}
    assert "two" in capsys.readouterr().out


def test_the_same_command_goes_on_where_the_one_before_ended(site: Path, in_world: Any) -> None:
    world = in_world(world_of(failed=("two",)))
    assert reboot(site) == ExitCode.STEP_FAILED
    assert cordoned(world) == {"two"}
    world.script["reboot.yml"] = done(event("changed", "two", "Reboot"))
    assert reboot(site) == ExitCode.OK
    assert reboots(world) == [("one",), ("two",), ("two",)]
    assert cordoned(world) == set()
    labels = [item["metadata"].get("labels") for ref, item in world.api.objects.items() if ref.kind == "node"]
    assert not any(labels), "another command begins anew"


def test_a_machine_that_comes_back_unhealthy_stops_the_rest(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    world = in_world(world_of(sick=[Finding("gpu-lost", Verdict.FAIL, "one", "GPU 3 is lost")]))
    assert reboot(site) != ExitCode.OK
    assert reboots(world) == [("one",)]
    assert cordoned(world) == {"one"}
    assert capsys.readouterr().out == snapshot


def test_a_width_that_is_none_is_a_usage_error(site: Path, in_world: Any, capsys: Any) -> None:
    world = in_world(world_of())
    assert reboot(site, "--max-unavailable", "some") == ExitCode.USAGE
    assert reboots(world) == []
    assert "--max-unavailable 'some'" in capsys.readouterr().err


def replace(site: Path, *words: str) -> int:
    return run(["node", "replace", "--site", str(site), "one", *words])


def test_another_machine_takes_the_name(site: Path, in_world: Any) -> None:
    world = in_world(World(api=FakeCluster.of(node("master"), node("one", ready=False, identity="old"), node("two"))))
    open_state(site).known_hosts.write_text("10.0.0.2 ssh-ed25519 A\n")
    assert replace(site, "--hostip", "10.0.0.9", "--yes") == ExitCode.OK
    assert Ref("node", "one") not in world.api.objects
    assert removed_machines([world.api.objects[Ref("configmap", NAME, "kube-system")]]) == {"one": "old"}
    assert "hostname: one, hostip: 10.0.0.9," in (site / "layout.yaml").read_text().replace('"', "")
    assert open_state(site).known_hosts.read_text() == ""
    looked = [request.limit for request in world.ansible.requests if request.playbook == "observe.yml"]
    assert looked == [("master",), ("master", "one")], "the old machine is asked nothing"


def test_a_machine_that_is_alive_is_not_replaced(site: Path, in_world: Any, capsys: Any) -> None:
    world = in_world(World(api=FakeCluster.of(node("master"), node("one"), node("two"))))
    assert replace(site, "--yes") == ExitCode.PREFLIGHT_FAILED
    said = capsys.readouterr().err
    assert "code: node-not-dead" in said
    assert "--dead" not in said, "an option of another command"
    assert Ref("node", "one") in world.api.objects


def test_check_stops_after_the_first_plan_and_json_is_one_document(site: Path, in_world: Any, capsys: Any) -> None:
    world = in_world(World(api=FakeCluster.of(node("master"), node("one", ready=False), node("two"))))
    assert replace(site, "--check") == ExitCode.OK
    assert Ref("node", "one") in world.api.objects
    capsys.readouterr()
    assert replace(site, "--yes", "--format", "json") == ExitCode.OK
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2
    assert replace(site) == ExitCode.USAGE, "no one can be asked"
