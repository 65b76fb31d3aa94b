"""What tests write into layout.yaml."""

from __future__ import annotations


def worker_entry(hostname: str, hostip: str, sku: str) -> str:
    """An entry of machine-list, to be added at the end of layouts/lab's. sku: its machine-type."""
    return f"""
  - hostname: {hostname}
    hostip: {hostip}
    machine-type: {sku}
    pai-worker: "true"
"""
