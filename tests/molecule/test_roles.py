"""Every role's molecule scenario, on one lab: converge, idempotence, check mode before and after, on a dirty host."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from _pytest.mark import ParameterSet

from pai_install.parts.registry import ROLE_MODELS
from tests.e2e.conftest import ROOT, equip, pai_install, traces

pytestmark = pytest.mark.lab

# beside the one of molecule by hand (site/layout.yaml), so that both can be at work
SUBNET = "172.30.82"
# mostly in the order of an installation: each finds the least to make first; any other order passes, too
ROLES = tuple(model.role for model in ROLE_MODELS)
# What the end-to-end runs of `make test` leave out. They run every other role, the second time with nothing to
# change; so the scenarios of those are left to `make molecule` and `make soak`.
NOT_IN_END_TO_END = frozenset({"api_proxy", "nvidia_driver", "storage_server"})
# the machines of the cluster; any other belongs to one role alone
SHARED = frozenset({"control-plane", "worker"})


@dataclass(frozen=True)
class Scenarios:
    """A lab whose machines the scenarios share."""

    folder: Path
    site: Path
    ssh: Path

    @property
    def inventory(self) -> Path:
        """The variables of all roles, read once for all scenarios."""
        return self.folder / "site.json"

    def begin(self, *, store: bool) -> None:
        """Brings up the machines; with the store of components, which roles of two lanes would both make."""
        equip(self.site)
        succeed("lab", "up", "--site", str(self.site), "--yes")
        self.inventory.touch(mode=0o600)
        self.inventory.write_text(succeed("inventory", "--site", str(self.site), "--show-secrets"))
        if store:
            words = ("--phase=base,components", "--limit=control-plane")
            succeed("apply", "--site", str(self.site), "--yes", "--accept-new", *words)

    def run(self, role: str) -> subprocess.CompletedProcess[str]:
        """Runs `molecule test` in the folder of a role; the lab stays."""
        environment = {
            **os.environ,
            "PAI_MOLECULE_SITE": str(self.site),
            "PAI_MOLECULE_INVENTORY": str(self.inventory),
            "MOLECULE_EPHEMERAL_DIRECTORY": str(self.folder / role),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.ssh),
            "NO_COLOR": "1",
        }
        return subprocess.run(
            ["molecule", "test", "--destroy", "never"],
            cwd=ROOT / "roles" / role,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )

    def hang_up(self) -> None:
        """Ends the ssh connections that Ansible keeps open."""
        for socket in self.ssh.iterdir():
            command = ["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "machine"]
            subprocess.run(command, capture_output=True, check=False)


def succeed(*words: str) -> str:
    """Runs pai-install, which must succeed; what it printed."""
    done = pai_install(*words, timeout_s=4500)
    assert done.returncode == 0, done.stderr
    return done.stdout


def default(role: str) -> Path:
    """The folder of a role's scenario."""
    return ROOT / "roles" / role / "molecule" / "default"


def machines_of(role: str) -> list[str]:
    """The machines of a role's scenario."""
    platforms = yaml.safe_load((default(role) / "molecule.yml").read_text())["platforms"]
    return [platform["name"] for platform in platforms]


def keep(layout: Path, machines: AbstractSet[str]) -> None:
    """Takes all other machines out of a layout."""
    content = yaml.safe_load(layout.read_text())
    content["machine-list"] = [one for one in content["machine-list"] if one["hostname"] in machines]
    layout.write_text(yaml.safe_dump(content))


def lanes_of(roles: Iterable[str]) -> list[list[str]]:
    """What may run at the same time: roles on the cluster's machines one after another, the others beside them."""
    lanes: dict[bool, list[str]] = {True: [], False: []}
    for role in roles:
        lanes[not SHARED.isdisjoint(machines_of(role))].append(role)
    return [lane for lane in lanes.values() if lane]


def stands_on_something(role: str) -> bool:
    """Whether the scenario begins with an `apply`."""
    prepare = default(role) / "prepare.yml"
    return prepare.exists() and "prerequisites.yml" in prepare.read_text()


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory, selected: list[str]) -> Iterator[Scenarios]:
    """The machines of the scenarios; afterwards nothing of them may be left."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    folder = tmp_path_factory.mktemp("molecule")
    site = folder / "site"
    shutil.copytree(ROOT / "tests" / "molecule" / "site", site, ignore=shutil.ignore_patterns(".pai"))
    layout = site / "layout.yaml"
    layout.write_text(layout.read_text().replace("172.30.83.", f"{SUBNET}."))
    keep(layout, SHARED | {machine for role in selected for machine in machines_of(role)})
    found = Scenarios(folder, site, tmp_path_factory.mktemp("ssh"))
    try:
        found.begin(store=any(stands_on_something(role) for role in selected))
        yield found
    finally:
        found.hang_up()
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


@pytest.fixture(scope="module")
def selected(request: pytest.FixtureRequest) -> list[str]:
    """The roles whose scenarios were asked for, in order."""
    items = (item for item in request.session.items if item.path == request.path)
    asked = (item.callspec.params.get("role") for item in items if hasattr(item, "callspec"))
    return [str(role) for role in asked]


@pytest.fixture(scope="module")
def runs(scenarios: Scenarios, selected: list[str]) -> Iterator[Mapping[str, Future[subprocess.CompletedProcess[str]]]]:
    """The scenario of each role, under way or ended."""
    with ExitStack() as stack:
        found: dict[str, Future[subprocess.CompletedProcess[str]]] = {}
        for lane in lanes_of(selected):
            one_at_a_time = ThreadPoolExecutor(max_workers=1)
            stack.callback(one_at_a_time.shutdown, cancel_futures=True)
            found |= {role: one_at_a_time.submit(scenarios.run, role) for role in lane}
        yield found


def scenario(role: str) -> ParameterSet:
    """The test of a role, with its mark."""
    return pytest.param(role, marks=() if role in NOT_IN_END_TO_END else pytest.mark.soak)


@pytest.mark.parametrize("role", [scenario(role) for role in ROLES])
def test_role(runs: Mapping[str, Future[subprocess.CompletedProcess[str]]], role: str) -> None:
    done = runs[role].result()
    assert done.returncode == 0, done.stdout
    # a step without its playbook is skipped with nothing but a word
    assert "Missing playbook" not in done.stdout


def test_roles_of_the_cluster_wait_for_each_other_and_the_others_do_not_wait_for_them() -> None:
    lanes = lanes_of(["base", "time_sync", "control_plane", "worker"])
    assert lanes == [["control_plane", "worker"], ["base", "time_sync"]]
