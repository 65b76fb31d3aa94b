"""The pod network configuration of containerd: our own folder, for the addresses of this node.

containerd generates no configuration if its folder has any file, and loads every file there: of podman, of an earlier
cluster with other addresses. So the folder is exclusively ours, with one file for the node's current pod CIDR.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from typing import Any

from ansible.module_utils.pai_cluster_settings import node_name
from ansible.module_utils.pai_digests import sha256
from ansible.module_utils.pai_kubectl import KUBELET_CONF, Kubectl, KubectlError

TEMPLATE = "/etc/pai-install/pod-network.json"
CONFIGURATION = "/etc/pai-install/cni/10-pods.conflist"
PLACEHOLDER = "POD_CIDR"
MODE = "0644"
INTERVAL_S = 1.0


def is_node() -> bool:
    """Whether the machine has joined, and its runtime is set up."""
    return os.path.exists(KUBELET_CONF) and os.path.exists(TEMPLATE)


def configuration(pod_cidr: str) -> str:
    """The file's text for a node's range of addresses. Raises OSError without the template."""
    with open(TEMPLATE, encoding="utf-8") as handle:
        return handle.read().replace(PLACEHOLDER, pod_cidr)


def current() -> str:
    """The file's text, empty without one."""
    try:
        with open(CONFIGURATION, encoding="utf-8") as handle:
            return handle.read()
    except OSError:
        return ""


def present_cidr(text: str) -> str:
    """Returns the pod CIDR in a configuration, or ""."""
    try:
        return str(json.loads(text)["plugins"][0]["ipam"]["ranges"][0][0]["subnet"])
    except (ValueError, KeyError, IndexError, TypeError):
        return ""


def expectation(text: str) -> dict[str, Any]:
    """Returns the expectation of the file for pai_state."""
    data = text.encode()
    return {"kind": "file", "path": CONFIGURATION, "sha256": sha256(data), "size": len(data), "mode": MODE}


def write(text: str) -> None:
    """Writes the file in one step: containerd reads the folder when something in it changes."""
    folder = os.path.dirname(CONFIGURATION)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    # containerd loads the folder when a file in it is written or renamed, not when one is moved there; it
    # reads files with the endings of CNI alone
    descriptor, temporary = tempfile.mkstemp(dir=folder, suffix=".new")
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)
    os.chmod(temporary, int(MODE, 8))
    os.replace(temporary, CONFIGURATION)


def assigned_cidr(timeout_s: float) -> str:
    """Returns the pod CIDR of this node. The controller manager assigns it some seconds after the node joins.

    Raises KubectlError on a timeout.
    """
    name, kubectl = node_name(), Kubectl(KUBELET_CONF)
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            found = str(kubectl.get("node", name, timeout_s=10)["spec"].get("podCIDR", ""))
            problem = f"node {name} has no range of addresses for pods yet"
        except KubectlError as error:
            found, problem = "", str(error)
        if found:
            return found
        if time.monotonic() > deadline:
            raise KubectlError(problem)
        time.sleep(INTERVAL_S)


def forget() -> None:
    """Removes the file: a machine that joins again may get another range."""
    if os.path.exists(CONFIGURATION):
        os.unlink(CONFIGURATION)
