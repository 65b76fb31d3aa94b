#!/usr/bin/python
"""Ansible module: save the irreplaceable data of a cluster in one file on a control-plane node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_backup
short_description: Put a snapshot of etcd and the keys of the cluster into one file
description:
  - Takes a snapshot with etcdctl, or uses a stored one, and verifies its hash.
  - Packs it with the authorities of the cluster and their keys, the keys of service accounts, and the key of secrets at
    rest. Certificates that kubeadm makes from these are not in it.
  - The ledger of GPU hours of this control-plane node, if it has one, is in it.
  - The file is for root alone (0600), in a folder that is for root alone.
options:
  dest: {description: The file to make., type: path, required: true}
  snapshot: {description: Name of a snapshot of the role etcd_backup. Empty for a new snapshot., type: str}
  state: {description: Whether it is there., type: str, choices: [present, absent], default: present}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Back up
  pai_backup: {dest: /var/lib/pai-install/backup/now.tar}
"""
RETURN = r"""
sha256: {description: Of the file., type: str, returned: when it is there}
snapshot: {description: Sha256 of the snapshot's content., type: str, returned: when it is there}
bytes: {description: Size of the file., type: int, returned: when it is there}
"""

import glob
import hashlib
import os
import tarfile

from ansible.module_utils.basic import AnsibleModule

KUBERNETES = "/etc/kubernetes"
# below KUBERNETES
KEYS = (
    *(f"pki/{name}.{kind}" for name in ("ca", "front-proxy-ca", "etcd/ca") for kind in ("crt", "key")),
    *("pki/sa.pub", "pki/sa.key"),
    "encryption/config.json",
)
SNAPSHOT = "etcd.db"
# of the job recorder
LEDGER = "/var/lib/pai-job-recorder"
PROGRAM = "/usr/local/lib/pai-install/etcd-snapshot.py"
KEPT = "/var/lib/pai-install/etcd-backup"


class SnapshotError(Exception):
    """There is no snapshot. The text says why."""


def take(module: AnsibleModule, path: str) -> str:
    """Writes a new or existing snapshot to a file and returns the sha256 of its content. Raises SnapshotError."""
    if not os.path.exists(PROGRAM):
        raise SnapshotError(f"{PROGRAM} is missing: pai-install apply --phase control-plane installs it")
    kept = module.params["snapshot"]
    words = ["copy", os.path.join(KEPT, kept), path] if kept else ["take", path]
    status, out, err = module.run_command([PROGRAM, *words])
    if status != 0:
        raise SnapshotError(err.strip() or f"{PROGRAM} ended with {status}")
    return str(out.strip())


def add_ledger(archive: tarfile.TarFile, path: str) -> None:
    """Adds a file that may grow meanwhile, as long as it is now."""
    with open(path, "rb") as handle:
        entry = archive.gettarinfo(fileobj=handle, arcname=f"ledger/{os.path.basename(path)}")
        archive.addfile(entry, handle)


def make(module: AnsibleModule, dest: str, kubernetes: str = KUBERNETES, ledger: str = LEDGER) -> str:
    """Makes the file and gives the sha256 of the snapshot in it. Raises SnapshotError and OSError."""
    folder = os.path.dirname(dest)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chmod(folder, 0o700)
    snapshot = f"{dest}.db"
    try:
        found = take(module, snapshot)
        descriptor = os.open(f"{dest}.partial", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as handle, tarfile.open(fileobj=handle, mode="w") as archive:
            archive.add(snapshot, SNAPSHOT)
            for name in KEYS:
                if os.path.isfile(os.path.join(kubernetes, name)):
                    archive.add(os.path.join(kubernetes, name), f"kubernetes/{name}")
            for path in sorted(glob.glob(os.path.join(ledger, "ledger-*.jsonl"))):
                add_ledger(archive, path)
        # An interrupted backup must not look whole.
        os.rename(f"{dest}.partial", dest)
    finally:
        for left in (snapshot, f"{dest}.partial"):
            if os.path.exists(left):
                os.unlink(left)
    return found


def sha256(path: str) -> str:
    """Of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as handle:
        while part := handle.read(1 << 20):
            found.update(part)
    return found.hexdigest()


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "snapshot": {"type": "str"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    dest = module.params["dest"]
    if module.params["state"] == "absent":
        there = os.path.exists(dest)
        if there and not module.check_mode:
            os.unlink(dest)
        module.exit_json(changed=there)
    if module.check_mode:
        module.exit_json(changed=False)
    try:
        snapshot = make(module, dest)
    except (SnapshotError, OSError, tarfile.TarError) as error:
        module.fail_json(
            msg=f"no backup was made: {error}", remedy="check pai-install status, and etcdctl endpoint health there"
        )
    module.exit_json(changed=False, sha256=sha256(dest), snapshot=snapshot, bytes=os.path.getsize(dest))


if __name__ == "__main__":
    main()
