"""Requirements of the lab on the controller host. All are checked before any change, and all gaps are reported
together.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.lab.distribution import DEBIAN
from pai_install.lab.names import LABS_DIR
from pai_install.lab.spec import LabSpec
from pai_install.system.packages import install
from pai_install.system.proc import run
from pai_install.system.words import plural

# command -> the Debian package that has it
COMMANDS: Mapping[str, str] = {
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "mkfs.ext4": "e2fsprogs",
}
KEYRING = Path(DEBIAN.keyring)
GIB = 1 << 30
IMAGE_BYTES = GIB
MACHINE_BYTES = 4 * GIB
MACHINE_MEMORY = 256 << 20
# bit numbers in /proc/self/status
CAPABILITIES: Mapping[str, int] = {
    "CAP_CHOWN": 0,
    "CAP_NET_ADMIN": 12,
    "CAP_SYS_CHROOT": 18,
    "CAP_SYS_ADMIN": 21,
    "CAP_MKNOD": 27,
}
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "uts")
# Tried for real in a network namespace that is gone afterwards: modules load, and built-in features have no name.
NETWORK_PROBES: Mapping[str, str] = {
    "veth": "ip link add v0 type veth peer name v1",
    "bridge": "ip link add b0 type bridge",
    "vxlan": "ip link add x0 type vxlan id 1 dstport 4789",
    "nf_tables": "nft add table ip probe",
    "NAT": "nft 'add chain ip probe c { type nat hook postrouting priority 100; }'",
}

_ADMIN_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class BoxFacts:
    """Observations of the host.

    probes: feature -> whether it works, empty if not tried. hidden_commands: installed outside PATH.
    """

    is_root: bool
    capabilities: int
    missing_commands: tuple[str, ...]
    has_keyring: bool
    filesystems: frozenset[str]
    namespaces: frozenset[str]
    has_cgroups: bool
    probes: Mapping[str, bool]
    free_bytes: int
    free_memory: int
    has_apt: bool
    hidden_commands: tuple[str, ...] = ()


def missing_packages(facts: BoxFacts) -> tuple[str, ...]:
    """Returns the Debian packages of missing programs."""
    packages = {COMMANDS[command] for command in facts.missing_commands}
    return tuple(sorted(packages | (set() if facts.has_keyring else {"debian-archive-keyring"})))


def gaps(facts: BoxFacts, machines: int) -> tuple[str, ...]:
    """Returns all obstacles of a lab with that many machines, except missing packages."""
    if not facts.is_root:
        # without root, most other observations are wrong
        return ("root: repeat the command with sudo",)
    found = [
        f"capability {name}: the controller host is itself a container"
        for name, bit in CAPABILITIES.items()
        if not facts.capabilities >> bit & 1
    ]
    found += [f"kernel: no {name} namespaces" for name in NAMESPACES if name not in facts.namespaces]
    if "overlay" not in facts.filesystems:
        found.append("kernel: no overlay file system")
    if not facts.has_cgroups:
        found.append("kernel: no control groups mounted below /sys/fs/cgroup")
    found += [f"kernel: no {name}" for name, works in facts.probes.items() if not works]
    needed = IMAGE_BYTES + machines * MACHINE_BYTES
    if facts.free_bytes < needed:
        found.append(f"disk: {_gib(facts.free_bytes)} free at {LABS_DIR}, {_gib(needed)} needed")
    if facts.free_memory < machines * MACHINE_MEMORY:
        found.append(f"memory: {_gib(facts.free_memory)} free, {_gib(machines * MACHINE_MEMORY)} needed")
    if facts.hidden_commands:
        found.append(f"PATH: add /usr/sbin for {', '.join(facts.hidden_commands)}")
    if missing_packages(facts) and not facts.has_apt:
        found.append(f"commands: {', '.join(facts.missing_commands)} (no apt-get to install them)")
    return tuple(found)


def ensure_requirements(
    spec: LabSpec, *, confirm: Callable[[str], bool], progress: Callable[[str], None]
) -> tuple[str, ...]:
    """Checks the host, and installs missing packages after confirmation. Returns the installed packages.

    Raises PaiError with every gap, or if the installation was refused.
    """
    packages = missing_packages(check_host(spec))
    if packages:
        if not confirm(f"The lab needs these Debian packages: {' '.join(packages)}. Install them on this host?"):
            raise PaiError(
                f"cannot create the lab: the packages {' '.join(packages)} are missing",
                code="lab-packages-missing",
                remedy=f"run apt-get install {' '.join(packages)}",
                exit_code=ExitCode.PREFLIGHT_FAILED,
            )
        progress(f"installing {' '.join(packages)}")
        install(packages)
        check_host(spec)
    return packages


def check_host(spec: LabSpec) -> BoxFacts:
    """Observes the host. Raises PaiError with all obstacles, except missing packages."""
    facts = observe_box()
    if found := gaps(facts, len(spec.machines)):
        raise PaiError(
            f"cannot create the lab: this host lacks {plural(len(found), 'requirement')}",
            code="lab-requirements-missing",
            details="\n".join(found),
            remedy="meet the prerequisites in docs/lab.md, then repeat the command",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
    return facts


def observe_box() -> BoxFacts:
    """Observes the controller host. Read-only."""
    is_root = os.geteuid() == 0
    status = Path("/proc/self/status").read_text()
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    unseen = [command for command in COMMANDS if shutil.which(command) is None]
    hidden = tuple(command for command in unseen if shutil.which(command, path=_ADMIN_PATH))
    missing = tuple(command for command in unseen if command not in hidden)
    memory = re.search(r"^MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return BoxFacts(
        is_root=is_root,
        capabilities=int(effective[1], 16) if effective else 0,
        missing_commands=missing,
        has_keyring=KEYRING.exists(),
        filesystems=frozenset(_filesystems()),
        namespaces=frozenset(path.name for path in Path("/proc/self/ns").iterdir()),
        has_cgroups="cgroup" in Path("/proc/self/mounts").read_text(),
        probes=_probe_network() if is_root and not {"ip", "nft"} & set(unseen) else {},
        free_bytes=_free_bytes(LABS_DIR),
        free_memory=int(memory[1]) * 1024 if memory else 0,
        has_apt=shutil.which("apt-get") is not None,
        hidden_commands=hidden,
    )


def _filesystems() -> list[str]:
    def known() -> list[str]:
        return [line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()]

    if "overlay" not in known() and shutil.which("modprobe"):
        run(["modprobe", "overlay"], check=False)
    return known()


def _probe_network() -> dict[str, bool]:
    script = "\n".join(f"{command} >/dev/null 2>&1 && echo {name}" for name, command in NETWORK_PROBES.items())
    worked = run(["unshare", "--net", "sh", "-c", f"{script}\ntrue"], check=False).stdout.split()
    return {name: name in worked for name in NETWORK_PROBES}


def _free_bytes(path: Path) -> int:
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    return shutil.disk_usage(nearest).free


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
