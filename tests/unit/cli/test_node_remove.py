"""`node remove` and `node add` from argv to exit code, on a cluster in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.kube.model import Ref
from pai_install.operations.removed_machines import NAME, removed_machines
from pai_install.run.state import open_state
from pai_install.run.verification_state import read_proof
from tests.unit.cli.stub_environment import LAYOUT, World, run, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.cluster.test_drain import pod
from tests.unit.operations.test_node_remove import node
from tests.unit.runs import done, event, phase

COMMENTED = LAYOUT.replace("  - {hostname: one", "  # the first of two\n  - {hostname: one")
SERVICES = """\
scheduler: {type: default}
virtual-clusters:
  - {name: research, quota: [{sku: cpu, machines: 2}]}
"""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.run.cluster_calls._POLL_S", 0)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    (folder / "layout.yaml").write_text(COMMENTED)
    return folder


@pytest.fixture
def world(in_world: Any) -> World:
    """Three nodes; cleaning works."""
    nodes = (node(name, identity=f"id-{name}") for name in ("master", "one", "two"))
    made: World = in_world(World(script={"reset.yml": reset("one", "two")}, api=FakeCluster.of(*nodes)))
    return made


def reset(*hosts: str) -> Any:
    """How cleaning goes."""
    return done(*(event("changed", host, "Take it off") for host in hosts))


def left(world: World) -> set[str]:
    """The nodes that the cluster has."""
    return {ref.name for ref in world.api.objects if ref.kind == "node"}


def remove(site: Path, *words: str) -> int:
    return run(["node", "remove", "--site", str(site), *words])


def test_a_machine_leaves_cluster_and_layout_and_is_refused_from_then_on(site: Path, world: World, capsys: Any) -> None:
    assert remove(site, "one", "--yes") == ExitCode.OK, capsys.readouterr()
    assert left(world) == {"master", "two"}
    assert (site / "layout.yaml").read_text() == COMMENTED.replace(COMMENTED.splitlines(keepends=True)[7], "")
    assert removed_machines([world.api.objects[Ref("configmap", NAME, "kube-system")]]) == {"one": "id-one"}
    assert [request.limit for request in world.ansible.requests] == [("master", "one"), ("one",)]
    out, err = capsys.readouterr()
    assert "-  - {hostname: one" in out
    assert "undo" not in out + err


def test_a_machine_can_stay_in_the_layout(site: Path, world: World, snapshot: SnapshotAssertion) -> None:
    assert remove(site, "one", "--yes", "--keep-in-layout") == ExitCode.OK
    assert (site / "layout.yaml").read_text() == snapshot
    assert left(world) == {"master", "two"}


def test_check_changes_nothing(site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert remove(site, "one", "--check") == ExitCode.OK
    assert left(world) == {"master", "one", "two"}
    assert (site / "layout.yaml").read_text() == COMMENTED
    assert capsys.readouterr().err == snapshot


def test_jobs_stand_in_the_way_until_they_have_ended(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    world = in_world(World(script={"reset.yml": reset("one")}, api=FakeCluster.of(node("one"), pod("train", "Job"))))
    assert remove(site, "one", "--yes") == ExitCode.PREFLIGHT_FAILED
    assert "code: machines-run-jobs" in capsys.readouterr().err
    assert remove(site, "one", "--yes", "--wait", "0") == ExitCode.STEP_FAILED
    assert capsys.readouterr().out == snapshot
    assert "one" in left(world)
    del world.api.objects[Ref("pod", "train", "ml")]
    assert remove(site, "one", "--yes") == ExitCode.OK
    assert "one" not in left(world)


def test_several_machines_are_agreed_to_by_name(site: Path, world: World, capsys: Any) -> None:
    more = '  - {hostname: three, hostip: 10.0.0.4, machine-type: cpu, pai-worker: "true"}\n'
    (site / "layout.yaml").write_text(COMMENTED + more)
    assert remove(site, "one", "two", "--yes") == ExitCode.USAGE
    assert "--yes=one,two" in capsys.readouterr().err
    assert remove(site, "one", "two", "--yes=one") == ExitCode.USAGE
    assert left(world) == {"master", "one", "two"}
    assert remove(site, "one", "two", "--yes=two,one") == ExitCode.OK
    assert left(world) == {"master"}


def test_wrong_names_and_the_last_control_plane_are_refused_before_anything(
    site: Path, world: World, capsys: Any
) -> None:
    assert remove(site, "tow", "--yes") == ExitCode.USAGE
    assert "code: machine-not-in-layout" in capsys.readouterr().err
    assert remove(site, "master", "--yes") == ExitCode.USAGE
    assert "--yes=master" in capsys.readouterr().err
    assert remove(site, "master", "--yes=master") == ExitCode.SITE_INVALID
    assert "control plane" in capsys.readouterr().err
    assert remove(site, "one") == ExitCode.USAGE, "no one can be asked"
    assert world.ansible.requests == []
    assert left(world) == {"master", "one", "two"}


def test_the_last_worker_stays(site: Path, world: World, capsys: Any) -> None:
    assert remove(site, "one", "two", "--yes=one,two") == ExitCode.SITE_INVALID
    assert "code: edited-site-invalid" in capsys.readouterr().err
    assert left(world) == {"master", "one", "two"}


def test_a_quota_that_would_not_fit_is_named(site: Path, world: World, capsys: Any) -> None:
    (site / "services-configuration.yaml").write_text(SERVICES)
    assert remove(site, "one", "--yes") == ExitCode.SITE_INVALID
    err = capsys.readouterr().err
    assert "code: edited-site-invalid" in err
    assert "services-configuration.yaml:3:" in err
    assert left(world) == {"master", "one", "two"}


def test_a_machine_that_cannot_be_cleaned_stays_in_the_layout_and_the_next_run_ends_it(
    site: Path, in_world: Any, capsys: Any
) -> None:
    failing: dict[str, Any] = {
        "reset.yml": done(
            event("failed", "one", "Take it off", msg="/var/lib/kubelet is mounted"), failures=["one"], rc=2
        )
    }
    world = in_world(World(script=failing, api=FakeCluster.of(node("one"), node("two"))))
    assert remove(site, "one", "--yes") == ExitCode.STEP_FAILED
    assert "/var/lib/kubelet is mounted" in capsys.readouterr().out
    assert "one" not in left(world)
    assert (site / "layout.yaml").read_text() == COMMENTED
    world.script["reset.yml"] = reset("one")
    assert remove(site, "one", "--yes") == ExitCode.OK
    assert "hostname: one" not in (site / "layout.yaml").read_text()


def test_a_dead_machine_is_never_asked(site: Path, in_world: Any) -> None:
    world = in_world(World(api=FakeCluster.of(node("one", ready=False), node("two"))))
    (open_state(site).path / "known_hosts").write_text("10.0.0.2 ssh-ed25519 AAAA\n10.0.0.3 ssh-ed25519 BBBB\n")
    assert remove(site, "one", "--dead", "--yes") == ExitCode.OK
    assert [request.limit for request in world.ansible.requests] == [("master",)]
    assert "hostname: one" not in (site / "layout.yaml").read_text()
    assert open_state(site).known_hosts.read_text() == "10.0.0.3 ssh-ed25519 BBBB\n"


def test_report_as_json_is_one_document(site: Path, world: World, capsys: Any) -> None:
    assert remove(site, "one", "--yes", "--format", "json") == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    assert [phase["name"] for phase in report["phases"]][-1] == "forget"


def add(site: Path, *words: str) -> int:
    return run(["node", "add", "--site", str(site), *words])


def test_a_machine_is_added_from_options(site: Path, world: World) -> None:
    words = ("three", "--hostip", "10.0.0.4", "--machine-type", "cpu")
    assert add(site, *words, "--check") == ExitCode.OK
    assert "three" not in (site / "layout.yaml").read_text()
    assert add(site, *words, "--yes") == ExitCode.OK
    text = (site / "layout.yaml").read_text()
    assert text.startswith(COMMENTED)
    assert "hostname: three" in text.removeprefix(COMMENTED)
    assert add(site, *words, "--yes") == ExitCode.OK, "the same again"
    assert (site / "layout.yaml").read_text() == text


def test_an_absent_machine_is_back_when_it_is_added(site: Path, world: World) -> None:
    assert remove(site, "one", "--yes", "--keep-in-layout") == ExitCode.OK
    assert add(site, "one", "--yes") == ExitCode.OK
    assert "absent: false" in (site / "layout.yaml").read_text()


def test_what_cannot_be_added_is_said(site: Path, world: World, capsys: Any) -> None:
    assert add(site, "three", "--yes") == ExitCode.USAGE
    assert "code: machine-not-in-layout" in capsys.readouterr().err
    assert add(site, "three", "--hostip", "10.0.0.4", "--yes") == ExitCode.USAGE
    assert add(site, "one", "--hostip", "10.0.0.9", "--machine-type", "cpu", "--yes") == ExitCode.USAGE
    assert "another hostip" in capsys.readouterr().err
    assert add(site, "three", "--hostip", "10.0.0.3", "--machine-type", "cpu", "--yes") == ExitCode.SITE_INVALID
    assert world.ansible.requests == []


def test_a_machine_that_failed_is_cleaned_and_named(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    failing = done(
        event("failed", "one", "Install the packages", msg="E: no such host"),
        event("changed", "two", "ok"),
        failures=["one"],
        rc=2,
    )
    script = {"base.yml": failing, "reset.yml": reset("one")}
    world = in_world(World((phase("base", "one", "two"),), script, api=FakeCluster.of(node("master"))))
    assert add(site, "one", "two", "--yes") == ExitCode.STEP_FAILED
    assert capsys.readouterr().err == snapshot
    assert [request.limit for request in world.ansible.requests if request.playbook == "reset.yml"] == [("one",)]
    assert "hostname: one" in (site / "layout.yaml").read_text()


def replace(site: Path, *words: str) -> int:
    return run(["node", "replace", "one", "--site", str(site), "--yes", *words])


def test_a_machine_is_replaced_by_one_with_another_address(site: Path, in_world: Any, capsys: Any) -> None:
    world = in_world(World(api=FakeCluster.of(node("one", ready=False, identity="id-one"), node("two"))))
    assert replace(site, "--hostip", "10.0.0.9", "--format", "json") == ExitCode.OK
    assert '{hostname: one, hostip: "10.0.0.9",' in (site / "layout.yaml").read_text()
    assert removed_machines([world.api.objects[Ref("configmap", NAME, "kube-system")]]) == {"one": "id-one"}
    assert [len(run["phases"]) > 0 for run in json.loads(capsys.readouterr().out)["runs"]] == [True, True]


def test_a_ready_node_is_not_replaced(site: Path, world: World) -> None:
    assert replace(site, "--hostip", "10.0.0.9") == ExitCode.PREFLIGHT_FAILED
    assert (site / "layout.yaml").read_text() == COMMENTED
    assert left(world) == {"master", "one", "two"}


def test_a_replacement_that_fails_to_join_is_cleaned_and_the_same_command_resumes(site: Path, in_world: Any) -> None:
    failing = done(event("failed", "one", "Install the packages", msg="E: no such host"), failures=["one"], rc=2)
    script = {"base.yml": failing, "reset.yml": reset("one")}
    world = in_world(World((phase("base", "one"),), script, api=FakeCluster.of(node("one", ready=False))))
    assert replace(site) == ExitCode.STEP_FAILED
    assert [request.limit for request in world.ansible.requests if request.playbook == "reset.yml"] == [("one",)]
    world.script["base.yml"] = done(event("changed", "one", "Install the packages"))
    assert replace(site) == ExitCode.OK


def test_the_control_plane_is_verified_where_the_scheduler_lost_capacity(
    site: Path, in_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    capacity = phase("addons", "master")
    monkeypatch.setattr("pai_install.operations.node_remove.capacity_steps", lambda *_words: iter((capacity,)))
    script = {
        "reset.yml": reset("one"),
        "addons.yml": done(event("changed", "master", "Apply the add-ons")),
        "verify.yml": done(event("ok", "master", "Verify")),
    }
    in_world(World(script=script, api=FakeCluster.of(node("one"), node("two"))))
    assert remove(site, "one", "--yes") == ExitCode.OK
    assert "master" not in read_proof(open_state(site).proof).unproven
