"""Reads the current settings of a cluster member from its own files, without the API server.

Sources: the files that kubeadm writes, https://kubernetes.io/docs/reference/setup-tools/kubeadm/implementation-details/
"""

from __future__ import annotations

import base64
import binascii
import os
import re

MANIFESTS = "/etc/kubernetes/manifests"
ADMIN_CONF = "/etc/kubernetes/admin.conf"
KUBELET_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
FLANNEL_SUBNET = "/run/flannel/subnet.env"
NETWORK_DEVICES = "/proc/net/dev"
NODE_USER = b"system:node:"
# setting -> static pod, and the argument that carries it
ARGUMENTS = {
    "pod_cidr": ("kube-controller-manager", "cluster-cidr"),
    "service_cidr": ("kube-apiserver", "service-cluster-ip-range"),
    "node_prefix": ("kube-controller-manager", "node-cidr-mask-size"),
    "address": ("kube-apiserver", "advertise-address"),
}


def running_settings(root: str = "/") -> dict[str, str]:
    """Returns the current settings of a control-plane node: ARGUMENTS, version (1.36.3), etcd (3.6.8-0), endpoint
    (NAME:PORT), and backend.

    Unreadable settings are omitted. The result is empty on other machines.
    """
    manifests = {name: _read(root, f"{MANIFESTS}/{name}.yaml") for name, _word in ARGUMENTS.values()}
    found = {setting: _argument(manifests[pod], word) for setting, (pod, word) in ARGUMENTS.items()}
    found["version"] = _image_version(manifests["kube-apiserver"])
    found["etcd"] = _image_tag(_read(root, f"{MANIFESTS}/etcd.yaml"))
    found["endpoint"] = _server(_read(root, ADMIN_CONF))
    if found["version"]:
        found["backend"] = _flannel_backend(root)
    return {setting: value for setting, value in found.items() if value}


def node_name(root: str = "/") -> str:
    """Returns the node name in the certificate of this machine's kubelet, or ""."""
    pem = _read(root, KUBELET_CERTIFICATE)
    block = re.search(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", pem, re.DOTALL)
    try:
        der = base64.b64decode(block.group(1)) if block else b""
    except (binascii.Error, ValueError):
        return ""
    # The Python of a machine has no reader of certificates, and a process of openssl would cost time in each run.
    start = der.find(NODE_USER)
    if start < 1:
        return ""
    # a DER string: its length is the byte before its text
    return der[start + len(NODE_USER) : start + der[start - 1]].decode("ascii", "replace")


def _argument(manifest: str, name: str) -> str:
    # The manifest has one flag per line, as kubeadm writes it. A machine's Python may have no YAML.
    found = re.search(rf"^\s*- --{re.escape(name)}=(\S+)$", manifest, re.MULTILINE)
    return found.group(1).strip("\"'") if found else ""


def _image_version(manifest: str) -> str:
    found = re.search(r"^\s*image: \S+:v(\d+\.\d+\.\d+\S*)$", manifest, re.MULTILINE)
    return found.group(1) if found else ""


def _image_tag(manifest: str) -> str:
    found = re.search(r"^\s*image: \S+:([^\s:@/]+)$", manifest, re.MULTILINE)
    return found.group(1) if found else ""


def _flannel_backend(root: str) -> str:
    """Returns vxlan or host-gw, or "" if flannel does not run."""
    if not _read(root, FLANNEL_SUBNET):
        return ""
    devices = _read(root, NETWORK_DEVICES)
    # Only vxlan has a network device. Without it, flannel sets routes by host-gw.
    return "vxlan" if re.search(r"^\s*flannel\.\d+:", devices, re.MULTILINE) else "host-gw" if devices else ""


def _server(kubeconfig: str) -> str:
    found = re.search(r"^\s*server: https://(\S+)$", kubeconfig, re.MULTILINE)
    return found.group(1) if found else ""


def _read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path.lstrip("/")), encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except OSError:
        return ""
