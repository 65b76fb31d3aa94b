#!/usr/bin/python
"""Ansible module: etcd of a control plane as a backup has it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_restore
short_description: Put a backup of module pai_backup in the place of a control plane's etcd
description:
  - "C(checked) verifies that the backup belongs to this cluster and restores etcd's data on this machine. Asked
    before the other control planes lose theirs."
  - "C(restored): the programs of the control plane stop, etcd starts again from the snapshot as the only member, and
    the programs start again. The earlier data stay beside the new data. After failed attempts, these are the data
    from before the first attempt. On a machine with an incomplete control plane, or without one, kubeadm init
    creates the rest from the restored keys and data."
  - "C(left) stops the programs of another control plane and removes its membership. It joins again as a
    new one."
  - Machines of a cluster with another authority are rejected.
options:
  state: {description: What to reach., type: str, choices: [checked, restored, left], required: true}
  archive: {description: The file of pai_backup., type: path}
  name: {description: The machine's node name., type: str}
  address: {description: Its address., type: str}
  timeout: {description: Seconds for the API to answer., type: int, default: 300}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Restore
  pai_restore: {state: restored, archive: /var/lib/pai-install/backup/given.tar, name: control1, address: 10.0.0.1}
"""
RETURN = r"""
before: {description: Where the data are that etcd had before., type: str, returned: when there were any}
missing: {description: Files of the control plane that kubeadm init makes again., type: list, elements: str}
"""

import glob
import json
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_api_ready import readiness
from ansible.module_utils.pai_kubeadm_files import MANIFESTS
from ansible.module_utils.pai_kubectl import ADMIN_CONF, API_PORT
from ansible.module_utils.pai_managed import STATE_DIR
from ansible.module_utils.pai_static_pods import PODS, until, youngest_start

ETCDUTL = "/usr/local/lib/pai-install/etcdutl"
CRICTL = "/usr/local/bin/crictl"
KUBERNETES = "/etc/kubernetes"
AUTHORITY = "pki/ca.crt"
DATA = "/var/lib/etcd"
LEDGER = "/var/lib/pai-job-recorder"
MEMBER = "member"
# what etcd had before the last restoration that came to its end, before one that did not, and what takes its place
KEPT, UNPROVEN, FRESH = "before-restore-", "before-unproven-restore-", "restored-"
ASIDE = STATE_DIR + "/restore"
# files that kubeadm makes from the authorities: a backup has none of them
CERTIFICATES = (
    *("apiserver", "apiserver-etcd-client", "apiserver-kubelet-client", "front-proxy-client"),
    *("etcd/server", "etcd/peer", "etcd/healthcheck-client"),
)
KUBECONFIGS = ("admin", "controller-manager", "scheduler")
# watches of before must not take what comes now for old: more than a cluster writes between two backups
BUMP = "1000000000"


class RestoreError(Exception):
    """The restoration is impossible. The text says why."""


def read(path: str) -> bytes:
    """Returns the content of a file, or b"" if it is missing."""
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError:
        return b""


def unpacked(archive: str, folder: str) -> None:
    """Unpacks the archive and verifies its snapshot with etcdutl. Raises RestoreError."""
    try:
        with tarfile.open(archive) as found:
            for entry in found.getmembers():
                # A link or a path with .. would let an archive write anywhere, and root unpacks it.
                if not (entry.isfile() or entry.isdir()) or entry.name.startswith("/") or ".." in entry.name.split("/"):
                    raise RestoreError(f"the backup holds {entry.name!r}, which is not a file of a backup")
            found.extractall(folder)  # noqa: S202 - each name was looked at
    except (OSError, tarfile.TarError) as error:
        raise RestoreError(f"the backup cannot be used: {error}") from error


def require_same_cluster(folder: str, kubernetes: str = KUBERNETES) -> None:
    """Raises RestoreError where the machine's cluster has another authority than the backup."""
    own = read(os.path.join(kubernetes, AUTHORITY))
    if own and own != read(os.path.join(folder, "kubernetes", AUTHORITY)):
        raise RestoreError(
            "this machine is a control plane of another cluster than the backup's: they have different authorities"
        )


def lay_keys(folder: str, kubernetes: str = KUBERNETES) -> None:
    """Writes the keys that are missing, and the one of secrets at rest in any case: the snapshot is read with it."""
    source = os.path.join(folder, "kubernetes")
    for root, _folders, names in os.walk(source):
        where = os.path.join(kubernetes, os.path.relpath(root, source))
        os.makedirs(where, mode=0o700, exist_ok=True)
        for name in names:
            dest = os.path.join(where, name)
            # Existing keys are those of the same authority, as require_same_cluster has seen.
            if os.path.exists(dest) and "encryption" not in where:
                continue
            shutil.copyfile(os.path.join(root, name), dest)
            os.chmod(dest, 0o600)


