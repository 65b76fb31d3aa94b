"""What Ansible is given: private files, and an environment without the user's own settings."""

from __future__ import annotations

import json
import os
import shlex
import stat
import time
from pathlib import Path

import pytest

from pai_install.engine.base import RunRequest
from pai_install.engine.processes import OWNER_VARIABLE, OwnerProcess
from pai_install.engine.workdir import (
    control_dir,
    environment,
    left_overs,
    remove,
    run_files,
    ssh_environment,
)
from pai_install.plan.model import Inventory

OWNER = OwnerProcess.current()
INVENTORY = Inventory(
    {"workers": ("b",)},
    {"ansible_user": "ops"},
    {"a": {"ansible_become_password": "{{ x }}", "note": "{{ inventory_hostname }}"}, "b": {}},
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_private_and_gone_afterwards(tmp_path: Path) -> None:
    request = RunRequest("x.yml", INVENTORY, limit=("a", "b"), extra_vars={"token": "t"})
    with run_files(tmp_path, OWNER, request) as files:
        assert mode(files.folder) == 0o700
        assert files.limit is not None
        for path in (files.inventory, files.extra_vars, files.limit):
            assert mode(path) == 0o600
        assert json.loads(files.extra_vars.read_text()) == {"token": "t"}
        assert files.limit.read_text() == "a\nb\n"
        (files.folder / "artifacts").mkdir()
    assert list(tmp_path.iterdir()) == []


def test_files_are_gone_after_an_error_too(tmp_path: Path) -> None:
    files = run_files(tmp_path, OWNER, RunRequest("x.yml", INVENTORY))
    assert files.__enter__().limit is None
    assert len(list(tmp_path.iterdir())) == 1
    assert not files.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert list(tmp_path.iterdir()) == []


def test_site_template_neither_variables_nor_extra_vars_are_templates(tmp_path: Path) -> None:
    unsafe = {"__ansible_unsafe": "{{ x }}"}
    request = RunRequest("x.yml", INVENTORY, extra_vars={"list": ["{{ x }}", 7, None, True]})
    with run_files(tmp_path, OWNER, request) as files:
        data = json.loads(files.inventory.read_text())
        assert json.loads(files.extra_vars.read_text()) == {"list": [unsafe, 7, None, True]}
    note = {"__ansible_unsafe": "{{ inventory_hostname }}"}
    assert data["all"]["hosts"]["a"] == {"ansible_become_password": unsafe, "note": note}
    assert data["all"]["vars"] == {"ansible_user": "ops"}
    assert data["all"]["children"] == {"workers": {"hosts": {"b": {}}}}


def test_socket_folder_is_private_and_short_enough_for_a_socket() -> None:
    with control_dir(OWNER) as folder:
        assert mode(folder) == 0o700
        # ssh adds a name of up to 10 characters and, while connecting, 17 more
        assert len(str(folder)) + 28 < 108
    assert not folder.exists()


def test_folders_of_dead_runs_are_found_and_those_of_living_ones_are_not(tmp_path: Path) -> None:
    dead, living, other = tmp_path / f"run-1.1.{OWNER.namespace}-abc", tmp_path / f"run-{OWNER}-abc", tmp_path / "facts"
    for folder in (dead, living, other):
        (folder / "deep").mkdir(parents=True)
    found = [folder for folder in left_overs(tmp_path) if folder.parent == tmp_path]
    assert found == [dead]
    remove(dead)
    remove(dead)
    assert sorted(tmp_path.iterdir()) == sorted([living, other])


def test_no_task_may_keep_the_others_waiting_for_ever(tmp_path: Path) -> None:
    assert 0 < int(made_environment({}, tmp_path)["ANSIBLE_TASK_TIMEOUT"]) <= 3600


def test_folder_of_another_container_is_left_over_after_a_day_only(tmp_path: Path) -> None:
    folder = tmp_path / f"run-1.1.{OWNER.namespace + 1}-abc"
    folder.mkdir()
    assert folder not in left_overs(tmp_path)
    long_ago = time.time() - 2 * 86400
    os.utime(folder, (long_ago, long_ago))
    assert folder in left_overs(tmp_path)


def test_folders_of_other_users_are_none_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user of the controller host makes them, so that root's run ends somebody's connections."""
    long_ago = time.time() - 3 * 86400
    folder, link = tmp_path / "pai-ssh-1.1.1-abc", tmp_path / "pai-ssh-1.1.1-link"
    folder.mkdir()
    link.symlink_to(folder)
    os.utime(folder, (long_ago, long_ago))
    monkeypatch.setattr("pai_install.engine.workdir._SOCKETS", tmp_path)
    assert left_overs(tmp_path / "work") == (folder,)
    monkeypatch.setattr("pai_install.engine.workdir.os.geteuid", lambda: os.getuid() + 1)
    assert left_overs(tmp_path / "work") == ()


def made_environment(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return environment(
        environ,
        content=tmp_path / "content",
        work_dir=tmp_path / "work",
        run_dir=tmp_path / "run",
        tools=tmp_path / "tools",
        owner=OWNER,
    )


def test_users_ansible_settings_do_not_reach_the_run(tmp_path: Path) -> None:
    environ = {
        "ANSIBLE_CONFIG": "/home/u/ansible.cfg",
        "ANSIBLE_STRATEGY": "free",
        "ANSIBLE_VAULT_PASSWORD_FILE": "/home/u/vault",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "PYTHONPATH": "/home/u/lib",
        "HOME": "/home/u",
        "https_proxy": "http://proxy:3128",
        "PATH": "/usr/bin",
    }
    made = made_environment(environ, tmp_path)
    assert made["ANSIBLE_CONFIG"] == str(tmp_path / "content" / "ansible.cfg")
    for name in ("ANSIBLE_STRATEGY", "ANSIBLE_VAULT_PASSWORD_FILE", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH"):
        assert name not in made
    assert made["HOME"] == "/home/u"
    assert made["https_proxy"] == "http://proxy:3128"
    assert made["PATH"] == f"{tmp_path / 'tools'}:/usr/bin"
    assert made[OWNER_VARIABLE] == str(OWNER)


def test_files_reach_machines_past_the_login_users_home(tmp_path: Path) -> None:
    """Homes on NFS, with root_squash: root reads nothing there. The parent must be root's, with the sticky bit."""
    made = made_environment({"HOME": "/home/u", "ANSIBLE_REMOTE_TMP": "~/mine"}, tmp_path)
    assert made["ANSIBLE_REMOTE_TMP"] == "/var/tmp"
    assert "remote_tmp = /var/tmp\n" in (Path(__file__).parents[3] / "ansible.cfg").read_text(), (
        "plain ansible-playbook does the same"
    )


def test_environment_without_a_path_gets_one(tmp_path: Path) -> None:
    assert made_environment({}, tmp_path)["PATH"].endswith(":/usr/sbin:/usr/bin:/sbin:/bin")


def test_arguments_of_modules_are_in_no_journal(tmp_path: Path) -> None:
    assert made_environment({}, tmp_path)["ANSIBLE_NO_TARGET_SYSLOG"] == "True"
    assert "no_target_syslog = True" in (Path(__file__).parents[3] / "ansible.cfg").read_text()


@pytest.mark.parametrize(("accept_new", "word"), [(True, "accept-new"), (False, "yes")])
def test_ssh_checks_host_keys_against_the_sites_list(tmp_path: Path, *, accept_new: bool, word: str) -> None:
    known_hosts = tmp_path / "a folder" / "known_hosts"
    made = ssh_environment(known_hosts, tmp_path, accept_new=accept_new)
    words = shlex.split(made["ANSIBLE_SSH_ARGS"])
    assert f'UserKnownHostsFile="{known_hosts}"' in words
    assert f"StrictHostKeyChecking={word}" in words
    assert words[::2] == ["-o"] * (len(words) // 2)
    assert made["ANSIBLE_HOST_KEY_CHECKING"] == "True"


def test_a_users_ticket_of_kerberos_reaches_ssh(tmp_path: Path) -> None:
    """As the agent's socket does: machines of a realm take no key."""
    given = {"HOME": "/home/u", "KRB5CCNAME": "FILE:/tmp/ticket", "SSH_AUTH_SOCK": "/tmp/agent", "OTHER": "x"}
    made = made_environment(given, tmp_path)
    assert (made["KRB5CCNAME"], made["SSH_AUTH_SOCK"]) == ("FILE:/tmp/ticket", "/tmp/agent")
    assert "OTHER" not in made
