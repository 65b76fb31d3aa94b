"""Real Ansible on connection=local, with playbooks of the tests' own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pai_install.engine.runner import RunnerEngine
from pai_install.plan.model import HostStep, Inventory, Plan, Playbook, Step


@dataclass(frozen=True)
class Bench:
    """The tests' playbooks, a folder, and the secrets that the inventory holds."""

    content: Path
    folder: Path
    password: str = "pl4nted-{{pass}}-\"quote'"
    token: str = "abcdef.0123456789abcdef"

    def inventory(self, *names: str, **host_vars: Mapping[str, Any]) -> Inventory:
        """Hosts on the controller host; host_vars: further variables of single hosts."""
        shared = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "folder": str(self.folder),
            "planted_token": self.token,
            "ansible_become_password": self.password,
        }
        return Inventory(
            groups={"control_plane": names[:1], "workers": names[1:]},
            shared_vars=shared,
            host_vars={name: dict(host_vars.get(name, {})) for name in names},
        )

    def engine(self) -> RunnerEngine:
        """An engine on the tests' playbooks, its log in ansible.log."""
        return RunnerEngine(
            self.content, self.folder / "work", self.folder / "known_hosts", log=self.folder / "ansible.log"
        )


def plan_of(inventory: Inventory, *playbooks: str, hosts: tuple[str, ...]) -> Plan:
    """A plan with one phase per playbook, named like it, on the same hosts."""
    steps = tuple(HostStep(host, ("asked for",)) for host in hosts)
    return Plan(tuple(Step(name, name.capitalize(), steps, Playbook(f"{name}.yml")) for name in playbooks), inventory)


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    return plan_of


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(Path(__file__).parent / "content", tmp_path)


@pytest.fixture
def engine(bench: Bench) -> Iterator[RunnerEngine]:
    with bench.engine() as it:
        yield it
