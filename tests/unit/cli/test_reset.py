"""reset from argv to exit code: nothing without the cluster's id, workers before what serves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import ExitCode
from pai_install.operations.reset import Reset, cluster_id
from pai_install.plan.model import Inventory, LocalWork, Playbook
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.site import Site
from pai_install.site.load import load_site
from tests.unit.cli.stub_environment import NAMES, World, facts, run, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.runs import done, event


@pytest.fixture
def site_dir(tmp_path: Path) -> Path:
    return write_site(tmp_path / "my-cluster")


@pytest.fixture
def site(site_dir: Path) -> Site:
    return load_site(site_dir).site


def member(name: str) -> Observed:
    return Observed(hostname=name, kubernetes=Membership(node=True, joined=True), roles={"base": RoleRecord()})


def observation(*names: str, **unreachable: str) -> Observation:
    return Observation(Inventory({}, {}, {}), {name: member(name) for name in names}, unreachable)


def test_workers_go_first_and_data_stays(site: Site) -> None:
    plan = Reset(cluster="my-cluster").plan(site, observation(*NAMES))
    assert [(step.name, step.names) for step in plan.steps] == [
        ("clean-workers", ("one", "two")),
        ("clean-servers", ("master",)),
        ("forget", NAMES[1:] + NAMES[:1]),
    ]
    actions = [step.action for step in plan.steps]
    assert isinstance(actions[0], Playbook)
    assert actions[0].variables == {"machine_reset_data": False}
    assert isinstance(actions[2], LocalWork)
    assert actions[2].arguments["how"] == "keep"
    with_data = Reset(cluster="x", with_data=True).plan(site, observation(*NAMES)).steps[0].action
    assert isinstance(with_data, Playbook)
    assert with_data.variables == {"machine_reset_data": True}


def test_clean_machines_are_nothing_to_do_and_dead_ones_are_named(site: Site) -> None:
    clean = Observation(Inventory({}, {}, {}), {name: Observed(hostname=name) for name in NAMES})
    assert Reset(cluster="x").plan(site, clean).empty
    plan = Reset(cluster="x").plan(site, observation("master", "one", two="no route"))
    assert plan.unreachable == {"two": "no route"}
    assert "two" not in plan.hosts


def test_the_id_is_openpais_or_the_folders_name(site: Site, tmp_path: Path) -> None:
    assert cluster_id(site) == "my-cluster"
    folder = write_site(tmp_path / "other")
    (folder / "services-configuration.yaml").write_text("cluster:\n  common:\n    cluster-id: pai-7\n")
    assert cluster_id(load_site(folder).site) == "pai-7"


def test_nothing_happens_without_the_right_id(site_dir: Path, in_world: Any, capsys: Any) -> None:
    world = in_world(World())
    assert run(["reset", "--site", str(site_dir), "--yes", "other"]) == ExitCode.USAGE
    assert "code: cluster-id-differs" in capsys.readouterr().err
    assert run(["reset", "--site", str(site_dir)]) == ExitCode.USAGE
    assert "code: no-terminal" in capsys.readouterr().err
    assert world.ansible.requests == []


def test_with_the_id_every_machine_is_cleaned(site_dir: Path, in_world: Any, capsys: Any) -> None:
    world = in_world(World(script={"reset.yml": done(*(event("changed", name) for name in NAMES))}))
    assert run(["reset", "--site", str(site_dir), "--yes", "my-cluster"]) == ExitCode.OK, capsys.readouterr().err
    cleaned = [request.limit for request in world.ansible.requests if request.playbook == "reset.yml"]
    assert cleaned == [("one", "two"), ("master",)]


def test_nobody_asks_the_cluster_that_is_gone_to_keep_something(site_dir: Path, in_world: Any, capsys: Any) -> None:
    cluster, found = FakeCluster(), {name: facts(name) for name in NAMES}
    found["master"]["pai"]["kubernetes"] = {"control_plane": True, "node": True, "joined": True}
    seen = done(*(event("ok", name, ansible_facts=found[name]) for name in NAMES))
    cleaned = done(*(event("changed", name) for name in NAMES))
    in_world(World(api=cluster, script={"observe.yml": seen, "reset.yml": cleaned}))
    (site_dir / ".pai").mkdir(exist_ok=True)
    (site_dir / ".pai" / "registry.json").write_text("{}")
    run(["reset", "--site", str(site_dir), "--yes", "my-cluster"])
    assert cluster.calls == []
    assert "site-state" not in capsys.readouterr().out
