"""Join tokens: the commands that make one."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from .conftest import Run

ANSWERS = {
    "token": "kubeadm join k:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:aa",
    "init": f"[upload-certs] Using certificate key:\n{'0f' * 32}",
}


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, library: Any) -> list[list[str]]:
    """The command lines that the module runs, each with an answer of kubeadm."""
    found: list[list[str]] = []

    def run_command(self: AnsibleModule, argv: list[str], **_: Any) -> tuple[int, str, str]:
        found.append(argv)
        return 0, next(answer for word, answer in ANSWERS.items() if word in argv), ""

    monkeypatch.setattr(AnsibleModule, "run_command", run_command)
    module = library("pai_join_token")
    monkeypatch.setattr(module, "close_bootstrap", lambda _: None)
    monkeypatch.setattr("tests.unit.modules.conftest.load", lambda *_: module)
    return found


CREATE = ["token", "create", "--ttl", "30m", "--description", "join by pai-install", "--print-join-command"]


def test_a_worker_gets_a_token(commands: list[list[str]], run_module: Run) -> None:
    result = run_module("pai_join_token")
    assert (result["token"], result["ca_hash"], result["certificate_key"]) == (
        "abcdef.0123456789abcdef",
        "sha256:aa",
        "",
    )
    kubeadm = ["/usr/local/bin/kubeadm", "--kubeconfig", "/etc/kubernetes/admin.conf"]
    assert commands == [[*kubeadm, *CREATE]]


def test_a_control_plane_gets_the_key_of_the_certificates(commands: list[list[str]], run_module: Run) -> None:
    assert run_module("pai_join_token", control_plane=True)["certificate_key"] == "0f" * 32
    assert commands[1:] == [
        [
            *("/usr/local/bin/kubeadm", "init", "phase", "upload-certs", "--upload-certs"),
            *("--kubeconfig", "/etc/kubernetes/admin.conf"),
        ]
    ]


def test_check_mode_makes_no_token(commands: list[list[str]], run_module: Run) -> None:
    assert run_module("pai_join_token", check=True)["token"] == ""
    assert commands == []
