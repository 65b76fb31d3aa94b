"""The record of a role: its action completes the arguments, the module writes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import PLAYBOOKS, module_util

from .conftest import ModuleFailedError, Run, Systemd, load

FILE = {"kind": "file", "path": "/a", "sha256": "1", "mode": "0644"}
VARIABLES = {"ansible_role_name": "base", "pai_settings": {"base": {"base_hosts": "d1"}, "worker": {"x": "d2"}}}


@pytest.fixture(scope="session")
def action() -> Any:
    """playbooks/action_plugins/pai_state.py."""
    return load(PLAYBOOKS / "action_plugins" / "pai_state.py", "pai_action_record")


def test_role_and_its_settings_come_from_the_task(action: Any) -> None:
    assert action.arguments({"managed": [FILE]}, VARIABLES) == {
        "managed": [FILE],
        "role": "base",
        "settings": {"base_hosts": "d1"},
    }


def test_given_role_and_settings_stay(action: Any) -> None:
    assert action.arguments({"managed": [], "role": "worker"}, VARIABLES)["settings"] == {"x": "d2"}
    assert action.arguments({"managed": [], "settings": {"y": "d3"}}, VARIABLES)["settings"] == {"y": "d3"}


@pytest.mark.parametrize(
    "variables", [{"ansible_role_name": "base"}, {"ansible_role_name": "base", "pai_settings": {}}]
)
def test_playbooks_of_others_record_no_settings(action: Any, variables: dict[str, Any]) -> None:
    assert action.arguments({"managed": []}, variables)["settings"] == {}


def test_record_outside_a_role_needs_a_name(action: Any) -> None:
    with pytest.raises(ValueError, match="the name of a role"):
        action.arguments({"managed": []}, {})


@pytest.fixture
def chrony_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in for dpkg-query: chrony is the only package of the machine."""
    program = tmp_path / "bin" / "dpkg-query"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho chrony 4.5-1 installed\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("chrony_alone")
