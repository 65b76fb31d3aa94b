"""`registry rotate --upstream` against scripted machines: asked first, tried, put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai_install.app.rotations import upstream as upstream_rotation
from pai_install.errors import ExitCode
from pai_install.plan.model import HostStep, Playbook, Step
from tests.unit.cli.stub_environment import NAMES, World, run, write_site
from tests.unit.cli.test_registry import CACHE, plan_of
from tests.unit.runs import done, event

SERVICES = """\
registry:
  upstreams:
    - {name: quay.io, username: robot, password: planted}
    - {name: ghcr.io, mirror: "https://harbor.example.com"}
"""
SERVER = Step("addons", "Apply", (HostStep("master", ("changed",)),), Playbook("addons.yml"))
CLIENTS = Step("registries", "Point", (HostStep("two", ("changed",)),), Playbook("registries.yml"))
PLACE = "services-configuration.yaml:3:7: registry.upstreams[0]"
ASK = "registry-upstream.yml"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    with (folder / "config.yaml").open("a") as config:
        config.write(CACHE)
    (folder / "services-configuration.yaml").write_text(SERVICES)
    return folder


@pytest.fixture
def world(in_world: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    """The cache's configuration differs from the site's; everything answers."""
    script = {
        name: done(*(event("ok", host, "Ask") for host in hosts))
        for name, hosts in {ASK: NAMES, "addons.yml": ("master",), "registries.yml": ("two",)}.items()
    }
    proof = {name: done(*(event("ok", host, "Ask") for host in NAMES)) for name in ("registry-test.yml", "verify.yml")}
    made: World = in_world(World(phases=(SERVER, CLIENTS), script={**script, **proof}))
    monkeypatch.setattr("pai_install.operations.registry_rotate.make_plan", lambda *_words, **_more: plan_of(made))
    monkeypatch.setattr(upstream_rotation, "LOGIN_CACHE_S", 0)
    return made


def rotate(site: Path, name: str, *words: str) -> int:
    return run(["registry", "rotate", "--site", str(site), "--upstream", name, "--yes", *words])


def ran(world: World) -> list[tuple[str, str]]:
    """What ran on machines, and what for."""
    requests = [one for one in world.ansible.requests if one.playbook != "observe.yml"]
    return [(one.playbook, str(one.extra_vars.get("registry_does", ""))) for one in requests]


def test_it_is_asked_kept_replaced_tried_and_proven(site: Path, world: World) -> None:
    assert rotate(site, "quay.io", "--image", "quay.io/a/b:1") == ExitCode.OK
    assert ran(world) == [
        (ASK, "keep"),
        ("addons.yml", ""),
        ("registry-test.yml", ""),
        (ASK, "forget"),
        ("verify.yml", ""),
    ]
    (asked,) = [one for one in world.ansible.requests if one.extra_vars.get("registry_does") == "keep"]
    assert asked.extra_vars["registry_asked"] == "registry.upstreams quay.io"


def test_an_account_that_is_refused_changes_nothing(site: Path, world: World, capsys: Any) -> None:
    told = "registry.upstreams quay.io: https://quay.io does not accept the account robot (HTTP 401)"
    world.script[ASK] = done(event("failed", "master", "Ask", msg=told), failures=("master",), rc=2)
    assert rotate(site, "quay.io") == ExitCode.STEP_FAILED
    assert ran(world) == [(ASK, "keep")]
    out, err = capsys.readouterr()
    assert told in out + err
    assert f"{site}/{PLACE}: " in err


def test_what_machines_cannot_use_is_put_back(site: Path, world: World, capsys: Any) -> None:
    refused = {"id": "registry-pull", "verdict": "FAIL", "subject": "", "message": "containerd cannot pull"}
    world.script["registry-test.yml"] = done(event("ok", "one", "Ask", findings=[refused]))
    assert rotate(site, "quay.io", "--image", "quay.io/a/b:1") == ExitCode.VERIFICATION_FAILED
    assert ran(world)[-1] == (ASK, "restore")
    assert f"{site}/{PLACE} stays" in capsys.readouterr().err


def test_a_cache_that_cannot_take_it_gets_the_old_one_back(site: Path, world: World) -> None:
    world.script["addons.yml"] = done(
        event("failed", "master", "Apply the add-ons", msg="did not start"), failures=("master",), rc=2
    )
    assert rotate(site, "quay.io") == ExitCode.STEP_FAILED
    assert ran(world)[-1] == (ASK, "restore")


def test_one_that_was_interrupted_keeps_what_was_kept_first(site: Path, world: World) -> None:
    world.phases = ()
    assert rotate(site, "quay.io") == ExitCode.OK
    assert ran(world)[:2] == [(ASK, "ask"), ("registry-test.yml", "")]


def test_a_mirror_is_asked_by_machines_before_they_get_it(site: Path, world: World) -> None:
    assert rotate(site, "ghcr.io") == ExitCode.OK
    assert ran(world) == [(ASK, "ask"), ("registries.yml", ""), ("registry-test.yml", ""), ("verify.yml", "")]
    (asked,) = [one for one in world.ansible.requests if one.playbook == ASK]
    assert asked.extra_vars["registry_asked"] == "registry.upstreams ghcr.io, mirror"
    assert set(asked.limit) == set(NAMES)


def test_check_only_tells_and_names_the_place(site: Path, world: World, capsys: Any) -> None:
    assert rotate(site, "docker.io", "--check") == ExitCode.OK
    assert "config.yaml:" in capsys.readouterr().err
    assert rotate(site, "quay.io", "--check") == ExitCode.OK
    assert PLACE in capsys.readouterr().err
    assert ran(world) == []


@pytest.mark.parametrize("words", [("nvcr.io",), ("quay.io", "--finish"), ("quay.io", "--ca")])
def test_what_is_no_rotation_of_an_upstream(site: Path, world: World, words: tuple[str, ...]) -> None:
    assert rotate(site, *words) == ExitCode.USAGE
    assert ran(world) == []
