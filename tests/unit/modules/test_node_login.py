"""A kubelet's login: made for one machine under one name, whoever asks."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ansible_path import module_util

Library = Callable[[str], Any]
pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


def run(argv: list[str]) -> tuple[int, str, str]:
    """As AnsibleModule.run_command."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """module_utils/pai_node_login.py with the machine's files below tmp_path."""
    module = module_util("pai_node_login")
    for name, path in (
        ("STATE_DIR", "state"),
        ("KEY", "state/node.key"),
        ("KUBELET_PKI", "pki"),
        ("CURRENT", "pki/kubelet-client-current.pem"),
        ("KUBELET_CONF", "kubelet.conf"),
    ):
        monkeypatch.setattr(module, name, str(tmp_path / path))
    return module


def request_for(subject: str, *more: str) -> str:
    """A request of somebody else's making."""
    words = ["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", subject, *more]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_the_key_stays_and_the_request_names_the_machine(login: Any) -> None:
    request = login.make_request(run, "worker1")
    login.require_subject(run, request, "worker1")
    assert Path(login.KEY).stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in request
    key = Path(login.KEY).read_text()
    login.make_request(run, "worker1")
    assert Path(login.KEY).read_text() == key, "an interrupted join goes on with it"


@pytest.mark.parametrize(
    "request_words",
    [
        ("/O=system:nodes/CN=system:node:worker2",),
        ("/O=system:masters/CN=system:node:worker1",),
        ("/O=system:masters/O=system:nodes/CN=system:node:worker1",),
        ("/O=system:nodes/CN=system:node:worker1/CN=admin",),
        ("/CN=system:node:worker1,O\\=system:nodes",),
        ("/O=system:nodes/CN=system:node:worker1", "-addext", "subjectAltName=DNS:kubernetes"),
    ],
)
def test_a_request_for_anybody_else_is_refused(login: Any, request_words: tuple[str, ...]) -> None:
    request = request_for(*request_words)
    with pytest.raises(login.LoginError):
        login.require_subject(run, request, "worker1")


def test_garbage_is_refused(login: Any) -> None:
    with pytest.raises(login.LoginError, match="openssl req failed"):
        login.require_subject(run, "-----BEGIN CERTIFICATE REQUEST-----\nx\n", "worker1")


def test_login_is_private_and_the_keys_own_file_goes(login: Any, tmp_path: Path) -> None:
    login.make_request(run, "worker1")
    key = Path(login.KEY).read_text()
    login.write_login("-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n", "CA", "api.pai.internal:7443")
    current = tmp_path / "pki" / "kubelet-client-current.pem"
    assert current.is_symlink(), "the kubelet renews by exchanging a link"
    assert current.read_text() == f"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n{key}"
    assert current.stat().st_mode & 0o777 == 0o600
    assert not Path(login.KEY).exists()
    text = (tmp_path / "kubelet.conf").read_text()
    assert f"client-key: {current}" in text
    assert "server: https://api.pai.internal:7443" in text
    assert base64.b64encode(b"CA").decode() in text


def test_the_key_of_another_attempt_is_no_login(login: Any) -> None:
    with pytest.raises(login.LoginError, match="is gone"):
        login.write_login("c", "a", "e")


def test_object_asks_for_a_kubelets_certificate_alone(library: Library) -> None:
    made = library("pai_node_certificate").csr("worker1", "R")
    assert made["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"
    assert made["spec"]["usages"] == ["digital signature", "client auth"]
    assert re.fullmatch(r"pai-install-worker1-[0-9a-f]{8}", made["metadata"]["name"])
