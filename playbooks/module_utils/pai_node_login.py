"""The login of a machine's kubelet: its key never leaves the machine, its certificate is made for its name alone.

A bootstrap token as kubeadm uses it by itself would let its holder become any node, for a year.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
import time
from collections.abc import Callable

from ansible.module_utils.pai_kubectl import KUBELET_CONF
from ansible.module_utils.pai_managed import STATE_DIR

KEY = STATE_DIR + "/node.key"
KUBELET_PKI = "/var/lib/kubelet/pki"
CURRENT = KUBELET_PKI + "/kubelet-client-current.pem"
GROUP = "system:nodes"
# kubeadm's check that no kubelet has a login yet
KUBELET_CONF_CHECK = "FileAvailable--etc-kubernetes-kubelet.conf"

RunCommand = Callable[..., tuple[int, str, str]]


class LoginError(Exception):
    """A key, request or certificate that is not as it must be."""


def subject(name: str) -> str:
    """The one subject that a node's certificate may have, as RFC 2253 writes it."""
    return f"CN=system:node:{name},O={GROUP}"


def make_request(run: RunCommand, name: str) -> str:
    """Returns a certificate signing request (PEM) for a node, and creates its key if it is missing.

    Raises LoginError with openssl's message.
    """
    # A key of an interrupted join is used again: its certificate may be on the way.
    if not os.path.exists(KEY):
        os.makedirs(STATE_DIR, exist_ok=True)
        _write(KEY, _openssl(run, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"))
    return _openssl(run, "req", "-new", "-key", KEY, "-subj", f"/O={GROUP}/CN=system:node:{name}")


def require_subject(run: RunCommand, request: str, name: str) -> None:
    """Raises LoginError unless the request is for exactly that node, and for nothing besides."""
    with tempfile.NamedTemporaryFile("w", prefix="pai-csr-") as handle:
        handle.write(request)
        handle.flush()
        seen = _openssl(run, "req", "-in", handle.name, "-noout", "-subject", "-nameopt", "RFC2253").strip()
        text = _openssl(run, "req", "-in", handle.name, "-noout", "-text")
    if seen.replace("subject=", "", 1).strip() != subject(name):
        raise LoginError(f"the request is for {seen!r}, not for the node {name}")
    # Other names in a certificate could let a node pass for a server.
    if "Subject Alternative Name" in text:
        raise LoginError("the request asks for other names besides")


def write_login(certificate: str, authority: str, endpoint: str) -> None:
    """Writes certificate and key of the kubelet and its kubeconfig, then deletes the separate key file.

    certificate, authority: PEM. endpoint: NAME:PORT of the API. Raises LoginError if the key is missing.
    """
    try:
        with open(KEY, encoding="utf-8") as handle:
            key = handle.read()
    except OSError as error:
        raise LoginError(f"the key that the certificate was made for is gone: {error}") from error
    os.makedirs(KUBELET_PKI, mode=0o700, exist_ok=True)
    # the kubelet finds its present certificate by a link, and renews it beside
    dated = f"kubelet-client-{time.strftime('%Y-%m-%d-%H-%M-%S', time.gmtime())}.pem"
    _write(os.path.join(KUBELET_PKI, dated), certificate.rstrip() + "\n" + key)
    if os.path.lexists(CURRENT):
        os.unlink(CURRENT)
    os.symlink(dated, CURRENT)
    # It comes after the certificate that it names, so a kubelet never finds half a login.
    _write(KUBELET_CONF, kubeconfig(authority, endpoint))
    # The key is in the file of the kubelet now, and a second copy would only be one more place to guard.
    os.unlink(KEY)


def kubeconfig(authority: str, endpoint: str) -> str:
    """The kubelet's kubeconfig, as kubeadm leaves it after a join."""
    encoded = base64.b64encode(authority.encode()).decode()
    return f"""apiVersion: v1
kind: Config
clusters:
- name: default-cluster
  cluster:
    certificate-authority-data: {encoded}
    server: https://{endpoint}
users:
- name: default-auth
  user:
    client-certificate: {CURRENT}
    client-key: {CURRENT}
contexts:
- name: default-context
  context:
    cluster: default-cluster
    namespace: default
    user: default-auth
current-context: default-context
"""


def is_certificate(text: str) -> bool:
    """Whether that is one PEM certificate and nothing else."""
    return bool(re.fullmatch(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*", text))


def _openssl(run: RunCommand, *words: str) -> str:
    status, out, err = run(["openssl", *words])
    if status != 0:
        raise LoginError(f"openssl {words[0]} failed: {err.strip()[-300:]}")
    return out


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path))  # 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(temporary, path)
