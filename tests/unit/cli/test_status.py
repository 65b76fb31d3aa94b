"""The verb status on a scripted engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.run.environment import ProductEnvironment
from pai_install.run.lock import site_lock
from pai_install.run.state import open_state
from pai_install.site.load import load_site
from tests.unit.cli.stub_environment import CONSOLE, World, add_console, facts, run, write_site
from tests.unit.runs import done, event, phase

READY = tuple(
    Finding("node-ready", Verdict.PASS, name, "node is Ready at 1.36.3") for name in ("master", "one", "two")
)  # fmt: skip
SICK = (*READY[:2], Finding("node-ready", Verdict.FAIL, "two", "node is not Ready"))
PODS = Finding("system-pods", Verdict.PASS, "cluster", "all 9 pods of the system run")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def test_cluster_that_is_well(site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion) -> None:
    in_world(World(findings=(*READY, PODS)))
    assert run(["status", "--site", str(site)]) == ExitCode.OK
    out = capsys.readouterr().out.splitlines()
    assert out == snapshot


@pytest.mark.parametrize("words", [[], ["--offline"]])
def test_the_console_and_its_fingerprint_are_told(site: Path, in_world: Any, capsys: Any, words: list[str]) -> None:
    (site / "services-configuration.yaml").write_text(CONSOLE)
    in_world(World(findings=(*READY, PODS)))
    command = ["status", "--site", str(site), *words]
    assert run(command) == ExitCode.OK
    before = [line for line in capsys.readouterr().out.splitlines() if "console" in line]
    address, fingerprint = add_console(site)
    assert before == [address], "a site before its first run has no certificate"
    assert run(command) == ExitCode.OK
    out = capsys.readouterr().out.splitlines()
    assert out[out.index(address) + 1] == fingerprint
    assert run([*command, "--format", "json"]) == ExitCode.OK
    console = json.loads(capsys.readouterr().out)["console"]
    assert console == {"addresses": ["https://10.0.0.1/"], "fingerprint": fingerprint.rpartition(" ")[2]}


def test_sick_node_and_drift_are_named(site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion) -> None:
    in_world(World((phase("base", "one"),), findings=SICK))
    assert run(["status", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    out = capsys.readouterr().out
    assert out == snapshot


def test_silent_machine_is_named_with_the_reason(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    seen = done(
        *(event("ok", name, ansible_facts=facts(name)) for name in ("master", "one")),
        event("unreachable", "two", msg="timed out"),
        dark=["two"],
        rc=4,
    )
    in_world(World(script={"observe.yml": seen}, findings=READY[:2]))
    assert run(["status", "--site", str(site), "--format", "json"]) == ExitCode.UNREACHABLE
    data = json.loads(capsys.readouterr().out)
    assert (data["ok"], data["looked"]) == (False, True)
    assert [machine["state"] for machine in data["machines"]][1:] == snapshot


def test_drift_alone_is_no_error(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(World((phase("base", "one"),), findings=READY))
    assert run(["status", "--site", str(site), "--format", "json"]) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    assert data["machines"][1]["drift"] == ["base: never installed"]
    assert data["machines"][0]["roles"] == ["control-plane"]


def test_last_run_and_what_it_left(site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion) -> None:
    broken = done(event("failed", "one", msg="x"), failures=["one"], rc=2)
    in_world(World((phase("base", "one"), phase("workers", "one")), {"base.yml": broken}))
    assert run(["apply", "--site", str(site), "--yes"]) == ExitCode.STEP_FAILED
    capsys.readouterr()
    assert run(["status", "--site", str(site), "--offline"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert out == snapshot


def test_offline_asks_nobody_and_tells_of_a_cut_off_run(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    world = in_world(World((phase("base", "one"),), {"base.yml": [ZeroDivisionError()]}))
    run(["apply", "--site", str(site), "--yes"])
    asked = len(world.ansible.requests)
    capsys.readouterr()
    assert run(["status", "--site", str(site), "--offline"]) == ExitCode.OK
    assert len(world.ansible.requests) == asked
    assert capsys.readouterr().out == snapshot


def test_the_command_that_was_cut_off_is_the_one_that_continues(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    in_world(World())
    (site / ".pai").mkdir(exist_ok=True)
    (site / ".pai" / "journal.jsonl").write_text('{"run": "r1", "what": "run_started", "operation": "upgrade"}\n')
    run(["status", "--site", str(site), "--offline"])
    assert capsys.readouterr().out == snapshot


def test_while_another_run_works_it_is_named_and_left_alone(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    world = in_world(World())
    with site_lock(open_state(site).path, "apply"):
        assert run(["status", "--site", str(site)]) == ExitCode.OK
    assert world.ansible.requests == []
    assert capsys.readouterr().out == snapshot


def test_without_components_nothing_is_fetched_or_compared(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    world = in_world(World((phase("base", "one"),), findings=(*READY, PODS), stocked_up=False))
    world.settings = lambda: pytest.fail("components were fetched")
    assert run(["status", "--site", str(site)]) == ExitCode.OK
    assert [request.playbook for request in world.ansible.requests] == ["observe.yml"]
    out = capsys.readouterr().out
    assert out == snapshot
    assert "as the site says" not in out
    assert run(["status", "--site", str(site), "--format", "json"]) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    assert (data["looked"], data["compared"]) == (True, False)


def test_connections_need_no_components(site: Path) -> None:
    inventory = ProductEnvironment().connections(load_site(site).site)
    assert inventory.host_vars["one"]["ansible_host"] == "10.0.0.2"
    assert inventory.shared_vars["control_plane_version"].startswith("1.36.")


def test_an_empty_cache_is_seen_without_filling_it(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert not ProductEnvironment().stocked(load_site(site).site)
    assert not (tmp_path / "cache").exists()
