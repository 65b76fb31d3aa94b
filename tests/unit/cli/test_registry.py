"""The verbs of registries from argv to exit code; rotations against scripted machines."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.app.context import App, RunOptions
from pai_install.app.frontend import Event, Question
from pai_install.app.rotations.registry import RotateRegistry, rotate_registry
from pai_install.errors import ExitCode
from pai_install.json_schema import schema_of
from pai_install.plan.model import HostStep, Playbook, Step
from pai_install.registry.compile import served_names
from pai_install.registry.content import Content
from pai_install.registry.identity import (
    at_port,
    open_identity,
    read_identity,
    save,
    with_content_kept,
    with_new_login,
    with_old_port,
)
from pai_install.report.registries import RegistriesReport
from pai_install.run.state import open_state
from pai_install.run.workflow import StageFinished
from pai_install.site import load_site
from tests.unit.cli.stub_environment import NAMES, World, facts, run, write_site
from tests.unit.registry.test_compile import HASH
from tests.unit.runs import done, event

USERS = base64.b64encode(f"team:{HASH}".encode()).decode()
CACHE = "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    with (folder / "config.yaml").open("a") as config:
        config.write(f"{CACHE}docker_cache_htpasswd: {USERS}\n")
    open_identity(open_state(folder).registry, served_names(load_site(folder).site), datetime.now(UTC))
    return folder


@pytest.fixture
def world(in_world: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    """Every phase has nothing left to do; the registries answer."""
    asked = {"id": "registry-reachable", "verdict": "PASS", "subject": "", "message": "answers"}
    answers = [event("ok", name, "Ask", findings=[asked]) for name in NAMES]
    proof = [event("ok", name, "Verify") for name in NAMES]
    made: World = in_world(World(script={"registry-test.yml": done(*answers), "verify.yml": done(*proof)}))
    monkeypatch.setattr("pai_install.operations.registry_rotate.make_plan", lambda *_words, **_more: plan_of(made))
    return made


def plan_of(world: World) -> Any:
    from pai_install.plan.model import Plan  # noqa: PLC0415 - a stand-in for the planner

    return Plan(world.phases, world.settings(), {}, "master")


def generations(site: Path) -> tuple[list[int], list[int]]:
    identity = read_identity(open_state(site).registry)
    assert identity is not None
    return [one.generation for one in identity.logins], [one.generation for one in identity.authorities]


@pytest.mark.parametrize(("what", "left"), [("--credentials", ([2], [1])), ("--ca", ([1], [2]))])
def test_a_rotation_goes_to_its_end(site: Path, world: World, what: str, left: Any) -> None:
    assert run(["registry", "rotate", "--site", str(site), what, "--yes"]) == ExitCode.OK
    assert generations(site) == left
    assert {"registry-test.yml", "verify.yml"} <= {request.playbook for request in world.ansible.requests}


def test_check_only_tells(site: Path, world: World, capsys: Any) -> None:
    assert run(["registry", "rotate", "--site", str(site), "--ca", "--check"]) == ExitCode.OK
    err = capsys.readouterr().err
    assert [line[:2] for line in err.splitlines() if line.endswith("(to do)")] == ["1.", "2.", "3."]
    assert generations(site) == ([1], [1])
    assert world.ansible.requests == []


def test_nothing_to_finish(site: Path, world: World, capsys: Any) -> None:
    assert run(["registry", "rotate", "--site", str(site), "--ca", "--finish", "--yes"]) == ExitCode.OK
    assert "ca" in capsys.readouterr().err.splitlines()[-1]
    assert {request.playbook for request in world.ansible.requests} == {"observe.yml"}


def test_a_login_that_does_not_work_is_taken_back(site: Path, world: World) -> None:
    refused = {"id": "registry-reachable", "verdict": "FAIL", "subject": "", "message": "docker.io cannot be used"}
    world.script["registry-test.yml"] = done(event("ok", "one", "Ask", findings=[refused]))
    assert run(["registry", "rotate", "--site", str(site), "--credentials", "--yes"]) == ExitCode.VERIFICATION_FAILED
    identity = read_identity(open_state(site).registry)
    assert identity is not None
    assert identity.login.generation == 1
    assert generations(site) == ([1, 2], [1])


def begin(site: Path) -> None:
    """A rotation of the login that was interrupted in its first stage."""
    path = open_state(site).registry
    save(path, with_new_login(open_identity(path, served_names(load_site(site).site), datetime.now(UTC))))


def test_a_machine_that_differs_keeps_the_old_good(site: Path, world: World, capsys: Any) -> None:
    begin(site)
    world.phases = (Step("registries", "Point", (HostStep("two", ("changed",)),), Playbook("registries.yml")),)
    world.script["registries.yml"] = done(event("unreachable", "two", "Configure"))
    assert run(["registry", "rotate", "--site", str(site), "--credentials", "--yes"]) == ExitCode.UNREACHABLE
    assert "waiting for two\n" in capsys.readouterr().err
    assert generations(site) == ([1, 2], [1])


def test_a_new_dev_box_makes_up_nothing_to_replace(site: Path, world: World, capsys: Any) -> None:
    open_state(site).registry.unlink()
    assert run(["registry", "rotate", "--site", str(site), "--ca", "--yes"]) == ExitCode.PREFLIGHT_FAILED
    assert "code: site-authority-unknown" in capsys.readouterr().err
    assert not open_state(site).registry.exists()
    assert world.ansible.requests == []


@pytest.mark.parametrize("words", [(), ("--ca", "--credentials"), ("--ca", "--plan", "plan.json")])
def test_one_thing_at_a_time(site: Path, world: World, words: tuple[str, ...]) -> None:
    assert run(["registry", "rotate", "--site", str(site), "--yes", *words]) == ExitCode.USAGE
    assert world.ansible.requests == []


def test_what_is_no_image_is_told(site: Path, world: World, capsys: Any) -> None:
    assert run(["registry", "warm", "--site", str(site), "--", "-x"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "code: argument-invalid" in told
    assert "Tuple" not in told, "our own words say it all"
    assert world.ansible.requests == []


def test_show_says_where_machines_ask_and_who_differs(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    assert run(["registry", "show", "--site", str(site), "--format", "json"]) == ExitCode.OK
    shown = json.loads(capsys.readouterr().out)
    assert shown["cache"] == "docker-cache.pai.internal:30500"
    assert shown["upstreams"] == {"docker.io": "https://docker-cache.pai.internal:30500"}
    assert shown["machines"] == {name: [] for name in NAMES}
    jsonschema.validate(shown, schema_of(RegistriesReport))
    world.phases = (Step("registries", "Point", (HostStep("two", ("never installed",)),), Playbook("registries.yml")),)
    assert run(["registry", "show", "--site", str(site)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert out == snapshot
    assert "two: never installed" in out


def test_what_is_well_is_said_too(site: Path, world: World, capsys: Any) -> None:
    assert run(["registry", "test", "--site", str(site)]) == ExitCode.OK
    assert "one: answers\n" in capsys.readouterr().out


def test_what_the_cache_dropped_is_said_with_its_numbers(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    told = {
        "id": "registry-content",
        "verdict": "PASS",
        "message": "the cache: dropped 1 MB (1 blobs)",
        "value": "2 MB kept",
    }
    answer = event("ok", "master", "Drop it", findings=[{**told, "evidence": '{"after": 2000000}'}])
    world.script["registry-gc.yml"] = done(answer)
    assert run(["registry", "gc", "--site", str(site)]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert run(["registry", "gc", "--site", str(site), "--check", "--format", "json"]) == ExitCode.OK
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert json.loads(found["evidence"]) == {"after": 2_000_000}
    asked = [request.extra_vars["registry_only_count"] for request in world.ansible.requests]
    assert asked == [False, True]


def test_a_rotation_is_one_document_in_json(site: Path, world: World, capsys: Any) -> None:
    words = ["registry", "rotate", "--site", str(site), "--ca", "--yes", "--format", "json"]
    assert run(words) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 0
    assert len(document["runs"]) == 5  # three stages, the question to the registries, the proof of the cluster


POINT = Step("registries", "Point", (HostStep("two", ("changed",)),), Playbook("registries.yml"))


def test_no_rotation_begins_while_machines_differ_from_the_site(site: Path, world: World, capsys: Any) -> None:
    world.phases = (POINT,)
    assert run(["registry", "rotate", "--site", str(site), "--ca", "--yes"]) != ExitCode.OK
    assert "code: rotation-site-not-applied" in capsys.readouterr().err
    assert generations(site) == ([1], [1])


def test_a_last_stage_that_was_interrupted_is_finished(site: Path, world: World) -> None:
    world.phases = (POINT,)
    world.script["registries.yml"] = done(event("changed", "two", "Configure"))
    assert run(["registry", "rotate", "--site", str(site), "--ca", "--finish", "--yes"]) == ExitCode.OK
    assert "registries.yml" in [request.playbook for request in world.ansible.requests]
    assert generations(site) == ([1], [1])


def test_a_proof_that_fails_beside_a_machine_that_is_off_is_told_as_failed(site: Path, world: World) -> None:
    refused = {"id": "registry-reachable", "verdict": "FAIL", "subject": "", "message": "docker.io cannot be used"}
    lost = event("unreachable", "two", "Ask")
    world.script["registry-test.yml"] = done(event("ok", "one", "Ask", findings=[refused]), lost)
    for what in ("--credentials", "--ca"):
        assert run(["registry", "rotate", "--site", str(site), what, "--yes"]) == ExitCode.VERIFICATION_FAILED
    identity = read_identity(open_state(site).registry)
    assert identity is not None
    assert (identity.login.generation, identity.serving_ca) == (1, 1)


def want_port(site: Path, port: int) -> None:
    """The user's edit."""
    (site / "services-configuration.yaml").write_text(f"docker-cache: {{service_nodeport: {port}}}\n")


