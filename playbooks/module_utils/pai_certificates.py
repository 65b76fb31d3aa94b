"""Which certificates a machine of the cluster lives by, and until when they are valid.

Sources: the files that kubeadm writes, https://kubernetes.io/docs/reference/setup-tools/kubeadm/implementation-details/
"""

from __future__ import annotations

import base64
import binascii
import calendar
import glob
import os
import re
import time
from collections.abc import Callable
from typing import Any

PKI = "/etc/kubernetes/pki"
KUBECONFIGS = ("admin", "super-admin", "controller-manager", "scheduler")
# the kubelet renews it by itself; one that is near its end tells that it no longer does
KUBELET = "/var/lib/kubelet/pki/kubelet-client-current.pem"

RunCommand = Callable[..., tuple[int, str, str]]


def certificates(run_command: RunCommand, root: str = "/") -> list[dict[str, Any]]:
    """{path, expires, problem} of each certificate there is; expires: seconds since 1970, None with a problem."""
    found = []
    for path, pem in sorted(_pems(root).items()):
        expires, problem = _expiry(run_command, pem)
        found.append({"path": path, "expires": expires, "problem": problem})
    return found


def _pems(root: str) -> dict[str, str]:
    """Path as the machine knows it -> the certificate's text."""

    def at(path: str) -> str:
        return os.path.join(root, path.lstrip("/"))

    files = [
        path for pattern in (f"{PKI}/*.crt", f"{PKI}/etcd/*.crt", KUBELET) for path in sorted(glob.glob(at(pattern)))
    ]
    pems = {"/" + os.path.relpath(path, root): _read(path) for path in files}
    for name in KUBECONFIGS:
        path = f"/etc/kubernetes/{name}.conf"
        embedded = re.search(r"client-certificate-data:\s*(\S+)", _read(at(path)))
        if embedded:
            pems[path] = _decoded(embedded.group(1))
    return pems


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except OSError:
        return ""


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""


def _expiry(run_command: RunCommand, pem: str) -> tuple[int | None, str]:
    """When the first certificate in the text expires, or why it cannot be read."""
    try:
        status, out, errors = run_command(["openssl", "x509", "-noout", "-enddate"], data=pem, handle_exceptions=False)
    except OSError as error:
        return None, f"openssl cannot be run: {error.strerror}"
    if status != 0:
        return None, " ".join(errors.split())[:200] or "openssl cannot read it"
    try:
        return calendar.timegm(time.strptime(out.strip(), "notAfter=%b %d %H:%M:%S %Y GMT")), ""
    except ValueError:
        return None, f"openssl says {out.strip()[:100]!r}"
