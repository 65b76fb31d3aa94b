"""Removes the remains of a node from its machine: pods, mounts, folders, network, packet filters.

They come from the kubelet, kubeadm, and the pod network, not from roles. Nothing behind a mount is ever deleted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator

from ansible.module_utils.pai_machine import PROGRAM_MISSING, command, program_path, read
from ansible.module_utils.pai_pod_filters import CHAINS, filters_of_pods, packet_filters, pod_interfaces

CRICTL = ("/usr/local/bin/crictl", "--runtime-endpoint", "unix:///run/containerd/containerd.sock")
# made by kubeadm, the kubelet, etcd and CNI plugins; /etc/cni/net.d and what others put there stays
FOLDERS = (
    "/var/lib/kubelet",
    "/etc/kubernetes",
    "/var/lib/etcd",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
    "/run/flannel",
    # what kubectl learned of the API
    "/root/.kube/cache",
)
# made by containerd, kubectl and the kubelet; gone where nothing is in them
EMPTY = (
    *("/opt/containerd/bin", "/opt/containerd/lib", "/opt/containerd", "/root/.kube"),
    # containerd makes the folder of pod networks that it is told of
    *("/etc/pai-install/cni", "/etc/pai-install"),
    *(f"/usr/libexec/kubernetes{below}" for below in ("/kubelet-plugins/volume/exec", "/kubelet-plugins/volume")),
    *("/usr/libexec/kubernetes/kubelet-plugins", "/usr/libexec/kubernetes"),
)
# lines of iptables-save that Docker made; it names the bridge of a network after the network's id
DOCKERS = re.compile(r"^:DOCKER|(?:^|\s)-[AjgI] DOCKER|\s-[io] (?:docker0|br-[0-9a-f]{12})(?:\s|$)")
OUR_TABLES = (
    "ip pai_install",
    "ip pai_groups",
    "ip6 pai_groups",
    "ip6 pai_install",
    "netdev pai_install",
    "inet pai_install",
)
MOUNTS = "/proc/self/mountinfo"
PODS_S = 300.0
QUESTION_S = 20.0
UNMOUNT_S = 20.0


class RemainsError(Exception):
    """A remainder cannot be removed. The text names the cause."""


def pods() -> list[str]:
    """Returns the ids of pods in containerd, or [] if crictl or containerd is missing."""
    status, output = command([*CRICTL, "pods", "--quiet"], QUESTION_S)
    return output.split() if status == 0 else []


def remove_pods() -> None:
    """Stops and removes every pod. Raises RemainsError if a pod stays."""
    deadline = time.monotonic() + PODS_S
    found = pods()
    while found and time.monotonic() < deadline:
        # A pod must stop first: only then do CNI plugins free its address and interface.
        command([*CRICTL, "stopp", *found], max(1.0, deadline - time.monotonic()))
        command([*CRICTL, "rmp", "--force", *found], max(1.0, deadline - time.monotonic()))
        found = pods()
    if found:
        raise RemainsError(f"{len(found)} pods do not stop: {' '.join(found[:5])}")


def mounts_below(folder: str, table: str = "") -> list[str]:
    """Returns the mount points below a folder, excluding the folder, innermost first. table: content of mountinfo."""
    rows = [line.split() for line in (table or _mountinfo()).splitlines()]
    # mountinfo writes spaces in paths as \040.
    paths = [row[4].encode().decode("unicode_escape") for row in rows if len(row) > 4]
    # The inner mounts go first: an outer one is busy while something is mounted below it.
    return sorted({path for path in paths if path.startswith(folder + "/")}, key=len, reverse=True)


def _mountinfo() -> str:
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as handle:
        return handle.read()


def unmount_below(folder: str) -> None:
    """Unmounts everything below a folder, including mounts of unreachable servers. Raises RemainsError."""
    for path in mounts_below(folder):
        status, _errors = command(["umount", path], UNMOUNT_S)
        if status != 0:
            # A mount of a dead NFS server hangs every ordinary umount. The lazy one detaches it in any case.
            command(["umount", "--lazy", "--force", path], UNMOUNT_S)
    left = mounts_below(folder)
    if left:
        raise RemainsError(f"{left[-1]} stays mounted, so nothing in {folder} was deleted")


def remove_folder(folder: str) -> None:
    """Removes a folder without mounts below it. If the folder is a mount point, removes its contents only.

    Raises RemainsError for a mount below it, because the data behind it may belong to someone else.
    """
    if mounts_below(folder):
        raise RemainsError(f"{mounts_below(folder)[-1]} is mounted, so nothing in {folder} was deleted")
    if not os.path.ismount(folder):
        shutil.rmtree(folder)
        return
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        # rmtree refuses links, and would otherwise delete their targets.
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def folders() -> list[str]:
    """Those of the folders that are there and hold anything."""
    return [path for path in FOLDERS if os.path.isdir(path) and not (os.path.ismount(path) and not os.listdir(path))]


def empty_folders() -> list[str]:
    """Those of the others that nothing is in, the inner ones first."""
    gone: list[str] = []
    for path in EMPTY:
        # A folder with only empty folders of the list in it is empty soon.
        if os.path.isdir(path) and not [name for name in os.listdir(path) if os.path.join(path, name) not in gone]:
            gone.append(path)
    return gone


def interfaces() -> list[str]:
    """The interfaces of the pod network."""
    status, output = command(["ip", "-json", "link", "show"], QUESTION_S)
    return pod_interfaces(json.loads(output or "[]")) if status == 0 else []


def remove_interface(name: str) -> None:
    """Takes an interface away."""
    command(["ip", "link", "delete", name], QUESTION_S)


def tables() -> list[str]:
    """nftables' tables of the pod network and of ours, as FAMILY NAME."""
    output = command(["nft", "list", "chains"], QUESTION_S)[1]
    known = [" ".join(line.split()[1:3]) for line in output.splitlines() if line.startswith("table ")]
    return [*filters_of_pods(output)[0], *(name for name in known if name in OUR_TABLES)]


