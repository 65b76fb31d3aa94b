"""Docker's data do not move away from under running containers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
REFUSAL = "Docker would lose them"


def checked(folder: Path, containers: int, data_root: str, docker: str) -> str:
    """What the role says in check mode on a machine with such a Docker, where the site says /mnt/docker."""
    facts = {"docker": {"containers": containers, "data_root": data_root}, "os": {"id": "debian", "version_id": "13"}}
    role = {
        "name": "container_runtime",
        "public": False,
        "apply": {"vars": {"container_runtime_docker_data_root": "/mnt/docker", "container_runtime_docker": docker}},
    }
    tasks = [
        {"ansible.builtin.set_fact": {"pai": facts, "cacheable": True}},
        {"ansible.builtin.include_role": role},
    ]
    play = {"name": "Test", "hosts": "localhost", "gather_facts": False, "connection": "local", "tasks": tasks}
    (folder / "play.yml").write_text(yaml.safe_dump([play]))
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "--check", str(folder / "play.yml")],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.replace("\n", " ")


def test_data_root_of_running_containers_stays(tmp_path: Path) -> None:
    said = checked(tmp_path, 3, "/var/lib/docker", "distribution")
    assert REFUSAL in said
    assert "docker_data_root: /var/lib/docker" in said
    assert "Install containerd" not in said, "it was refused too late"


@pytest.mark.parametrize(
    ("containers", "data_root", "docker"),
    [(0, "/var/lib/docker", "distribution"), (3, "/mnt/docker", "distribution"), (3, "/var/lib/docker", "none")],
)
def test_data_root_may_move_without_running_containers(
    tmp_path: Path, containers: int, data_root: str, docker: str
) -> None:
    said = checked(tmp_path, containers, data_root, docker)
    assert REFUSAL not in said
    assert "Install containerd" in said
