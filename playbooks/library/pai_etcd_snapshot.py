#!/usr/bin/python
"""Ansible module: a snapshot of etcd on this control plane, complete or not there."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_etcd_snapshot
short_description: Save a snapshot of etcd
description:
  - Saves what this control plane's etcd holds into a file that only root can read, and checks its sum.
  - Keeps the last few of them. Such a file holds every object of the cluster, secrets as etcd has them.
options:
  folder: {description: Where snapshots are kept., type: path, default: /var/lib/pai-install/etcd-snapshots}
  keep: {description: How many are kept., type: int, default: 3}
  program: {description: etcdctl that knows address and certificates., type: path, default: /usr/local/bin/etcdctl}
  timeout: {description: Seconds., type: int, default: 300}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Save the snapshot
  pai_etcd_snapshot:
"""
RETURN = r"""
path: {description: The snapshot., type: str, returned: always}
size: {description: Its bytes., type: int, returned: success}
removed: {description: Older snapshots that were removed., type: list, elements: str, returned: always}
"""

import glob
import hashlib
import os
import subprocess
import time

from ansible.module_utils.basic import AnsibleModule

# etcd appends the SHA-256 of a snapshot to it; the database before it consists of whole pages
SUM = 32
PAGE = 512


def whole(path: str) -> bool:
    """Whether a snapshot is complete: its last bytes are the sum of those before."""
    size = os.path.getsize(path) - SUM
    if size <= 0 or size % PAGE:
        return False
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        left = size
        while left and (block := handle.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
        return handle.read() == digest.digest()


def save(program: str, path: str, timeout: int) -> str:
    """Saves a snapshot in one step; why it could not, or nothing."""
    partial = path + ".part"
    try:
        done = subprocess.run(
            [program, "snapshot", "save", partial], capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode != 0:
            return f"etcdctl: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]}"
        if not whole(partial):
            return "the snapshot is incomplete: its sum is not that of its content"
        os.chmod(partial, 0o600)
        with open(partial, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(partial, path)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
    return ""


def older(folder: str, keep: int) -> list[str]:
    """The snapshots beyond the last `keep`; names sort by time."""
    return sorted(glob.glob(os.path.join(folder, "etcd-*.db")))[: -keep or None]


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "default": "/var/lib/pai-install/etcd-snapshots"},
            "keep": {"type": "int", "default": 3},
            "program": {"type": "path", "default": "/usr/local/bin/etcdctl"},
            "timeout": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    folder = module.params["folder"]
    path = os.path.join(folder, time.strftime("etcd-%Y%m%dT%H%M%SZ.db", time.gmtime()))
    if module.check_mode:
        module.exit_json(changed=True, path=path, removed=[])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    problem = save(module.params["program"], path, module.params["timeout"])
    if problem:
        module.fail_json(msg=f"no snapshot of etcd could be saved: {problem}", path=path)
    removed = older(folder, max(1, module.params["keep"]))
    for one in removed:
        os.unlink(one)
    module.exit_json(changed=True, path=path, size=os.path.getsize(path), removed=removed)


if __name__ == "__main__":
    main()
