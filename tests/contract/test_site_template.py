"""site-template: what a site says reaches every role literally; real Ansible, on this box."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.model import ComponentSet
from pai_install.engine.base import RunRequest
from pai_install.engine.processes import OwnerProcess
from pai_install.engine.workdir import run_files
from pai_install.errors import ExitCode, PaiError
from pai_install.parts.registry import make_context
from pai_install.plan.inventory import build_inventory
from pai_install.plan.literal import literal
from pai_install.plan.model import Inventory
from pai_install.site import Site
from tests.unit.plan.conftest import CONFIG, LAYOUT, ROLES, components, make_site

__all__ = ["components", "make_site"]

TEMPLATE = "{{ 1 + 1 }}{% if true %}x{% endif %}{# y #}"
HEADER = '#jinja2: variable_start_string:"[[", variable_end_string:"]]"\n[[ 1 + 1 ]]'
# what a test on this box needs, whatever the inventory says
HERE = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}
PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.copy:
        content: "{{ dict(names | zip(names | map('extract', vars))) | to_json }}"
        dest: "{{ folder }}/{{ inventory_hostname }}.json"
        mode: "0600"
      vars:
        names: "{{ wanted[inventory_hostname] }}"
    - ansible.builtin.copy:
        content: "{{ given | to_json }}"
        dest: "{{ folder }}/given.json"
        mode: "0600"
"""


def poisoned(value: Any) -> Any:
    """The value with a template in every text, keys of nested mappings included."""
    match value:
        case str():
            return f"{value}{TEMPLATE}"
        case Mapping():
            return {f"{key}{TEMPLATE}": poisoned(entry) for key, entry in value.items()}
        case list() | tuple():
            return [HEADER, *map(poisoned, value)]
        case _:
            return value


def poisoned_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The same for variables, whose names stay."""
    return {name: poisoned(value) for name, value in variables.items() if name not in HERE}


def arrived(inventory: Inventory, given: object, folder: Path) -> tuple[dict[str, Any], Any]:
    """Machine -> variables as a task sees them, and those given by the run."""
    wanted = {host: [*inventory.shared_vars, *found] for host, found in inventory.host_vars.items()}
    variables = {**HERE, "wanted": wanted, "folder": str(folder), "given": given}
    playbook = folder / "play.yml"
    playbook.write_text(PLAYBOOK)
    programs = Path(sys.executable).parent
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    environment["ANSIBLE_INVENTORY_ENABLED"] = "ansible.builtin.yaml"
    with run_files(folder, OwnerProcess.current(), RunRequest("x.yml", inventory, extra_vars=variables)) as files:
        command = [
            "ansible-playbook",
            "-i",
            str(files.inventory),
            "--extra-vars",
            f"@{files.extra_vars}",
            str(playbook),
        ]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = {host: json.loads((folder / f"{host}.json").read_text()) for host in inventory.host_vars}
    return seen, json.loads((folder / "given.json").read_text())


@pytest.fixture
def inventory(make_site: Callable[..., Site], components: ComponentSet) -> Inventory:
    """Of a site whose author put templates where validate lets them through."""
    config = {
        "docker_data_root": f"/var/lib/docker{TEMPLATE}",
        "kernel_parameters": {"net.core.rmem_max": TEMPLATE},
        "kubelet_config": {TEMPLATE: {"deep": [TEMPLATE, {TEMPLATE: TEMPLATE}]}, "header": HEADER},
    }
    site = make_site(LAYOUT, CONFIG + "".join(f"{name}: {json.dumps(value)}\n" for name, value in config.items()))
    return build_inventory(make_context(site, components, site.directory), dict.fromkeys(ROLES, "1"))


def test_site_template_in_every_text_of_every_variable_arrives_literally(inventory: Inventory, tmp_path: Path) -> None:
    """Also in those that validate does not let through today."""
    assert TEMPLATE in json.dumps([inventory.shared_vars, inventory.host_vars])
    hosts = {host: poisoned_variables(found) for host, found in inventory.host_vars.items()}
    bad = Inventory(inventory.groups, poisoned_variables(inventory.shared_vars), hosts)
    seen, given = arrived(bad, {TEMPLATE: HEADER}, tmp_path)
    assert seen == json.loads(json.dumps({host: {**bad.shared_vars, **found} for host, found in hosts.items()}))
    assert given == {TEMPLATE: HEADER}


@pytest.mark.parametrize("key", ["__ansible_unsafe", "__ansible_vault", "__ansible_type"])
def test_keys_that_ansible_reads_as_its_own_are_refused(key: str) -> None:
    with pytest.raises(PaiError) as caught:
        literal({"kubelet_config": [{key: 5}]})
    assert caught.value.exit_code is ExitCode.SITE_INVALID
