"""Pods and nodes as the API server says them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
CIDR = "10.200.0.0/16"


def pod(name: str, namespace: str, address: str, node: str = "n1", since: str = "2026-01-01T00:00:00Z") -> Object:
    return {
        "metadata": {"uid": name, "name": name, "namespace": namespace, "creationTimestamp": since},
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "podIP": address},
    }


def node(name: str = "n1", network: str = "10.200.1.0/25", address: str = "172.30.0.1") -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"podCIDR": network},
        "status": {"addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]},
    }
