"""A machine that runs something before pai-install sees it: which mix-ins made it, and what must be left of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

SUITE = "bookworm"
# the order counts: the container is at work before Docker's unit is an old one
MIXINS = (
    *("docker-in-use", "docker-old-unit", "containerd-drop-in", "nvidia-toolkit-old", "own-chrony", "own-firewall"),
    *("forward-drop", "cni-foreign", "two-networks", "closed-home"),
)
# of the machine that loses its power in the middle of the installation, and so starts once more
MIXINS_LOST = ("hosts-rewritten",)

# what the admin wrote: none of it may get lost, and what the cluster needs stands beside it
DAEMON = {
    "debug": True,
    "labels": ["rack=b7"],
    "insecure-registries": ["registry.corp.example:5000"],
    "log-opts": {"labels": "team"},
    "runtimes": {"quiet": {"path": "/usr/bin/runc", "runtimeArgs": ["--log-format=json"]}},
}
CHRONY = "# of the admin\nserver 192.0.2.123 iburst\n"
# as Docker itself, ufw or firewalld leave it
FORWARD_POLICY = "-P FORWARD DROP"
# of a pod network that was there before, and would come first in the alphabet
CNI_FILE = "/etc/cni/net.d/05-old.conflist"
CNI = {"cniVersion": "0.4.0", "name": "old", "plugins": [{"type": "bridge", "bridge": "old0"}]}
CNI_PODMAN = "87-podman-bridge.conflist"
# a stand-in for a GPU: a device of that name in a container, which is the machine's /dev/null
GPU_STAND_IN = "/dev/nvidia7"
IPTABLES_RULE = "INPUT -p tcp --dport 9998 -m comment --comment of-the-admin -j DROP"


def options(existing: str, lost: str) -> list[str]:
    """What `lab up` is asked for beyond the site."""
    return [
        f"--suite={existing}={SUITE}",
        *(f"--with={existing}={name}" for name in MIXINS),
        *(f"--with={lost}={name}" for name in MIXINS_LOST),
    ]


@dataclass(frozen=True)
class Container:
    """What tells whether a container is still the very same: its id, its start, its process on the machine."""

    identity: str
    started: str
    pid: int
    restarts: int


def container(inspected: str) -> Container:
    """From the output of `docker inspect NAME`. Raises AssertionError when it does not run."""
    one: dict[str, Any] = json.loads(inspected)[0]
    assert one["State"]["Running"], one["State"]
    return Container(one["Id"], one["State"]["StartedAt"], one["State"]["Pid"], one["RestartCount"])
