"""Until when certificates are valid, read from files as kubeadm writes them."""

from __future__ import annotations

import base64
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from syrupy.assertion import SnapshotAssertion

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here")

END = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def pem() -> bytes:
    """A certificate that ends at END."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, END - timedelta(days=9), END)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def run_command(argv: list[str], data: str, **_: Any) -> tuple[int, str, str]:
    done = subprocess.run(argv, input=data, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def write(root: Path, path: str, content: bytes) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def test_every_place_is_read(certificate_facts: Any, tmp_path: Path, pem: bytes) -> None:
    write(tmp_path, "/etc/kubernetes/pki/apiserver.crt", pem)
    write(tmp_path, "/etc/kubernetes/pki/etcd/ca.crt", pem)
    write(tmp_path, "/etc/kubernetes/pki/apiserver.key", b"no certificate")
    write(tmp_path, "/var/lib/kubelet/pki/kubelet-client-current.pem", pem)
    embedded = b"users:\n- user:\n    client-certificate-data: " + base64.b64encode(pem) + b"\n"
    write(tmp_path, "/etc/kubernetes/admin.conf", embedded)
    write(tmp_path, "/etc/pai-install/store/server.pem", pem + b"-----BEGIN PRIVATE KEY-----\n")
    write(tmp_path, "/etc/pai-install/docker-cache/tls.pem", pem)
    found = certificate_facts.certificates(run_command, str(tmp_path))
    assert [entry["path"] for entry in found] == [
        "/etc/kubernetes/admin.conf",
        "/etc/kubernetes/pki/apiserver.crt",
        "/etc/kubernetes/pki/etcd/ca.crt",
        "/etc/pai-install/docker-cache/tls.pem",
        "/etc/pai-install/store/server.pem",
        "/var/lib/kubelet/pki/kubelet-client-current.pem",
    ]
    assert {entry["expires"] for entry in found} == {int(END.timestamp())}
    assert {entry["problem"] for entry in found} == {""}


def test_machine_without_any_has_none(certificate_facts: Any, tmp_path: Path) -> None:
    assert certificate_facts.certificates(run_command, str(tmp_path)) == []


@pytest.mark.parametrize("content", [b"", b"torn", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_cannot_be_read_says_so(certificate_facts: Any, tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "/etc/kubernetes/pki/ca.crt", content)
    (found,) = certificate_facts.certificates(run_command, str(tmp_path))
    assert found["expires"] is None
    assert found["problem"]


def test_machine_without_openssl_says_so(
    certificate_facts: Any, tmp_path: Path, pem: bytes, snapshot: SnapshotAssertion
) -> None:
    def missing(*_: Any, **__: Any) -> tuple[int, str, str]:
        raise FileNotFoundError(2, "No such file or directory")

    write(tmp_path, "/etc/kubernetes/pki/ca.crt", pem)
    (found,) = certificate_facts.certificates(missing, str(tmp_path))
    assert found["problem"] == snapshot


@pytest.mark.parametrize(
    ("path", "program"),
    [
        ("/etc/kubernetes/pki/etcd/peer.crt", "etcd"),
        ("/etc/kubernetes/pki/apiserver.crt", "kube-apiserver"),
        ("/etc/kubernetes/scheduler.conf", "kube-scheduler"),
        ("/etc/kubernetes/admin.conf", ""),
        ("/var/lib/kubelet/pki/kubelet-client-current.pem", ""),
    ],
)
def test_who_reads_a_certificate(certificate_facts: Any, path: str, program: str) -> None:
    assert certificate_facts.reader(path) == program


def test_a_certificate_younger_than_its_program_is_not_read_yet(
    certificate_facts: Any, tmp_path: Path, pem: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "/etc/kubernetes/pki/apiserver.crt", pem)
    written = (tmp_path / "etc/kubernetes/pki/apiserver.crt").stat().st_mtime
    for started, unread in ((written - 60, True), (written + 60, False), (0.0, False)):
        monkeypatch.setattr(certificate_facts, "youngest_start", lambda _name, at=started: at)
        (found,) = certificate_facts.certificates(run_command, str(tmp_path))
        assert found["unread"] is unread


def test_a_program_that_stopped_on_the_way_to_its_certificate_has_not_read_it(
    certificate_facts: Any, tmp_path: Path, pem: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal that was killed between stopping a program and starting it again has more to do."""
    monkeypatch.setattr(certificate_facts, "youngest_start", lambda _name: 0.0)
    write(tmp_path, "/etc/kubernetes/pki/apiserver.crt", pem)
    write(tmp_path, "/var/lib/pai-install/kube-apiserver.aside", b"kind: Pod")
    (found,) = certificate_facts.certificates(run_command, str(tmp_path))
    assert found["unread"]
    write(tmp_path, "/etc/kubernetes/manifests/kube-apiserver.yaml", b"kind: Pod")
    (found,) = certificate_facts.certificates(run_command, str(tmp_path))
    assert not found["unread"]
