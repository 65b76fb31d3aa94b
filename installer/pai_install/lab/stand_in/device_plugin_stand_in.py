#!/usr/bin/env python3
"""A stand-in for NVIDIA's device plugin: has the kubelet's own node offer so many nvidia.com/gpu; hands nothing out.

Usage: device_plugin_stand_in.py COUNT. Speaks to the API with the kubelet's identity as soon as the machine has one.
"""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

CONFIG = Path("/etc/kubernetes/kubelet.conf")
IDENTITY = Path("/var/lib/kubelet/pki/kubelet-client-current.pem")
RESOURCE = "nvidia.com/gpu"
WAIT_S = 5


def wanted_patch(node: dict[str, Any], count: str) -> dict[str, Any]:
    """What to change in a node's status; {} when it offers `count` already."""
    status = node.get("status", {})
    lists = ("capacity", "allocatable")
    if all(status.get(name, {}).get(RESOURCE) == count for name in lists):
        return {}
    return {"status": {name: {RESOURCE: count} for name in lists}}


def call(url: str, context: ssl.SSLContext, patch: dict[str, Any] | None = None) -> dict[str, Any]:
    """GETs the node, or PATCHes it; returns the answer."""
    data = json.dumps(patch).encode() if patch else None
    headers = {"Content-Type": "application/merge-patch+json"}
    request = urllib.request.Request(url, data, headers, method="PATCH" if patch else "GET")  # noqa: S310 - https
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:  # noqa: S310 - https
        found: dict[str, Any] = json.load(answer)
        return found


def server_of(config: str) -> tuple[str, str]:
    """(address of the API server, its authority as PEM) of a kubelet's configuration. Raises ValueError."""
    address = re.search(r"^\s*server: (\S+)", config, re.MULTILINE)
    authority = re.search(r"certificate-authority-data: (\S+)", config)
    if address is None or authority is None:
        raise ValueError(f"{CONFIG} names no server and authority")
    return address.group(1), base64.b64decode(authority.group(1)).decode()


def offer(count: str) -> bool:
    """Has the node offer `count`; False when it did so before."""
    server, authority = server_of(CONFIG.read_text())
    context = ssl.create_default_context(cadata=authority)
    context.load_cert_chain(IDENTITY)
    url = f"{server}/api/v1/nodes/{os.uname().nodename.lower()}"
    patch = wanted_patch(call(url, context), count)
    if patch:
        call(url + "/status", context, patch)
    return bool(patch)


def main() -> None:
    """Keeps the offer up, also after the kubelet has registered the node again."""
    said = ""
    while True:
        says = "the node has not joined a cluster"
        try:
            if CONFIG.exists() and IDENTITY.exists():
                says = f"the node offers {sys.argv[1]} {RESOURCE}" if offer(sys.argv[1]) else said
        except (OSError, ValueError) as error:
            says = str(error)
        if says != said:
            print(says, flush=True)  # noqa: T201 - goes to the journal
        said = says
        time.sleep(WAIT_S)


if __name__ == "__main__":
    main()