def lay_ledger(folder: str, ledger: str = LEDGER) -> None:
    """Writes the months of the ledger of GPU hours that are missing, for the user of the job recorder."""
    os.makedirs(ledger, mode=0o700, exist_ok=True)
    owner = os.stat(ledger)
    for path in sorted(glob.glob(os.path.join(folder, "ledger", "*.jsonl"))):
        dest = os.path.join(ledger, os.path.basename(path))
        if not os.path.exists(dest):
            shutil.copyfile(path, dest)
            os.chmod(dest, 0o600)
            # The folder belongs to the dynamic user of the recorder's unit.
            os.chown(dest, owner.st_uid, owner.st_gid)


def missing_files(kubernetes: str = KUBERNETES, aside: str = "") -> list[str]:
    """Returns missing files that this control plane needs to start. Its manifests may be in `aside`."""
    certificates = [f"pki/{name}{ending}" for name in CERTIFICATES for ending in (".crt", ".key")]
    needed = [*certificates, *(f"{name}.conf" for name in KUBECONFIGS)]
    found = [os.path.join(kubernetes, name) for name in needed]
    lost = [path for path in found if not (os.path.isfile(path) and os.path.getsize(path))]
    manifests = [os.path.join(MANIFESTS, f"{name}.yaml") for name in PODS]
    return lost + [path for path in manifests if not _is_kept(path, aside or ASIDE)]


def _is_kept(manifest: str, aside: str) -> bool:
    return os.path.exists(manifest) or os.path.exists(os.path.join(aside, os.path.basename(manifest)))


def stop(aside: str = ASIDE) -> bool:
    """Stops the programs of the control plane and moves their manifests to `aside`. Returns whether any ran."""
    os.makedirs(aside, mode=0o700, exist_ok=True)
    for name in PODS:
        manifest = os.path.join(MANIFESTS, f"{name}.yaml")
        if os.path.exists(manifest):
            shutil.move(manifest, os.path.join(aside, f"{name}.yaml"))
    # etcd must not run while its files are replaced.
    if not until(lambda: not any(map(youngest_start, PODS)), 120):
        start(aside)
        raise RestoreError("the programs of the control plane do not stop: journalctl --unit kubelet says why")
    return any(name.endswith(".yaml") for name in os.listdir(aside))


def start(aside: str = ASIDE) -> None:
    """Lets the kubelet start them again."""
    for name in PODS:
        manifest = os.path.join(aside, f"{name}.yaml")
        if os.path.exists(manifest):
            shutil.move(manifest, os.path.join(MANIFESTS, f"{name}.yaml"))


@contextmanager
def made(module: AnsibleModule, folder: str) -> Iterator[str]:
    """Yields a temporary folder next to etcd's data, with the data of a single member from the snapshot."""
    name, address = module.params["name"], module.params["address"]
    os.makedirs(DATA, mode=0o700, exist_ok=True)
    for left in glob.glob(os.path.join(DATA, FRESH + "*")):  # of a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    # Beside the old data, so that they change places by a rename within one file system.
    fresh = tempfile.mkdtemp(prefix=FRESH, dir=DATA)
    peer = f"https://{address}:2380"
    words = ["--name", name, "--initial-cluster", f"{name}={peer}", "--initial-advertise-peer-urls", peer]
    words += ["--data-dir", os.path.join(fresh, "data"), "--bump-revision", BUMP, "--mark-compacted"]
    try:
        status, out, err = module.run_command([ETCDUTL, "snapshot", "restore", os.path.join(folder, "etcd.db"), *words])
        if status != 0:
            raise RestoreError(f"etcdutl snapshot restore failed: {(err or out).strip()[-500:]}")
        yield os.path.join(fresh, "data", MEMBER)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def copies(prefix: str) -> list[str]:
    """Data that an earlier restoration put aside, the oldest first: names end with the time."""
    return sorted(glob.glob(os.path.join(DATA, prefix + "*")))


