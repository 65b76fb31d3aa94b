"""`pai-install alerts` and the alerts of `status`, with a cluster in memory that answers as Alertmanager's amtool."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.operations.test_nodes import node

POD = {
    "kind": "Pod",
    "metadata": {
        "name": "monitoring-1",
        "namespace": "pai-monitoring",
        "labels": {"app.kubernetes.io/name": "monitoring"},
    },
    "spec": {"nodeName": "master"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


def alert(name: str, severity: str, **labels: str) -> dict[str, Any]:
    notes = {"summary": f"{name} of\x1b[31m it", "action": "look at it"}
    return {
        "labels": {"alertname": name, "severity": severity, **labels},
        "annotations": notes,
        "startsAt": "2026-11-26T10:00:00.000Z",
    }


ANSWER = [
    alert("GpuTooHot", "warn", node="one", gpu="3"),
    alert("Watchdog", "none"),
    alert("MachineDown", "error", node="two"),
    alert("CrashLoop", "error", namespace="pai-kueue", pod="kueue-1"),
]


@pytest.fixture
def world(in_world: Any) -> World:
    made: World = in_world(World(api=FakeCluster.of(node("one"), node("two"), node("master"), POD)))
    answering(made, json.dumps(ANSWER))
    return made


def answering(world: World, text: str) -> None:
    """Alertmanager says this from now on."""
    world.outputs.answer = lambda _host, _program: text.splitlines()


def asked(world: World) -> list[tuple[str, tuple[str, ...]]]:
    """Machine and arguments of each request."""
    return [(host, program[4:]) for host, program in world.outputs.asked]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    (folder / "services-configuration.yaml").write_text("monitoring: true\n")
    return folder


def test_the_gravest_alert_is_the_first(site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert run(["alerts", "list", "--site", str(site)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert out == snapshot
    assert "\x1b" not in out
    assert run(["alerts", "list", "--site", str(site), "--format", "json"]) == ExitCode.OK
    names = [entry["name"] for entry in json.loads(capsys.readouterr().out)["alerts"]]
    assert names == ["CrashLoop", "MachineDown", "GpuTooHot"]


@pytest.mark.parametrize("text", ["", "{}", "[1, null]", "[[", '[{"labels": 3}]', "[" * 100_000])
def test_an_answer_that_is_none_stops_nothing(site: Path, world: World, capsys: Any, text: str) -> None:
    answering(world, text)
    assert run(["alerts", "list", "--site", str(site)]) in (ExitCode.OK, ExitCode.VERIFICATION_FAILED)
    assert "internal" not in capsys.readouterr().err


def test_a_silence_is_of_one_node_and_ends(site: Path, world: World, capsys: Any) -> None:
    answering(world, '{"silenceID": "5e1f"}')
    assert run(["alerts", "silence", "two", "--hours", "0.5", "--site", str(site)]) == ExitCode.OK
    ((host, (method, _, body)),) = asked(world)
    assert (host, method) == ("master", "POST")
    sent = json.loads(body)
    assert [(it["name"], it["value"]) for it in sent["matchers"]] == [("node", "two")]
    lasting = datetime.fromisoformat(sent["endsAt"]) - datetime.fromisoformat(sent["startsAt"])
    assert lasting == timedelta(minutes=30)
    assert "5e1f" in capsys.readouterr().out


def test_a_machine_beside_the_nodes_is_silenced(site: Path, world: World, capsys: Any) -> None:
    entry = '  - {hostname: files, hostip: 10.0.0.9, machine-type: cpu, pai-storage: "true"}\n'
    with (site / "layout.yaml").open("a") as layout:
        layout.write(entry)
    answering(world, '{"silenceID": "5e1f"}')
    assert run(["alerts", "silence", "files", "--site", str(site)]) == ExitCode.OK
    assert '"files"' in asked(world)[0][1][2]


CONTROL_PLANES = """\
  - {hostname: master-2, hostip: 10.0.0.11, machine-type: cpu, pai-master: "true"}
  - {hostname: master-3, hostip: 10.0.0.12, machine-type: cpu, pai-master: "true"}
