"""A control plane that dies in the middle of a run: the machine that asked it is not the one that is unreachable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
INVENTORY = {
    "all": {
        "hosts": {
            "one": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
            "dead": {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_connection": "ssh"},
        },
        "children": {"control_plane": {"hosts": {"dead": {}}}},
    }
}


# only what asks the leader: what a role does before that must not touch the controller host
ROLES = {
    "worker": ("main", {"worker_leader": "dead", "worker_endpoint": "x:1", "worker_node_name": "one"}),
    "node_labels": ("main", {"node_labels_leader": "dead", "node_labels_labels": {"a": "b"}}),
    "control_plane": ("join", {"control_plane_leader": "dead", "control_plane_address": "10.0.0.1"}),
}


@pytest.mark.parametrize("role", ROLES)
def test_machine_names_the_control_plane_that_is_gone(role: str, tmp_path: Path) -> None:
    inventory, playbook = tmp_path / "inventory.yml", tmp_path / "play.yml"
    tasks_from, variables = ROLES[role]
    inventory.write_text(yaml.safe_dump(INVENTORY | {"asking": {"hosts": {"one": variables}}}))
    include = {"ansible.builtin.include_role": {"name": role, "tasks_from": tasks_from}}
    play = {"name": "Test", "hosts": "one", "gather_facts": False, "tasks": [{"pai_facts": None}, include]}
    playbook.write_text(yaml.safe_dump([play]))
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(inventory), str(playbook)],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        capture_output=True,
        text=True,
        check=False,
    )
    recap = next(line for line in done.stdout.splitlines() if line.startswith("one ") and "ok=" in line)
    assert "failed=1" in recap, done.stdout
    assert "dead, the control plane that" in done.stdout
    assert "does not answer" in done.stdout, done.stdout