def test_record_holds_settings_expectations_and_packages(
    managed: Any, run_module: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(managed, "ROLES_DIR", str(tmp_path))
    result = run_module("pai_state", role="base", settings={"a": "1"}, managed=[[FILE]], packages=["chrony"])
    assert not result["changed"]
    assert json.loads((tmp_path / "base.json").read_text()) == {
        "schema_version": 1,
        "settings": {"a": "1"},
        "managed": [
            FILE,
            {"kind": "folder", "path": "/"},
            {"kind": "folder", "path": str(tmp_path)},
            {"kind": "package", "name": "chrony"},
        ],
    }


@pytest.mark.usefixtures("chrony_alone", "kept")
def test_nothing_changes_before_the_packages_are_installed(systemd: Systemd, run_module: Run, tmp_path: Path) -> None:
    words: dict[str, Any] = {
        "role": "example",
        "files": [{"path": str(tmp_path / "x.conf"), "content": "a\n"}],
        "packages": ["chrony", "haproxy"],
        "unused": ["x.service"],
    }
    assert run_module("pai_state", **words)["missing"] == ["haproxy"]
    assert not (tmp_path / "x.conf").exists()
    result = run_module("pai_state", **words, installed=["haproxy"])
    assert (result["actions"], (tmp_path / "x.conf").exists()) == (["stopped and disabled x.service"], True)


@pytest.mark.usefixtures("chrony_alone", "kept", "systemd")
def test_units_of_packages_from_before_stay(run_module: Run) -> None:
    assert run_module("pai_state", role="example", packages=["chrony"], unused=["x.service"])["actions"] == []


class Modules:
    """A stand-in for the machine: answers module calls in order, and keeps them."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, name: str, arguments: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.calls.append((name, arguments))
        return self.answers.pop(0)


def act(action: Any, monkeypatch: pytest.MonkeyPatch, modules: Modules) -> tuple[dict[str, Any], Any]:
    """Runs the action for a role with chrony. Returns the result and the task."""
    task = SimpleNamespace(args={"packages": ["chrony"]}, environment=None)
    plugin = action.ActionModule.__new__(action.ActionModule)
    plugin._task, plugin._execute_module = task, modules
    monkeypatch.setattr(action.ActionBase, "run", lambda *_: {})
    return plugin.run(task_vars=VARIABLES), task


def test_missing_packages_are_installed_by_ansibles_apt(action: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    apt, state = {"changed": True, "diff": {"prepared": "chrony"}}, {"changed": False, "diff": [{"before": "a"}]}
    modules = Modules({"changed": False, "missing": ["chrony"]}, apt, state)
    result, task = act(action, monkeypatch, modules)
    assert result == {"changed": True, "diff": [{"prepared": "chrony"}, {"before": "a"}]}
    assert [name for name, _ in modules.calls] == ["pai_state", "ansible.builtin.apt", "pai_state"]
    assert modules.calls[1][1]["name"] == modules.calls[2][1]["installed"] == ["chrony"]
    assert task.environment == [{"NEEDRESTART_SUSPEND": "1"}]


def test_a_failed_installation_is_the_result(action: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = Modules({"changed": False, "missing": ["chrony"]}, {"failed": True, "msg": "no route"})
    result, _task = act(action, monkeypatch, modules)
    assert (result, len(modules.calls)) == ({"failed": True, "msg": "no route"}, 2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_and_folders_that_were_given_away_become_roots_again(
    managed: Any, run_module: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """Whoever owns a program or its folder can exchange it, whatever its digest is now."""
    monkeypatch.setattr(managed, "ROLES_DIR", str(tmp_path / "roles"))
    folder, program = tmp_path / "bin", tmp_path / "bin" / "kubelet"
    folder.mkdir()
    program.write_text("x")
    program.chmod(0o755)
    file = {"kind": "file", "path": str(program), "sha256": managed.sha256(b"x"), "mode": "0755"}
    run_module("pai_state", role="base", managed=[file])
    recorded = json.loads((tmp_path / "roles" / "base.json").read_text())["managed"]
    assert managed.drift(recorded) == []
    os.chown(program, 65534, 65534)
    os.chown(folder, 65534, 65534)
    folder.chmod(0o777)
    assert managed.drift(recorded) == snapshot
    assert run_module("pai_state", role="base", managed=[file], check=True)["changed"]
    assert run_module("pai_state", role="base", managed=[file])["given_back"] == [str(program), str(folder)]
    assert managed.drift(recorded) == []
    assert (tmp_path / "roles" / "base.json").stat().st_mode & 0o777 == 0o600


def test_module_alone_needs_a_role(run_module: Run) -> None:
    with pytest.raises(ModuleFailedError, match="the name of a role"):
        run_module("pai_state", managed=[], check=True)


def test_ansible_gives_the_roles_name_and_settings(tmp_path: Path) -> None:
    """A role of its own, run by Ansible on the controller host in check mode: nothing is written."""
    tasks = tmp_path / "roles" / "example" / "tasks"
    tasks.mkdir(parents=True)
    (tasks / "main.yml").write_text("- pai_state: {managed: []}\n")
    play = {"hosts": "localhost", "gather_facts": False, "connection": "local", "roles": ["example"]}
    play["vars"] = {"pai_settings": {"example": {"a": "d1"}}, "ansible_python_interpreter": sys.executable}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(PLAYBOOKS.parent / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": str(tmp_path / "roles"),
        "ANSIBLE_LOCALHOST_WARNING": "False",
    }
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "--check", "-i", "localhost,", "-vvv", "play.yml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout.split("ok: [localhost] => ", 1)[1].split("\n\n", 1)[0]
    assert json.loads(shown)["invocation"]["module_args"]["settings"] == {"a": "d1"}
    assert json.loads(shown)["path"] == "/var/lib/pai-install/roles/example.json"


def test_notes_stand_in_the_record_where_there_are_any(
    managed: Any, run_module: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(managed, "ROLES_DIR", str(tmp_path))
    run_module("pai_state", role="base", managed=[], notes={"content": "/x"})
    assert json.loads((tmp_path / "base.json").read_text())["notes"] == {"content": "/x"}


@pytest.fixture
def kept(managed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The record of the role `example`, below the test's folder like the memory of its files."""
    monkeypatch.setattr(managed, "ROLES_DIR", str(tmp_path / "roles"))
    monkeypatch.setattr(module_util("pai_file_set"), "FILES_DIR", str(tmp_path / "files"))
    return tmp_path / "roles" / "example.json"


def test_a_unit_restarts_for_the_files_of_its_role(
    systemd: Systemd, kept: Path, run_module: Run, tmp_path: Path
) -> None:
    words: dict[str, Any] = {
        "role": "example",
        "files": [{"path": str(tmp_path / "etc" / "x.conf"), "content": "a = 1\n"}],
        "units": [{"name": "x.service"}, {"name": "y.service", "enabled": False, "started": False}],
    }
    first = run_module("pai_state", **words)
    assert (first["changed"], first["actions"]) == (True, ["restarted x.service"])
    recorded = {entry.get("name", ""): entry for entry in json.loads(kept.read_text())["managed"]}
    assert recorded["x.service"]["reads"] == [str(tmp_path / "etc" / "x.conf")]
    assert recorded["y.service"]["reads"] == []
    systemd.has(InactiveExitTimestampMonotonic=str(int((time.clock_gettime(time.CLOCK_MONOTONIC) + 1) * 1e6)))
    assert not run_module("pai_state", **words)["changed"]


def test_old_files_return_when_a_unit_does_not_come_up(
    systemd: Systemd, kept: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "x.conf"
    path.write_text("of the admin\n")
    monkeypatch.setenv("STAND_IN_FAILS", "restart x.service")
    file = {"path": str(path), "content": "ours\n", "backup": True}
    with pytest.raises(ModuleFailedError, match=r"x\.service did not come up"):
        run_module("pai_state", role="example", files=[file], units=[{"name": "x.service"}], timeout=1)
    assert path.read_text() == "of the admin\n"
    assert not kept.exists()
    assert systemd.calls[-1] == "restart x.service"


def test_an_unwanted_unit_stops_before_its_files_go(
    systemd: Systemd, kept: Path, run_module: Run, tmp_path: Path
) -> None:
    """A service without its files would run on."""
    path = tmp_path / "x.conf"
    words: dict[str, Any] = {"role": "example", "owner": "example"}
    run_module("pai_state", **words, files=[{"path": str(path), "content": "a\n"}], units=[{"name": "x.service"}])
    result = run_module("pai_state", **words, files=[], units=[{"name": "x.service", "state": "absent"}])
    assert (result["actions"], path.exists()) == (["stopped and disabled x.service"], False)
    assert {entry["kind"] for entry in json.loads(kept.read_text())["managed"]} == {"folder"}
    assert "disable x.service" in systemd.calls
