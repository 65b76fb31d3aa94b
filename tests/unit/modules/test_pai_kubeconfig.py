"""kubeconfig-exec: of a control plane's kubeconfig only certificates and a key reach the controller host."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ansible_path import PLAYBOOKS

from .conftest import load

SERVER = "https://10.0.0.1:6443"
BODY = base64.b64encode(b"some bytes" * 9).decode()


def pem(kind: str) -> str:
    """What looks like PEM, base64 once more as kubeconfigs have it."""
    return base64.b64encode(f"-----BEGIN {kind}-----\n{BODY}\n-----END {kind}-----\n".encode()).decode()


def admin_conf() -> dict[str, Any]:
    """As kubeadm writes it."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [
            {
                "name": "kubernetes",
                "cluster": {
                    "certificate-authority-data": pem("CERTIFICATE"),
                    "server": "https://kubernetes.pai.internal:7443",
                },
            }
        ],
        "users": [
            {
                "name": "kubernetes-admin",
                "user": {
                    "client-certificate-data": pem("CERTIFICATE"),
                    "client-key-data": pem("RSA PRIVATE KEY"),
                },
            }
        ],
        "contexts": [
            {
                "name": "kubernetes-admin@kubernetes",
                "context": {"cluster": "kubernetes", "user": "kubernetes-admin"},
            }
        ],
        "current-context": "kubernetes-admin@kubernetes",
    }


@pytest.fixture(scope="session")
def action() -> Any:
    """playbooks/action_plugins/pai_kubeconfig.py."""
    return load(PLAYBOOKS / "action_plugins" / "pai_kubeconfig.py", "pai_action_kubeconfig")


def test_the_data_comes_and_the_server_is_ours(action: Any) -> None:
    theirs = admin_conf()
    ours = yaml.safe_load(action.kubeconfig(yaml.safe_dump(theirs).encode(), SERVER))
    assert ours["users"] == theirs["users"]
    assert ours["clusters"][0]["cluster"] == {**theirs["clusters"][0]["cluster"], "server": SERVER}
    assert ours["contexts"] == theirs["contexts"]


def test_what_is_not_data_of_this_cluster_does_not_come(action: Any) -> None:
    theirs = {**admin_conf(), "extensions": [{"name": "x", "extension": "evil"}], "current-context": "evil"}
    theirs["contexts"].append({"name": "evil", "context": {"cluster": "evil", "user": "evil"}})
    assert "evil" not in action.kubeconfig(yaml.safe_dump(theirs).encode(), SERVER)


USER = {
    "exec": {"command": "sh", "args": ["-c", "id > /tmp/pwned"], "apiVersion": "client.authentication.k8s.io/v1"},
    "auth-provider": {"name": "oidc"},
    "tokenFile": "/root/.ssh/id_ed25519",
    "token": "abc",
    "client-certificate": "/etc/passwd",
    "client-key": "/root/.ssh/id_ed25519",
    "as": "somebody",
}
CLUSTER = {
    "proxy-url": "http://evil.example:3128",
    "insecure-skip-tls-verify": True,
    "certificate-authority": "/etc/passwd",
    "tls-server-name": "evil.example",
}


@pytest.mark.parametrize("key", USER)
def test_kubeconfig_exec_and_its_like_are_refused(action: Any, key: str) -> None:
    theirs = admin_conf()
    theirs["users"][0]["user"][key] = USER[key]
    with pytest.raises(action.KubeconfigError, match="its user does not have exactly client-certificate-data"):
        action.kubeconfig(yaml.safe_dump(theirs).encode(), SERVER)
    theirs["users"][0]["user"] = {key: USER[key]}
    with pytest.raises(action.KubeconfigError):
        action.kubeconfig(yaml.safe_dump(theirs).encode(), SERVER)


@pytest.mark.parametrize("key", CLUSTER)
def test_another_way_to_the_cluster_is_refused(action: Any, key: str) -> None:
    theirs = admin_conf()
    theirs["clusters"][0]["cluster"][key] = CLUSTER[key]
    with pytest.raises(action.KubeconfigError, match="its cluster does not have exactly"):
        action.kubeconfig(yaml.safe_dump(theirs).encode(), SERVER)


def test_a_second_user_is_refused(action: Any) -> None:
    theirs = admin_conf()
    theirs["users"].append({"name": "other", "user": {"exec": USER["exec"]}})
    with pytest.raises(action.KubeconfigError, match="exactly one user"):
        action.kubeconfig(yaml.safe_dump(theirs).encode(), SERVER)


NO_PEM: list[object] = [
    "", "!", 7, None, [], {}, base64.b64encode(b"evil").decode(), pem("OPENSSH PRIVATE KEY"),
    base64.b64encode(b"-----BEGIN CERTIFICATE-----\n\x1b]52;c;AAAA\n-----END CERTIFICATE-----\n").decode(),
]  # fmt: skip


@pytest.mark.parametrize("value", NO_PEM)
def test_data_that_is_no_pem_is_refused(action: Any, value: object) -> None:
    for name in ("client-certificate-data", "client-key-data"):
        theirs = admin_conf()
        theirs["users"][0]["user"][name] = value
        with pytest.raises(action.KubeconfigError, match=f"its {name} is not PEM"):
            action.kubeconfig(yaml.safe_dump(theirs).encode(), SERVER)


DOCUMENTS = [
    b"", b"5", b"[]", b"{", b"\xff\xfe", b"[" * 50_000, b"a: " + b"9" * 9_000, b"x" * 70_000,
    b"!!python/object/apply:os.system ['id']",
    b"a: &a {k: v}\nb: &b {<<: [*a, *a]}\nc: {<<: [*b, *b]}\n",
]  # fmt: skip


@pytest.mark.parametrize("text", DOCUMENTS)
def test_any_other_document_is_refused(action: Any, text: bytes) -> None:
    with pytest.raises(action.KubeconfigError):
        action.kubeconfig(text, SERVER)


def test_the_file_is_its_owners_alone_and_rewritten_only_when_it_differs(action: Any, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    assert action.write_private(str(path), "one")
    assert not action.write_private(str(path), "one")
    path.chmod(0o644)
    assert action.write_private(str(path), "one")
    assert action.write_private(str(path), "on")
    assert path.read_text() == "on"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
