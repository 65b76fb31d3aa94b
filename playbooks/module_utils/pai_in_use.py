"""Current uses of a machine that an installation could disturb: containers, GPUs, firewalls, foreign networks."""

from __future__ import annotations

import glob
import json
import os
import re

from ansible.module_utils.pai_machine import command, read

# of Docker with systemd (docker-ID.scope) and without (/docker/ID), of nerdctl and podman
CONTAINER_CGROUP = re.compile(r"(?:docker[-/]|nerdctl-|libpod-)([0-9a-f]{12,64})")
CNI_FOLDER = "/etc/cni/net.d"
OLD_SHIMS = ("containerd-shim", "containerd-shim-runc-v1")
QUESTION_S = 20
DAEMONS = ("nvidia-persiste", "nv-fabricmanage", "nv-hostengine")  # as /proc/PID/comm has them


def stops_with_containerd() -> bool:
    """Whether Docker's unit stops when containerd restarts, as those of Docker before 23."""
    shown = command(["systemctl", "show", "docker.service", "--property=Requires,BindsTo"], QUESTION_S)[1]
    return bool(re.search(r"^(?:Requires|BindsTo)=.*\bcontainerd\.service\b", shown, re.MULTILINE))


def gpu_containers(proc: str = "/proc") -> int:
    """How many containers have an NVIDIA device open, pods apart.

    A reload of systemd may take the device away from a container that got it by a hook of its runtime. The kubelet
    knows the devices of pods: they keep them.
    """
    found = set()
    for path in glob.glob(proc + "/[0-9]*/cgroup"):
        owner = CONTAINER_CGROUP.search(read(path))
        if owner and owner.group(1) not in found and _holds_gpu(os.path.dirname(path)):
            found.add(owner.group(1))
    return len(found)


def gpu_processes(proc: str = "/proc") -> int:
    """How many processes have an NVIDIA device open, NVIDIA's own daemons apart."""
    folders = [path for path in glob.glob(proc + "/[0-9]*") if not read(path + "/comm").startswith(DAEMONS)]
    return sum(_holds_gpu(path) for path in folders)


def old_shims(proc: str = "/proc") -> int:
    """How many containers run under a shim that containerd 2 cannot take over: v1 of Docker 19.03 and older, runc-v1.

    Docker 20.10 and newer use runc-v2.
    """
    # The kernel's own name of a process has 15 characters, which is too short for this shim.
    programs = [os.path.basename(read(path).split("\0")[0]) for path in glob.glob(proc + "/[0-9]*/cmdline")]
    return sum(name in OLD_SHIMS for name in programs)


def _holds_gpu(process: str) -> bool:
    for link in glob.glob(process + "/fd/*"):
        try:
            target = os.readlink(link)
        except OSError:
            continue  # closed meanwhile
        if target.startswith("/dev/nvidia"):
            return True
    return False


def dropped_forwarding() -> list[str]:
    """Returns chains that drop forwarded packets: "iptables FORWARD", "TABLE CHAIN" of nftables.

    Reads a filter only if it is loaded, because reading would load it.
    """
    chains = []
    if os.path.isdir("/sys/module/nf_tables") or os.path.exists("/proc/net/netfilter/nfnetlink_log"):
        chains = dropping_chains(command(["nft", "--terse", "list", "chains"], QUESTION_S)[1])
    if "filter" in read("/proc/net/ip_tables_names").split():
        rules = command(["iptables-legacy", "--list-rules", "FORWARD"], QUESTION_S)[1]
        chains += ["iptables FORWARD"] if re.search(r"^-P FORWARD DROP", rules, re.MULTILINE) else []
    return chains


def dropping_chains(text: str) -> list[str]:
    """Those of `nft list chains` that filter forwarded packets of IPv4 and drop by default."""
    found, table, chain = [], "", ""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["table"]:
            table = " ".join(words[1:3])
        elif words[:1] == ["chain"]:
            chain = words[1]
        elif "hook forward" in line and "policy drop" in line and table.split()[0] in ("ip", "inet"):
            # iptables-nft keeps its chains in this table. Administrators know them by the name of iptables.
            found.append("iptables FORWARD" if (table, chain) == ("ip filter", "FORWARD") else f"{table} {chain}")
    return found


def cni_files() -> list[str]:
    """Configurations of pod networks in the distribution's folder: of others, or of a cluster that others made."""
    names = [os.path.basename(path) for path in glob.glob(CNI_FOLDER + "/*") if not _is_own(path)]
    return sorted(name for name in names if name.endswith((".conf", ".conflist", ".json")))


def _is_own(path: str) -> bool:
    """Whether containerd wrote the file from the template that versions before /etc/pai-install/cni gave it."""
    try:
        found = json.loads(read(path))
        # Earlier versions let containerd write into this folder. Such a file is ours and no obstacle.
        return bool(found["name"] == "pods" and found["plugins"][0]["bridge"] == "cni0")
    except (ValueError, KeyError, IndexError, TypeError):
        return False
