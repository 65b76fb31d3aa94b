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

from ansible.module_utils.pai_parallel import in_parallel
from ansible.module_utils.pai_static_pods import stopped_halfway, youngest_start

PKI = "/etc/kubernetes/pki"
KUBECONFIGS = ("admin", "super-admin", "controller-manager", "scheduler")
# the kubelet renews it by itself; one that is near its end tells that it no longer does
KUBELET = "/var/lib/kubelet/pki/kubelet-client-current.pem"
# of the component store and the registry cache: what they show, and by whom machines know them
REGISTRIES = (
    "/etc/pai-install/store/server.pem",
    "/etc/pai-install/store/ca.pem",
    "/etc/pai-install/docker-cache/tls.pem",
    "/etc/pai-install/registry/ca.pem",
)

RunCommand = Callable[..., tuple[int, str, str]]


def certificates(run_command: RunCommand, root: str = "/") -> list[dict[str, Any]]:
    """{path, expires, problem, unread} of each certificate there is.

    expires: seconds since 1970, None with a problem. unread: whether the program that reads it started before it was
    written, as after a renewal that was interrupted.
    """
    pems = sorted(_pems(root).items())
    dates = in_parallel(lambda entry: _expiry(run_command, entry[1]), pems)  # most of it is waiting for openssl
    return [
        {"path": path, "expires": date, "problem": why, "unread": unread(path, root)}
        for (path, _pem), (date, why) in zip(pems, dates)
    ]


def reader(path: str) -> str:
    """Returns the static pod that reads a certificate of kubeadm, or ""."""
    name = os.path.basename(path)
    if path.startswith(f"{PKI}/"):
        return "etcd" if path.startswith(f"{PKI}/etcd/") else "kube-apiserver"
    kept = {"controller-manager.conf": "kube-controller-manager", "scheduler.conf": "kube-scheduler"}
    return kept.get(name, "")


def unread(path: str, root: str = "/") -> bool:
    """Whether the program that reads the certificate runs since before it was written, or stopped on the way to it."""
    program = reader(path)
    if program and stopped_halfway(program, root):
        return True
    started = youngest_start(program) if program else 0.0
    try:
        # One second of tolerance: the kernel counts starts in ticks, and file systems may round times.
        return bool(started) and started < os.path.getmtime(os.path.join(root, path.lstrip("/"))) - 1
    except OSError:
        return False


def _pems(root: str) -> dict[str, str]:
    """Path as the machine knows it -> the certificate's text."""

    def at(path: str) -> str:
        return os.path.join(root, path.lstrip("/"))

    patterns = (f"{PKI}/*.crt", f"{PKI}/etcd/*.crt", KUBELET, *REGISTRIES)
    files = [path for pattern in patterns for path in sorted(glob.glob(at(pattern)))]
    pems = {"/" + os.path.relpath(path, root): _read(path) for path in files}
    for name in KUBECONFIGS:
        path = f"/etc/kubernetes/{name}.conf"
        # kubeadm writes these certificates into the kubeconfig. No file of their own exists.
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
        # openssl writes names of months in English, whatever the locale is.
        return calendar.timegm(time.strptime(out.strip(), "notAfter=%b %d %H:%M:%S %Y GMT")), ""
    except ValueError:
        return None, f"openssl says {out.strip()[:100]!r}"