"""


def test_a_silence_is_in_the_alertmanager_of_each_control_plane(site: Path, world: World, capsys: Any) -> None:
    """Without gossip. Another one sends the alerts after a failover."""
    with (site / "layout.yaml").open("a") as layout:
        layout.write(CONTROL_PLANES)
    answering(world, '{"silenceID": "5e1f"}')
    world.outputs.off = frozenset({"master-3"})
    assert run(["alerts", "silence", "two", "--site", str(site), "--format", "json"]) == ExitCode.OK
    said = capsys.readouterr()
    assert json.loads(said.out)["silences"] == {"master": "5e1f", "master-2": "5e1f"}
    assert "master-3" in said.err


@pytest.mark.parametrize("off", ["", "master"])
def test_with_gossip_one_alertmanager_gets_the_silence(site: Path, world: World, capsys: Any, off: str) -> None:
    """It tells the others. Each would know as many silences as were asked for."""
    with (site / "layout.yaml").open("a") as layout:
        layout.write(CONTROL_PLANES)
    (site / "services-configuration.yaml").write_text("monitoring: {replicas: 2}\n")
    answering(world, '{"silenceID": "5e1f"}')
    world.outputs.off = frozenset({off})
    assert run(["alerts", "silence", "two", "--site", str(site), "--format", "json"]) == ExitCode.OK
    silenced = "master-2" if off else "master"
    assert json.loads(capsys.readouterr().out)["silences"] == {silenced: "5e1f"}


@pytest.mark.parametrize("text", ["", "[]"])
def test_a_silence_that_no_control_plane_takes_is_none(site: Path, world: World, capsys: Any, text: str) -> None:
    answering(world, text)
    assert run(["alerts", "silence", "two", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert "code: monitoring-not-ready" in said.err


def test_an_unknown_node_is_not_silenced(site: Path, world: World, capsys: Any) -> None:
    assert run(["alerts", "silence", "tow", "--site", str(site)]) == ExitCode.USAGE
    assert asked(world) == []


def test_a_test_alert(site: Path, world: World, capsys: Any) -> None:
    assert run(["alerts", "test", "--site", str(site)]) == ExitCode.OK
    ((_, (_, url, body)),) = asked(world)
    assert url.endswith("/api/v2/alerts")
    assert json.loads(body)[0]["labels"]["alertname"] == "PaiTestAlert"


@pytest.mark.parametrize("words", [["list"], ["test"], ["silence", "one"]])
def test_without_monitoring_no_cluster_is_asked(site: Path, world: World, capsys: Any, words: list[str]) -> None:
    (site / "services-configuration.yaml").write_text("monitoring: false\n")
    assert run(["alerts", *words, "--site", str(site), "--format", "json"]) == ExitCode.USAGE
    assert world.api.calls == []


def test_without_a_ready_pod_there_is_a_remedy(site: Path, world: World, capsys: Any) -> None:
    world.api.objects = {ref: item for ref, item in world.api.objects.items() if ref.kind != "pod"}
    assert run(["alerts", "list", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    assert "kubectl --namespace pai-monitoring get pods" in capsys.readouterr().err


def test_status_names_what_fires(site: Path, world: World, capsys: Any) -> None:
    run(["status", "--site", str(site), "--format", "json"])
    found = json.loads(capsys.readouterr().out)["alerts"]
    assert [entry["name"] for entry in found] == ["CrashLoop", "MachineDown", "GpuTooHot"]


def test_status_without_monitoring_asks_for_none(site: Path, world: World, capsys: Any) -> None:
    (site / "services-configuration.yaml").write_text("monitoring: false\n")
    run(["status", "--site", str(site), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["alerts"] is None
    assert asked(world) == []


def test_status_survives_a_monitoring_that_is_away(site: Path, world: World, capsys: Any) -> None:
    world.outputs.off = frozenset({"master"})
    run(["status", "--site", str(site), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["alerts"] is None
