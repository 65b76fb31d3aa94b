"""The etcdctl command of a control plane: its own defaults stand back for the user's variables and flags."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "roles" / "control_plane" / "files" / "etcdctl.sh"
PROGRAM = "/usr/local/lib/pai-install/etcdctl"
PKI = "/etc/kubernetes/pki/etcd"
DEFAULTS = {
    "ETCDCTL_ENDPOINTS": "https://127.0.0.1:2379",
    "ETCDCTL_CACERT": f"{PKI}/ca.crt",
    "ETCDCTL_CERT": f"{PKI}/healthcheck-client.crt",
    "ETCDCTL_KEY": f"{PKI}/healthcheck-client.key",
}


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """The script with a program that prints its arguments, one a line, and its variables."""
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nenv | grep ^ETCDCTL_ || true\n')
    program.chmod(0o755)
    script = tmp_path / "etcdctl"
    assert SCRIPT.read_text().count(PROGRAM) == 1
    script.write_text(SCRIPT.read_text().replace(PROGRAM, str(program)))
    script.chmod(0o755)
    return script


def run(command: Path, *words: str, **variables: str) -> tuple[list[str], dict[str, str]]:
    """The arguments and the variables that the program is given."""
    environment = {"PATH": "/usr/bin:/bin", **variables}
    lines = subprocess.run(
        [str(command), *words], env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    seen = dict(line.split("=", 1) for line in lines if line.startswith("ETCDCTL_"))
    return [line for line in lines if not line.startswith("ETCDCTL_")], seen


def test_it_needs_no_arguments(command: Path) -> None:
    assert run(command, "member", "list") == (["member", "list"], DEFAULTS)


def test_arguments_arrive_as_they_are(command: Path) -> None:
    words = ["put", "a key", "a  'value' $HOME *"]
    assert run(command, *words)[0] == words


@pytest.mark.parametrize("words", [["--endpoints", "https://10.0.0.2:2379"], ["--endpoints=https://10.0.0.2:2379"]])
def test_variable_beside_a_flag_is_not_set(command: Path, words: list[str]) -> None:
    """etcdctl refuses both for one thing."""
    seen = run(command, *words, "member", "list")[1]
    assert seen == {name: value for name, value in DEFAULTS.items() if name != "ETCDCTL_ENDPOINTS"}


def test_variable_of_the_user_counts(command: Path) -> None:
    seen = run(command, "version", ETCDCTL_ENDPOINTS="https://10.0.0.2:2379")[1]
    assert seen == DEFAULTS | {"ETCDCTL_ENDPOINTS": "https://10.0.0.2:2379"}