def remove_table(name: str) -> None:
    """Takes a table away."""
    command(["nft", "delete", "table", *name.split()], QUESTION_S)


def chains() -> list[str]:
    """iptables' chains of the kubelet, flannel and CNI plugins in tables of others."""
    nft = filters_of_pods(command(["nft", "list", "chains"], QUESTION_S)[1])[1]
    return sorted({*nft, *(packet_filters()[1] or [])})


def remove_chains() -> None:
    """Removes the chains of a node from every variant of iptables. Foreign rules stay."""
    _rewrite_filters(without_chains)


def remove_docker_filters() -> None:
    """Removes the chains of Docker and the rules for its bridges."""
    _rewrite_filters(without_docker)


def _rewrite_filters(reduced: Callable[[str], str]) -> None:
    for save, restore in _variants():
        status, output = command([save], QUESTION_S)
        # restore replaces the tables as a whole in one step, so no packet meets half of the rules.
        if status == 0 and output != (rest := reduced(output)):
            subprocess.run(
                [restore],
                input=rest,
                text=True,
                env={**os.environ, "PATH": program_path()},
                capture_output=True,
                timeout=QUESTION_S,
                check=False,
            )


def _variants() -> Iterator[tuple[str, str]]:
    for family in ("iptables", "ip6tables"):
        # iptables has two back ends in the kernel, and a program may have used either of them.
        for kind in ("nft", "legacy"):
            if kind == "legacy" and not read(f"/proc/net/{'ip6' if family == 'ip6tables' else 'ip'}_tables_names"):
                continue  # asking would load it
            if command([f"{family}-{kind}", "--version"])[0] != PROGRAM_MISSING:
                yield f"{family}-{kind}-save", f"{family}-{kind}-restore"


def without_chains(saved: str) -> str:
    """Returns the output of iptables-save without chains of a node, their rules, and jumps to them."""
    names = "|".join(re.escape(name) for name in CHAINS)
    pattern = re.compile(rf"^:(?:{names})|(?:^|\s)-[AjgI] (?:{names})|pai-install")
    return "".join(line + "\n" for line in saved.splitlines() if not pattern.search(line))


def without_docker(saved: str) -> str:
    """Returns the output of iptables-save without chains of Docker, their rules, jumps to them, and rules for its
    bridges.
    """
    return "".join(line + "\n" for line in saved.splitlines() if not DOCKERS.search(line))