def replace(data: str) -> str:
    """Replaces etcd's data. Returns the path of the old data, or "" if there were none.

    The first attempt has the data of the original cluster. Its copy stays, and the copy of the last attempt.
    """
    before = ""
    for old in copies(UNPROVEN)[1:]:
        shutil.rmtree(old, ignore_errors=True)
    if os.path.exists(os.path.join(DATA, MEMBER)):
        # The old data are renamed and not deleted: they are the only way back if the backup does not start.
        before = os.path.join(DATA, UNPROVEN + time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        os.rename(os.path.join(DATA, MEMBER), before)
    os.rename(data, os.path.join(DATA, MEMBER))
    return before


def settle() -> str:
    """Gives the copies of a successful restoration their permanent names. Returns the path of the first one.

    The last copy stays too: the attempt before it may have served for a long time after all.
    """
    unproven = copies(UNPROVEN)
    if not unproven:
        return ""
    for old in (*copies(KEPT), *unproven[1:-1]):
        shutil.rmtree(old, ignore_errors=True)
    for path in copies(UNPROVEN):
        os.rename(path, _lasting(path))
    return _lasting(unproven[0])


def _lasting(unproven: str) -> str:
    return os.path.join(DATA, KEPT + os.path.basename(unproven)[len(UNPROVEN) :])


def mark_restored(*, incomplete: bool) -> None:
    """Tells pai_kubeadm that its init finds restored data. Not where a whole control plane just starts again."""
    path = os.path.join(STATE_DIR, "kubeadm.json")
    if b'"done": true' in read(path) and not incomplete:
        return
    with open(f"{path}.new", "w", encoding="utf-8") as handle:
        json.dump({"state": "init", "done": False, "restored": True}, handle)
    os.replace(f"{path}.new", path)


@contextmanager
def looked_at(module: AnsibleModule) -> Iterator[str]:
    """Yields a temporary folder with the content of the backup. Raises RestoreError."""
    folder = tempfile.mkdtemp(prefix="restore-", dir=STATE_DIR)
    try:
        unpacked(module.params["archive"], folder)
        require_same_cluster(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check(module: AnsibleModule) -> None:
    """Raises RestoreError if a restoration would. Stops nothing."""
    with looked_at(module) as folder, made(module, folder):
        pass


def restore(module: AnsibleModule) -> tuple[str, list[str]]:
    """Restores the backup. Returns the place of the old data, and the files that kubeadm init re-creates.

    After a RestoreError, etcd runs with its old data.
    """
    with looked_at(module) as folder, made(module, folder) as data:
        ran = stop()
        missing = missing_files()
        try:
            lay_keys(folder)
            if os.path.isdir(os.path.join(folder, "ledger")):
                lay_ledger(folder)
            before = replace(data)
            mark_restored(incomplete=bool(missing))
            if missing:  # half a control plane does not start: kubeadm init renders it whole
                shutil.rmtree(ASIDE, ignore_errors=True)
        finally:
            start()
    if missing or not ran:
        return before, missing  # kubeadm init starts them, so nothing is proven yet
    ready = f"https://127.0.0.1:{API_PORT}/readyz"
    if not until(lambda: readiness(ready)[0], module.params["timeout"]):
        kept = next(iter(copies(UNPROVEN)), "")
        raise RestoreError(
            f"the API server does not answer with the restored data: {last_error(module)}"
            + (f" (the previous data are in {kept})" if kept else "")
        )
    return settle(), []


def last_error(module: AnsibleModule) -> str:
    """Returns the last log line of the first program that ended, or a sentence if there is none."""
    for name in ("etcd", "kube-apiserver") if os.path.exists(CRICTL) else ():
        words = [CRICTL, "ps", "--all", "--latest", "--state", "Exited", "--name", f"^{name}$", "--quiet"]
        found = module.run_command(words)[1].split()
        lines = module.run_command([CRICTL, "logs", "--tail", "1", found[0]])[1:] if found else ()
        text = " ".join(line.strip() for line in lines if line.strip())
        if text:
            return f"{name} ended: {text[-400:]}"
    return "no program of the control plane wrote an error"


def leave() -> None:
    """Ends the membership of this control-plane node. kubeadm undoes the rest before it joins again."""
    stop()
    shutil.rmtree(ASIDE, ignore_errors=True)
    shutil.rmtree(os.path.join(DATA, MEMBER), ignore_errors=True)
    # Without data and this file, pai_kubeadm no longer takes the machine for a member, and joins it again.
    if os.path.exists(ADMIN_CONF):
        os.unlink(ADMIN_CONF)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["checked", "restored", "left"], "required": True},
            "archive": {"type": "path"},
            "name": {"type": "str"},
            "address": {"type": "str"},
            "timeout": {"type": "int", "default": 300},
        },
        required_if=[("state", state, ("archive", "name", "address")) for state in ("checked", "restored")],
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=module.params["state"] != "checked")
    before = ""
    missing: list[str] = []
    try:
        if module.params["state"] == "checked":
            check(module)
            module.exit_json(changed=False)
        if module.params["state"] == "restored":
            before, missing = restore(module)
        else:
            leave()
    except (RestoreError, OSError) as error:
        module.fail_json(msg=str(error), remedy="follow docs/backup.md, and run the same command again")
    module.exit_json(changed=True, before=before, missing=missing)


if __name__ == "__main__":
    main()
