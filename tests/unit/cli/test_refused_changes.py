"""What a running cluster cannot take is refused before anything is fetched, and named by status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.plan.model import Inventory
from pai_install.run.state import StateFolder
from pai_install.site.model import Site
from tests.unit.cli.stub_environment import NAMES, World, facts, run, write_site
from tests.unit.runs import done, event, phase

NETWORK = {"pod_cidr": "10.200.0.0/13"}
RUNS = {**NETWORK, "version": "1.36.3"}


@dataclass
class Fetching(World):
    """Notes that components were fetched. master: what the control plane runs with."""

    master: dict[str, str] = field(default_factory=dict)
    nodes: tuple[str, ...] = NAMES
    fetched: bool = False

    def __post_init__(self) -> None:
        seen = {name: facts(name)["pai"] for name in NAMES}
        seen["master"]["kubernetes"] = {"control_plane": True, "joined": True, "settings": self.master}
        nodes = [{"name": name, "machine_id": f"id-{name}", "address": "10.0.0.77"} for name in self.nodes]
        seen["master"]["cluster"] = {"error": "", "nodes": nodes, "pods": []}
        answers = (event("ok", name, "Observe", ansible_facts={"pai": seen[name]}) for name in NAMES)
        self.script.setdefault("observe.yml", done(*answers))
        super().__post_init__()

    def inventory(
        self, site: Site, state: StateFolder, notify: object, versions: Mapping[str, Mapping[str, str]] | None = None
    ) -> Inventory:
        """Fetches."""
        self.fetched = True
        return super().inventory(site, state, notify, versions)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def change(site: Path, line: str) -> None:
    """Adds a line to the site's config.yaml."""
    config = site / "config.yaml"
    config.write_text(config.read_text() + line)


@pytest.mark.parametrize("verb", [["plan"], ["apply", "--yes"], ["verify"]])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pod_cidr: 10.9.0.0/16\n", "pod_cidr: the cluster runs with 10.200.0.0/13, the site says 10.9.0.0/16"),
        ("kubernetes_version: 1.35\n", "kubernetes_version: the cluster runs with 1.36.3, the site says 1.35"),
    ],
)
def test_refused_before_anything_is_fetched(
    site: Path, in_world: Any, capsys: Any, verb: list[str], line: str, said: str
) -> None:
    world = in_world(Fetching((phase("base", "one"),), master=RUNS))
    change(site, line)
    assert run([*verb, "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    err = capsys.readouterr().err
    assert f"{site / 'config.yaml'}:3:1: {said}" in err
    assert not world.fetched
    assert [request.playbook for request in world.ansible.requests] == ["observe.yml"]


def test_status_names_it_beside_everything_else(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    in_world(Fetching(master=RUNS))
    change(site, "pod_cidr: 10.9.0.0/16\n")
    assert run(["status", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    out = capsys.readouterr().out
    assert out == snapshot
    assert "one     10.0.0.2" in out


def test_bare_machines_fix_nothing(site: Path, in_world: Any) -> None:
    in_world(World())
    change(site, "pod_cidr: 10.9.0.0/16\n")
    assert run(["plan", "--site", str(site)]) == ExitCode.OK


@pytest.mark.parametrize("work", [(), (phase("base", "one"),)])
def test_plan_names_a_node_that_the_layout_does_not_have(
    site: Path, in_world: Any, capsys: Any, work: tuple[Any, ...], snapshot: SnapshotAssertion
) -> None:
    in_world(Fetching(work, {"base.yml": done(event("ok", "one"))}, master=NETWORK, nodes=("gpu9",)))
    assert run(["plan", "--site", str(site)]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert run(["plan", "--site", str(site), "--format", "json"]) == ExitCode.OK
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["id"], found["subject"]) == ("node-identity", "gpu9")


@pytest.mark.parametrize("argv", [["status"], ["apply", "--yes"], ["verify"]], ids=lambda argv: argv[0])
def test_status_and_reports_name_it_too(site: Path, in_world: Any, capsys: Any, argv: list[str]) -> None:
    script = {name: done(event("ok", "one")) for name in ("base.yml", "verify.yml")}
    for form in ("text", "json"):
        in_world(Fetching((phase("base", "one"),), dict(script), master=NETWORK, nodes=("gpu9",)))
        assert run([*argv, "--site", str(site), "--format", form]) == ExitCode.OK
        out = capsys.readouterr().out
        if form == "text":
            assert "WARN gpu9: the node is missing in layout.yaml" in out
        else:
            found = {(item["id"], item["subject"]) for item in json.loads(out)["findings"]}
            assert ("node-identity", "gpu9") in found
