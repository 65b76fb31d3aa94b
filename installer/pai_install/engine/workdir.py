"""The working folder and environment of Ansible: private, with the inventory."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pai_install.engine.base import RunRequest
from pai_install.engine.processes import OWNER_VARIABLE, OwnerProcess
from pai_install.plan.literal import literal
from pai_install.system.files import write_secret
from pai_install.system.ssh import host_key_options, sharing_options

# The variables of the user that a run may see. Nothing named ANSIBLE_* is among them: the user's own
# Ansible settings must not change what an installation does.
_PASSED_ON = (
    "HOME", "USER", "LOGNAME", "PATH", "TZ", "TMPDIR", "SSH_AUTH_SOCK", "KRB5CCNAME",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip
_LONGEST_TASK_S = 1800
_RUN_PREFIX = "run-"
_CONTROL_PREFIX = "pai-ssh-"
_LONGEST_RUN_S = 86400
_SOCKETS = Path("/tmp")  # noqa: S108 - mkdtemp makes a folder of the owner's alone


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run, all inside a folder that only the owner may enter."""

    folder: Path
    inventory: Path
    extra_vars: Path
    limit: Path | None


@contextmanager
def run_files(work_dir: Path, owner: OwnerProcess, request: RunRequest) -> Iterator[RunFiles]:
    """Writes the request's files (0600), and removes them at the end with the remains of the run."""
    folder = Path(tempfile.mkdtemp(prefix=f"{_RUN_PREFIX}{owner}-", dir=work_dir))  # mkdtemp makes it 0700
    try:
        yield _write(folder, request)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path, request: RunRequest) -> RunFiles:
    inventory, extra_vars, limit = folder / "inventory.json", folder / "vars.json", folder / "limit"
    # Ansible would evaluate {{ }} in a text of the site, so texts are marked as literal.
    write_secret(inventory, json.dumps(literal(request.inventory.as_ansible())))
    write_secret(extra_vars, json.dumps(literal(request.extra_vars)))
    if request.limit:  # a file, because a thousand names do not fit into an argument
        write_secret(limit, "\n".join(request.limit) + "\n")
    # ansible-runner looks for a key press every 5 s by default; that would be the delay of a Ctrl-C
    write_secret(folder / "env" / "settings", json.dumps({"pexpect_timeout": 0.25, "suppress_output_file": True}))
    return RunFiles(folder, inventory, extra_vars, limit if request.limit else None)


@contextmanager
def control_dir(owner: OwnerProcess) -> Iterator[Path]:
    """A folder for ssh's control sockets, removed at the end.

    It lives in /tmp, not in the site: a socket's path is limited to 108 bytes.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{_CONTROL_PREFIX}{owner}-", dir=_SOCKETS))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def left_overs(work_dir: Path) -> tuple[Path, ...]:
    """Returns the folders of ended runs: inventories with passwords, and ssh's sockets.

    A process of another container cannot be checked, so its folder counts as ended after a day, which is longer than
    any run. Folders of other users are ignored.
    """
    return tuple(
        folder
        for parent, prefix in ((work_dir, _RUN_PREFIX), (_SOCKETS, _CONTROL_PREFIX))
        for folder in parent.glob(f"{prefix}*")
        if _is_own(folder)
        and (owner := OwnerProcess.parse(folder.name.removeprefix(prefix))) is not None
        and (not owner.alive() if owner.here else _age_s(folder) > _LONGEST_RUN_S)
    )


def _is_own(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:  # its run has just ended
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _age_s(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:  # its run has just ended
        return 0.0


def remove(folder: Path) -> None:
    """Removes a folder with everything in it, as far as it is there and ours."""
    shutil.rmtree(folder, ignore_errors=True)


def environment(
    environ: Mapping[str, str], *, content: Path, work_dir: Path, run_dir: Path, tools: Path, owner: OwnerProcess
) -> dict[str, str]:
    """The whole environment of ansible-playbook, without the ssh settings.

    tools: the folder with Ansible's own programs, first on PATH.
    """
    passed = {name: environ[name] for name in _PASSED_ON if name in environ}
    return {
        **passed,
        OWNER_VARIABLE: str(owner),
        "PATH": f"{tools}:{environ.get('PATH', '/usr/sbin:/usr/bin:/sbin:/bin')}",
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
        "ANSIBLE_CONFIG": str(content / "ansible.cfg"),
        "ANSIBLE_HOME": str(work_dir / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(run_dir / "tmp"),
        "ANSIBLE_ROLES_PATH": str(content / "roles"),
        "ANSIBLE_LIBRARY": str(content / "playbooks" / "library"),
        "ANSIBLE_ACTION_PLUGINS": str(content / "playbooks" / "action_plugins"),
        "ANSIBLE_MODULE_UTILS": str(content / "playbooks" / "module_utils"),
        "ANSIBLE_FILTER_PLUGINS": str(content / "playbooks" / "filter_plugins"),
        "ANSIBLE_INVENTORY_ENABLED": "ansible.builtin.yaml",
        "ANSIBLE_GATHERING": "explicit",
        "ANSIBLE_INJECT_FACT_VARS": "False",
        "ANSIBLE_CACHE_PLUGIN": "jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(work_dir / "facts"),
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        # modules would write what they are called with, logins and keys, into the machine's journal
        "ANSIBLE_NO_TARGET_SYSLOG": "True",
        # root may not read a login user's home that is on NFS. Ansible makes a folder of a random name there, which it
        # removes; a folder of a fixed name below it another user of the machine could have made first
        "ANSIBLE_REMOTE_TMP": "/var/tmp",  # noqa: S108
        # for machines that take connections and never answer: the others wait for each task
        "ANSIBLE_TASK_TIMEOUT": str(_LONGEST_TASK_S),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_NOCOLOR": "True",
        # a result above this size reaches us empty; facts of a machine with many containers are long
        "MAX_EVENT_RES": "8000000",
    }


def ssh_environment(known_hosts: Path, sockets: Path, *, accept_new: bool) -> dict[str, str]:
    """The ssh settings: host keys checked against the site's own list, connections kept between tasks."""
    options = (*sharing_options(10), *host_key_options(known_hosts, accept_new=accept_new))
    return {
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_SSH_ARGS": " ".join(f"-o {shlex.quote(option)}" for option in options),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets),
        "ANSIBLE_SSH_RETRIES": "2",
        "ANSIBLE_TIMEOUT": "15",
    }
