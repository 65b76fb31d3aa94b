"""After reset --with-data a machine is what it was before; every difference has a name and a reason."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from .conftest import Cluster, bare_machines

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.87"
MACHINES = ("lab-master", "lab-worker1", "lab-worker2")

# What describes a machine: a topic -> a command of which each line is one fact.
FACTS: Mapping[str, str] = {
    "packages": "dpkg-query --show --showformat '${Package} ${db:Status-Status}\\n' | grep ' installed$'",
    "held packages": "apt-mark showhold",
    "content in /etc": "find /etc -xdev -type f -exec sha256sum {} +",
    "files in /etc": "find /etc -xdev ! -type d -printf '%p %m %u:%g %l\\n'",
    "folders in /etc": "find /etc -xdev -type d -printf '%p %m %u:%g\\n'",
    "files in /var": "find /var -xdev ! -type d -printf '%p %m %u:%g\\n'",
    "folders in /var": "find /var -xdev -type d -printf '%p %m %u:%g\\n'",
    "files in /usr/local and /opt": "find /usr/local /opt -xdev ! -type d -printf '%p %m\\n'",
    "units that are enabled": "systemctl list-unit-files --state=enabled --no-legend --plain | awk '{ print $1 }'",
    "interfaces": "ip -brief link | awk '{ print $1 }'",
    "addresses": "ip -brief -4 address | awk '{ print $1, $3 }'",
    "routes": "ip route",
    # rules and chains: iptables makes its empty tables whenever somebody asks it, and counts packets
    "packet filters": "nft list tables | grep -vE ' ip6? (filter|nat|mangle)$';"
    " { iptables-save; ip6tables-save; } 2>/dev/null | sed -n '/^-A/p; s/^\\(:[^ ]* -\\) .*/\\1/p'",
    "kernel parameters": "sysctl net.ipv4.ip_forward net.core.somaxconn vm.overcommit_memory",
    "users": "cut -d: -f1 /etc/passwd",
}

# What may differ, and why. Topic and line, as regular expressions.
EXCEPTIONS: Mapping[str, str] = {
    r"files in /var: /var/(log|lib/systemd|lib/dpkg|lib/apt|cache|tmp|backups)/": "the system's own: logs, caches, apt",
    r"folders in /var: /var/(log|lib/systemd|lib/apt|cache|tmp)/": "the system's own, as above",
    r"content in /etc: [0-9a-f]+  /etc/(ld\.so\.cache|mailcap|passwd|group|shadow|gshadow|subuid|subgid)-?": "as below",
    r"files in /etc: /etc/(ld\.so\.cache|mailcap|\.pwd\.lock|machine-id)": "made by the system from what is installed",
    r"files in /etc: /etc/(passwd|group|shadow|gshadow|subuid|subgid)-?": "apt adds users of packages, and keeps them",
    r"users: _chrony": "Debian's packages leave the users that they made",
    r"files in /var: /var/lib/systemd/": "state of timers",
    r"files in /var: /var/lib/ucf/(hashfile|registry)": "ucf keeps its earlier lists of the settings of packages",
    r"folders in /var: /var/lib/(containerd|docker|etcd) ": "disks of the lab: the programs set their mode",
    r"folders in /var: /var/lib/(private|systemd)": "made by systemd when a unit first asked for them",
}


def described(cluster: Cluster, machine: str) -> set[str]:
    """Everything that FACTS says of a machine, a line each."""
    lines = set()
    for topic, command in FACTS.items():
        lines |= {f"{topic}: {line.strip()}" for line in cluster.on(machine, command).splitlines() if line.strip()}
    return lines


def unexplained(lines: set[str]) -> list[str]:
    """The lines that no exception covers."""
    return sorted(line for line in lines if not any(re.match(pattern, line) for pattern in EXCEPTIONS))


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Cluster]:
    """Machines on which nothing was ever installed; gone afterwards."""
    with bare_machines(tmp_path, SUBNET) as site:
        yield Cluster(site, subprocess.CompletedProcess([], 0, "", ""))


def test_machines_are_what_they_were(bare: Cluster) -> None:
    before = {machine: described(bare, machine) for machine in MACHINES}
    report = bare.converge()
    assert report["ok"], report["stderr"]
    wrong = bare.run("reset", "--yes", "other")
    assert wrong.returncode == 2
    done = bare.run("reset", "--with-data", "--yes", bare.site.name)
    assert done.returncode == 0, done.stderr
    for machine in MACHINES:
        after = described(bare, machine)
        assert unexplained(after - before[machine]) == [], f"{machine} has more than before"
        assert unexplained(before[machine] - after) == [], f"{machine} lost something"
    again = bare.run("reset", "--with-data", "--yes", bare.site.name)
    assert again.returncode == 0
    assert "nothing to do" in again.stderr
    report = bare.converge()
    assert report["ok"], "a machine that was reset can be installed again"
