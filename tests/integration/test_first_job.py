"""The commands of the quickstart's job, with the BusyBox of its image: no answer of the parameter server is lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.fetch import cached
from pai_install.components.model import Selection
from pai_install.components.modules import Modules
from tests.ports import free_port

JOB = Path(__file__).parents[2] / "layouts/quickstart/job.yaml"
STEPS = 200


@pytest.fixture
def applets(tmp_path: Path) -> Path:
    """A folder of all applets."""
    catalogue = load_catalogue()
    whole, source = resolve(catalogue), Modules(catalogue)
    (pick,) = (pick for pick in whole.picks if pick.component == "busybox")
    entry = cached(Selection(whole.kubernetes_version, "modules", (pick,)), source)[pick]
    if entry is None:
        pytest.skip("busybox is not in the component cache: pai-install components fetch")
    folder = tmp_path / "bin"
    folder.mkdir()
    program = entry.folder.parent / source.programs_key(pick) / "busybox"
    subprocess.run([program, "--install", "-s", folder], check=True)
    return folder


def test_every_step_gets_its_weight(tmp_path: Path, applets: Path) -> None:
    """The client asks again at once, as a worker beside a busy parameter server may."""
    roles: dict[str, Any] = yaml.safe_load(JOB.read_text())["taskRoles"]
    environment = {
        "PATH": str(applets),
        "PAI_HOST_IP_ps_0": "127.0.0.1",
        "PAI_PORT_LIST_ps_0_weights": str(free_port()),
    }
    changes = {
        "1 2 3": f"$(seq {STEPS})",
        "sleep 1": "true",
        "nvidia-smi -L": "",
        "/tmp/": f"{tmp_path}/",
        "/mnt/data/": f"{tmp_path}/",
    }

    def start(role: str) -> subprocess.Popen[str]:
        (command,) = roles[role]["commands"]
        for before, after in changes.items():
            command = command.replace(before, after)
        words = [os.fspath(applets / "sh"), "-c", command]
        return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)

    with start("ps") as server, start("worker") as worker:
        try:
            lines = worker.communicate(timeout=600)[0].splitlines()
        finally:
            worker.kill()
            server.kill()
    assert len(lines) == STEPS
    assert lines[2] == "step 3: weight 3 from the parameter server"