def ports(site: Path) -> tuple[tuple[int, ...], int]:
    identity = read_identity(open_state(site).registry)
    assert identity is not None
    return identity.ports, identity.used_port


ENDPOINT = ["registry", "rotate", "--endpoint", "--yes", "--site"]


def test_another_port_is_rotated_to_its_end(site: Path, world: World, capsys: Any) -> None:
    begin(site)
    want_port(site, 30600)
    assert run([*ENDPOINT, str(site)]) == ExitCode.OK
    assert ports(site) == ((30600,), 30600)
    assert "(in progress)" in capsys.readouterr().err


def test_a_port_at_which_a_machine_cannot_ask_is_taken_back(site: Path, world: World) -> None:
    begin(site)
    want_port(site, 30600)
    refused = {"id": "registry-reachable", "verdict": "FAIL", "subject": "", "message": "docker.io cannot be used"}
    world.script["registry-test.yml"] = done(event("ok", "one", "Ask", findings=[refused]))
    assert run([*ENDPOINT, str(site)]) == ExitCode.VERIFICATION_FAILED
    assert ports(site) == ((30500, 30600), 30500)


def test_a_machine_at_the_old_port_keeps_it_open(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    begin(site)
    want_port(site, 30600)
    world.phases = (POINT,)
    world.script["registries.yml"] = done(event("unreachable", "two", "Configure"))
    assert run([*ENDPOINT, str(site)]) == ExitCode.UNREACHABLE
    assert ports(site) == ((30500, 30600), 30600)
    assert capsys.readouterr().err == snapshot


def test_a_port_that_is_the_sites_already_is_no_rotation(site: Path, world: World, capsys: Any) -> None:
    assert run([*ENDPOINT, str(site)]) == ExitCode.OK
    assert ports(site) == ((30500,), 30500)
    assert "30500" in capsys.readouterr().err.splitlines()[-1]


def test_show_says_where_machines_really_ask(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    begin(site)
    want_port(site, 30600)
    path = open_state(site).registry
    identity = read_identity(path)
    assert identity is not None
    save(path, with_old_port(at_port(identity, 30600)))
    assert run(["registry", "show", "--site", str(site)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "cache: docker-cache.pai.internal:30500" in out
    assert out == snapshot


OLD = Content(folder="/var/lib/old")


@pytest.fixture
def moved(site: Path, world: World) -> Path:
    """A site whose cache keeps its content elsewhere than the site's files say."""
    seen = {name: facts(name) for name in NAMES}
    seen["master"]["pai"]["roles"]["docker_cache"] = {"notes": {"content": OLD.model_dump_json()}}
    world.script["observe.yml"] = done(*(event("ok", name, "Observe", ansible_facts=seen[name]) for name in NAMES))
    world.script["registry-copy.yml"] = done(event("ok", "master", "Copy"))
    return site


def move(site: Path) -> Content | None:
    identity = read_identity(open_state(site).registry)
    assert identity is not None
    return identity.content


def playbooks(world: World) -> list[str]:
    return [request.playbook for request in world.ansible.requests if request.playbook.startswith("registry")]


def test_content_is_copied_before_and_after_the_switch(
    moved: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    assert run(["registry", "rotate", "--site", str(moved), "--backend", "--yes"]) == ExitCode.OK
    assert playbooks(world) == ["registry-copy.yml", "registry-copy.yml", "registry-test.yml"]
    err = capsys.readouterr().err
    assert err == snapshot
    identity = read_identity(open_state(moved).registry)
    assert identity is not None
    assert (identity.content, identity.left) == (None, None)


def test_a_copy_that_fails_leaves_the_cache_where_it_is(moved: Path, world: World) -> None:
    world.script["registry-copy.yml"] = done(event("failed", "master", "Copy", msg="no room"), failures=["master"])
    assert run(["registry", "rotate", "--site", str(moved), "--backend", "--yes"]) == ExitCode.STEP_FAILED
    assert move(moved) == OLD
    world.script["registry-copy.yml"] = done(event("ok", "master", "Copy"))
    assert run(["registry", "rotate", "--site", str(moved), "--backend", "--finish", "--yes"]) == ExitCode.OK
    assert move(moved) is None


def test_a_new_place_that_does_not_serve_is_left_again(moved: Path, world: World) -> None:
    refused = {"id": "registry-reachable", "verdict": "FAIL", "subject": "", "message": "docker.io cannot be used"}
    world.script["registry-test.yml"] = done(event("ok", "one", "Ask", findings=[refused]))
    assert run(["registry", "rotate", "--site", str(moved), "--backend", "--yes"]) == ExitCode.VERIFICATION_FAILED
    assert move(moved) == OLD


def test_a_place_that_is_used_already_is_told(moved: Path, world: World, capsys: Any) -> None:
    with (moved / "config.yaml").open("a") as config:
        config.write("docker_cache_fs_mount_path: /var/lib/old\n")
    assert run(["registry", "rotate", "--site", str(moved), "--backend", "--yes"]) == ExitCode.OK
    assert "/var/lib/old" in capsys.readouterr().err.splitlines()[-1]
    assert playbooks(world) == []


def test_a_machine_that_says_nothing_of_its_content_is_told(site: Path, world: World, capsys: Any) -> None:
    assert run(["registry", "rotate", "--site", str(site), "--backend", "--yes"]) != ExitCode.OK
    assert "code: registry-record-missing" in capsys.readouterr().err


def test_a_move_that_is_taken_back_in_the_files_is_over(moved: Path, world: World, capsys: Any) -> None:
    world.script["registry-copy.yml"] = done(event("failed", "master", "Copy", msg="no room"), failures=["master"])
    run(["registry", "rotate", "--site", str(moved), "--backend", "--yes"])
    with (moved / "config.yaml").open("a") as config:
        config.write("docker_cache_fs_mount_path: /var/lib/old\n")
    assert run(["registry", "rotate", "--site", str(moved), "--backend", "--yes"]) == ExitCode.OK
    assert "/var/lib/old" in capsys.readouterr().err.splitlines()[-1]
    assert move(moved) is None


def test_machines_that_differ_hold_up_a_move(moved: Path, world: World, capsys: Any) -> None:
    """The apply that is asked for leaves the content where it is."""
    world.phases = (POINT,)
    assert run(["registry", "rotate", "--site", str(moved), "--backend", "--yes"]) != ExitCode.OK
    assert "code: rotation-site-not-applied" in capsys.readouterr().err
    assert move(moved) == OLD
    assert playbooks(world) == []


def test_a_cache_that_did_not_get_the_new_place_keeps_the_old(moved: Path, world: World) -> None:
    """Its machine may drop out in the very moment of the switch."""
    path = open_state(moved).registry
    identity = open_identity(path, served_names(load_site(moved).site), datetime.now(UTC))
    save(path, with_content_kept(identity, OLD))
    world.phases = (Step("addons", "Apply", (HostStep("master", ("changed",)),), Playbook("addons.yml")),)
    world.script["addons.yml"] = done(event("unreachable", "master", "Configure"), dark=["master"])
    assert run(["registry", "rotate", "--site", str(moved), "--backend", "--yes"]) != ExitCode.OK
    assert move(moved) == OLD
    assert playbooks(world) == ["registry-copy.yml"]


@dataclass
class Answers:
    """A front end without a terminal: it collects events, and agrees."""

    events: list[Event] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)

    def notify(self, event: Event) -> None:
        self.events.append(event)

    def confirm(self, question: Question) -> bool:
        self.questions.append(question.text)
        return True

    def require_answers(self) -> None:
        """It has them."""


def test_a_program_can_rotate_and_sees_the_stages(site: Path, world: World) -> None:
    answers = Answers()
    with App(site, world, answers) as app:
        assert rotate_registry(app, RotateRegistry(ca=True), RunOptions()) == ExitCode.OK
    stages = [event.name for event in answers.events if isinstance(event, StageFinished)]
    assert stages == ["trust-new-authority", "serve-new-authority", "distrust-old-authority"]
    assert (answers.questions, len(app.outcomes)) == (["rotate"], 5)
