#!/usr/bin/python
"""Ansible module: collect logs and versions of a machine for support. Read-only."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_support
short_description: Collect logs and versions of this machine
description:
  - Runs a few read-only programs in parallel with a time limit. Keeps only the end of long output.
  - Reads no secrets deliberately. The controller host masks known secrets.
options:
  largest: {description: Bytes of all texts together., type: int, default: 2000000}
  timeout: {description: Seconds for one program., type: int, default: 15}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Collect logs and versions
  pai_support:
"""
RETURN = r"""
packed: {description: "JSON of name -> text, compressed by zlib, in base64.", type: str, returned: always}
"""

import base64
import json
import os
import subprocess
import zlib
from typing import Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_parallel import in_parallel

_JOURNAL = ["journalctl", "--no-pager", "--output", "short-iso"]
UNITS = ("kubelet", "containerd", "docker", "chrony", "pai-component-store", "pai-api-proxy", "nfs-server")
COMMANDS = {
    **{f"journal-{unit}.txt": [*_JOURNAL, "--lines", "2000", "--unit", unit] for unit in UNITS},
    "journal-kernel.txt": [*_JOURNAL, "--lines", "1000", "--dmesg"],
    "journal-warnings.txt": [*_JOURNAL, "--lines", "1000", "--priority", "warning"],
    "units-failed.txt": ["systemctl", "--no-pager", "--failed"],
    "units-ours.txt": ["systemctl", "--no-pager", "list-units", "--all", "pai-*", "kubelet*", "containerd*", "docker*"],
    "time.txt": ["chronyc", "-n", "tracking"],
    "disks.txt": ["df", "--human-readable", "--print-type"],
    "inodes.txt": ["df", "--inodes"],
    "mounts.txt": ["findmnt", "--list", "--real"],
    "memory.txt": ["free", "--mebi"],
    "addresses.txt": ["ip", "-brief", "address"],
    "routes.txt": ["ip", "route"],
    "packet-filter.txt": ["nft", "--stateless", "list", "tables"],
    "kernel.txt": ["uname", "--all"],
    "containerd-version.txt": ["/usr/local/bin/containerd", "--version"],
    "runc-version.txt": ["/usr/local/sbin/runc", "--version"],
    "kubelet-version.txt": ["/usr/local/bin/kubelet", "--version"],
    "docker-version.txt": ["docker", "version"],
    "nvidia-smi.txt": ["nvidia-smi"],
    "containers.txt": ["/usr/local/bin/crictl", "ps", "--all"],
    "pods.txt": ["/usr/local/bin/crictl", "pods"],
    "images.txt": ["/usr/local/bin/crictl", "images", "--digests"],
    "packages.txt": ["dpkg-query", "--show", "docker*", "containerd*", "runc*", "nvidia*", "linux-image*", "chrony*"],
    "packages-held.txt": ["apt-mark", "showhold"],
    "etcd-members.txt": ["/usr/local/bin/etcdctl", "member", "list", "--write-out", "table"],
    "etcd-status.txt": ["/usr/local/bin/etcdctl", "endpoint", "status", "--cluster", "--write-out", "table"],
}
FILES = ("/etc/os-release", "/etc/docker/daemon.json", "/var/lib/pai-install/artifacts.json")
# the part of all that one text may have at most
SHARE = 4


def answer(words: list[str], timeout: int) -> Optional[str]:
    """Returns the output of a program, or None if it is missing."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        return None
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{error}\n"
    return done.stdout.decode("utf-8", "replace")


def read(path: str) -> Optional[str]:
    """Returns a file as text, or None if it is unreadable."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(1 << 20)
    except OSError:
        return None


def bounded(texts: dict[str, str], largest: int) -> dict[str, str]:
    """Returns the texts with at most `largest` characters in total. Long texts lose their beginning.

    Short texts have priority: a long log never displaces the versions.
    """
    found, left = {}, largest
    for name, text in sorted(texts.items(), key=lambda item: len(item[1])):
        room = min(left, largest // SHARE)
        cut = max(0, len(text) - room)
        found[name] = (f"[{cut} characters before this are left out]\n" if cut else "") + text[cut:]
        left -= len(text) - cut
    return dict(sorted(found.items()))


def collect(timeout: int) -> dict[str, str]:
    """Name -> text of everything that there is here."""
    names = list(COMMANDS)
    answers = dict(zip(names, in_parallel(lambda name: answer(COMMANDS[name], timeout), names)))
    answers.update({path.strip("/").replace("/", "-"): read(path) for path in FILES if os.path.exists(path)})
    return {name: text for name, text in answers.items() if text}


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={"largest": {"type": "int", "default": 2000000}, "timeout": {"type": "int", "default": 15}},
        supports_check_mode=True,
    )
    texts = bounded(collect(module.params["timeout"]), module.params["largest"])
    # Ansible sends results as JSON, and copies and masks them several times.
    packed = base64.b64encode(zlib.compress(json.dumps(texts).encode(), 6)).decode()
    module.exit_json(changed=False, packed=packed)


if __name__ == "__main__":
    main()
