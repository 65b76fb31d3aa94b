"""The example inventory works with plain ansible-playbook, and names only variables that roles have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.roles import ROLES, specification

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "inventories" / "example"
PROGRAMS = Path(sys.executable).parent
# variables of the inventory's own, that derived.yml puts together
OWN = ("cluster_", "ansible_", "kubernetes_version", "coredns_version", "etcd_version", "pause_version")
LISTS = {"runtime_programs", "kubernetes_programs"}
# group of the example -> roles that its machines run
ROLES_OF = {
    "all": ("base", "time_sync", "container_runtime", "kubernetes_node", "api_proxy", "node_labels", "cluster_verify"),
    "control_plane": ("control_plane",),
    "workers": ("worker",),
}


def run(*words: str) -> str:
    """What one of Ansible's programs prints."""
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    command = [str(PROGRAMS / words[0]), "-i", str(EXAMPLE), *words[1:]]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_playbooks_can_be_read_with_it() -> None:
    run("ansible-playbook", "playbooks/site.yml", "--syntax-check")


def test_every_role_runs_on_its_machines() -> None:
    listed = run("ansible-playbook", "playbooks/site.yml", "--list-tasks", "--list-hosts")
    for role in (role for roles in ROLES_OF.values() for role in roles):
        assert f"{role} : " in listed
    assert "pattern: ['component_store']\n    hosts (0)" in listed


@pytest.fixture(scope="module")
def variables() -> dict[str, dict[str, Any]]:
    """Machine -> its variables as the files give them."""
    found: dict[str, dict[str, Any]] = json.loads(run("ansible-inventory", "--list"))["_meta"]["hostvars"]
    return found


def options(role: str) -> dict[str, dict[str, Any]]:
    """Options of a role."""
    found: dict[str, dict[str, Any]] = specification(ROOT, role)["options"]
    return found


def test_variables_are_ones_that_roles_have(variables: dict[str, dict[str, Any]]) -> None:
    declared = {name for role in ROLES for name in options(role)}
    given = {name for values in variables.values() for name in values}
    assert {name for name in given - declared - LISTS if not name.startswith(OWN)} == set()


def test_required_variables_are_given(variables: dict[str, dict[str, Any]]) -> None:
    groups = {"all": sorted(variables), **members()}
    for group, roles in ROLES_OF.items():
        required = {name for role in roles for name, option in options(role).items() if option.get("required")}
        for machine in groups[group]:
            assert required <= variables[machine].keys(), machine


def members() -> dict[str, list[str]]:
    """Group -> machines."""
    children = yaml.safe_load((EXAMPLE / "hosts.yml").read_text())["all"]["children"]
    return {name: sorted(group["hosts"]) for name, group in children.items()}


def test_variables_that_follow_from_others_have_values() -> None:
    """Put together by Ansible itself, on each machine, without going there."""
    wanted = {
        "master-1": {
            "time_sync_exclusive": False,
            "control_plane_leader": "master-1",
            "control_plane_address": "192.0.2.11",
        },
        "worker-1": {"time_sync_servers": ["192.0.2.11"], "worker_leader": "master-1", "time_sync_exclusive": True},
        "worker-2": {
            "api_proxy_servers": {"master-1": "192.0.2.11"},
            "cluster_verify_nodes": {"master-1": True, "worker-1": True, "worker-2": True},
            "kubernetes_node_kubelet_args": {"node-ip": "192.0.2.22"},
            "container_runtime_nvidia": True,
        },
    }
    for machine, values in wanted.items():
        message = "{{ {" + ", ".join(f"'{name}': {name}" for name in values) + "} | to_json }}"
        printed = run("ansible", machine, "-m", "ansible.builtin.debug", "-a", f"msg={message}")
        assert json.loads(json.loads(printed.split("=>", 1)[1])["msg"]) == values
