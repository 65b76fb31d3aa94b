"""Every role's molecule scenario, on one lab: converge, idempotence, check mode before and after, on a dirty host."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pai_install.parts.registry import ROLE_MODELS
from tests.e2e.conftest import ROOT, pai_install, traces

pytestmark = pytest.mark.lab

# beside the one of molecule by hand (site/layout.yaml), so that both can be at work
SUBNET = "172.30.82"
# mostly in the order of an installation: each finds the least to make first; any other order passes, too
ROLES = tuple(model.role for model in ROLE_MODELS)


@dataclass(frozen=True)
class Scenarios:
    """A lab whose machines the scenarios share."""

    folder: Path
    site: Path
    ssh: Path

    def run(self, role: str) -> subprocess.CompletedProcess[str]:
        """Runs `molecule test` in the folder of a role; the lab stays."""
        environment = {
            **os.environ,
            "PAI_MOLECULE_SITE": str(self.site),
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


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenarios]:
    """The machines, started by the first scenario; afterwards nothing of them may be left."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    folder = tmp_path_factory.mktemp("molecule")
    site = folder / "site"
    shutil.copytree(ROOT / "tests" / "molecule" / "site", site, ignore=shutil.ignore_patterns(".pai"))
    layout = site / "layout.yaml"
    layout.write_text(layout.read_text().replace("172.30.83.", f"{SUBNET}."))
    found = Scenarios(folder, site, tmp_path_factory.mktemp("ssh"))
    try:
        yield found
    finally:
        found.hang_up()
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


@pytest.mark.parametrize("role", ROLES)
def test_role(scenarios: Scenarios, role: str) -> None:
    done = scenarios.run(role)
    assert done.returncode == 0, done.stdout
    # a step without its playbook is skipped with nothing but a word
    assert "Missing playbook" not in done.stdout
