"""Playbooks: wiring only, one per phase, and Ansible can read them all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pai_install.plan.phases import PHASES, VERIFY

ROOT = Path(__file__).parents[2]
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.name)
def test_playbook_is_wiring(path: Path) -> None:
    for play in yaml.safe_load(path.read_text()):
        assert "vars" not in play
        assert not ("roles" in play and "tasks" in play)


def test_all_playbooks_pass_ansibles_syntax_check() -> None:
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "--syntax-check", "-i", "localhost,"]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_LOCALHOST_WARNING": "False"}
    paths = [str(path) for path in PLAYBOOKS]
    done = subprocess.run([*command, *paths], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("phase", [*PHASES, VERIFY], ids=lambda phase: phase.name)
def test_phase_has_its_playbook_with_its_roles(phase: object) -> None:
    assert isinstance(phase, type(VERIFY))
    plays = yaml.safe_load((ROOT / "playbooks" / phase.playbook).read_text())
    roles = [entry["role"] for play in plays for entry in play["roles"]]
    assert list(dict.fromkeys(roles)) == list(phase.roles)


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_a_role_that_is_no_longer_wanted_still_runs(phase: object) -> None:
    """Else its record stays, and so does the plan to do away with it, at every run."""
    assert isinstance(phase, type(VERIFY))
    plays = yaml.safe_load((ROOT / "playbooks" / phase.playbook).read_text())
    conditions = [entry["when"] for play in plays for entry in play["roles"] if "when" in entry]
    assert [it for it in conditions if "pai_roles" not in it and "ansible_facts.pai.roles" not in it] == []


@pytest.mark.parametrize("phase", [*PHASES, VERIFY], ids=lambda phase: phase.name)
def test_a_play_is_called_as_its_phase(phase: object) -> None:
    """A plan and Ansible's own output say the same; a phase of several plays has a title of its own."""
    assert isinstance(phase, type(VERIFY))
    names = [play["name"] for play in yaml.safe_load((ROOT / "playbooks" / phase.playbook).read_text())]
    assert len(names) > 1 or names == [phase.title]


def test_site_playbook_imports_every_phase_in_order() -> None:
    imported = [
        play["ansible.builtin.import_playbook"] for play in yaml.safe_load((ROOT / "playbooks/site.yml").read_text())
    ]
    assert imported == ["observe.yml", *(phase.playbook for phase in PHASES), VERIFY.playbook]


def test_phase_needs_name_earlier_phases() -> None:
    seen: set[str] = set()
    for phase in [*PHASES, VERIFY]:
        assert set(phase.needs) <= seen
        seen.add(phase.name)


# phases whose machines need nothing of each other: a slow one must not hold up the rest
FREE = {"base", "storage", "runtime", "labels", "registries"}


@pytest.mark.parametrize("phase", [*PHASES, VERIFY], ids=lambda phase: phase.name)
def test_machines_advance_on_their_own_where_order_does_not_matter(phase: object) -> None:
    assert isinstance(phase, type(VERIFY))
    for play in yaml.safe_load((ROOT / "playbooks" / phase.playbook).read_text()):
        assert (play.get("strategy") == "ansible.builtin.free") == (phase.name in FREE)


@pytest.mark.parametrize("role", sorted({role for phase in PHASES if phase.name in FREE for role in phase.roles}))
def test_roles_of_such_a_phase_do_nothing_for_all_machines_at_once(role: str) -> None:
    text = "".join(path.read_text() for path in (ROOT / "roles" / role / "tasks").glob("*.yml"))
    assert "run_once:" not in text
    assert "throttle:" not in text
    assert "ansible_play_hosts" not in text
