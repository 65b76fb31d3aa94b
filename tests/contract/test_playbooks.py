"""Playbooks: wiring only, one per phase, and Ansible can read them all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from pai_install.plan.phases import PHASES, VERIFY, Phase

ROOT = Path(__file__).parents[2]
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
ALL_PHASES = (*PHASES, VERIFY)


def plays(path: Path) -> list[dict[str, Any]]:
    """The plays of a playbook."""
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text())
    return found


def plays_of(phase: Phase) -> list[dict[str, Any]]:
    """The plays of a phase."""
    return plays(ROOT / "playbooks" / phase.playbook)


def test_playbooks_are_wiring() -> None:
    assert [
        path.name
        for path in PLAYBOOKS
        for play in plays(path)
        if "vars" in play or ("roles" in play and "tasks" in play)
    ] == []


def test_all_playbooks_pass_ansibles_syntax_check() -> None:
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "--syntax-check", "-i", "localhost,"]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_LOCALHOST_WARNING": "False"}
    paths = [str(path) for path in PLAYBOOKS]
    done = subprocess.run([*command, *paths], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_phase_has_its_playbook_with_its_roles() -> None:
    roles = {
        phase.name: dict.fromkeys(entry["role"] for play in plays_of(phase) for entry in play["roles"])
        for phase in ALL_PHASES
    }
    assert {name: tuple(found) for name, found in roles.items()} == {phase.name: phase.roles for phase in ALL_PHASES}


def test_a_role_that_is_no_longer_wanted_still_runs() -> None:
    """Else its record stays, and so does the plan to do away with it, at every run."""
    assert [
        f"{phase.name}: {entry['when']}"
        for phase in PHASES
        for play in plays_of(phase)
        for entry in play["roles"]
        if not {"pai_roles", "ansible_facts.pai.roles"}
        & set(re.findall(r"[\w.]+", str(entry.get("when", "pai_roles"))))
    ] == []


def test_a_play_is_called_as_its_phase() -> None:
    """A plan and Ansible's own output say the same; a phase of several plays has a title of its own."""
    names = {phase.title: [play["name"] for play in plays_of(phase)] for phase in ALL_PHASES}
    assert {title: found for title, found in names.items() if len(found) == 1 and found != [title]} == {}


def test_site_playbook_imports_every_phase_in_order() -> None:
    imported = [
        play["ansible.builtin.import_playbook"] for play in yaml.safe_load((ROOT / "playbooks/site.yml").read_text())
    ]
    assert imported == ["observe.yml", *(phase.playbook for phase in PHASES), VERIFY.playbook]


def test_phase_needs_name_earlier_phases() -> None:
    seen: set[str] = set()
    for phase in ALL_PHASES:
        assert set(phase.needs) <= seen
        seen.add(phase.name)


# phases whose machines need nothing of each other: a slow one must not hold up the rest
FREE = {"base", "storage", "runtime", "labels", "registries"}


def test_machines_advance_on_their_own_where_order_does_not_matter() -> None:
    assert [
        phase.name
        for phase in ALL_PHASES
        for play in plays_of(phase)
        if (play.get("strategy") == "ansible.builtin.free") != (phase.name in FREE)
    ] == []


def test_roles_of_such_a_phase_do_nothing_for_all_machines_at_once() -> None:
    assert [
        path.relative_to(ROOT).as_posix()
        for role in sorted({role for phase in PHASES if phase.name in FREE for role in phase.roles})
        for path in (ROOT / "roles" / role / "tasks").glob("*.yml")
        if re.search(r"run_once:|throttle:|ansible_play_hosts", path.read_text())
    ] == []
