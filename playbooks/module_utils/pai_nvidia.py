"""The NVIDIA driver of a machine: loaded version, packages of a branch, and their common version."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.pai_machine import read

VENDOR, BRIDGE = "0x10de", "0x0680"
# the first branch whose fabric manager NVIDIA's repository has without the branch in its name
UNNUMBERED = 580


class DriverError(Exception):
    """The driver cannot be installed from its source. The text says why."""


def loaded_version(proc: str = "/proc") -> str:
    """Returns the version of the loaded driver, such as "580.126.20", or ""."""
    found = re.search(r"NVRM version: .*?\b(\d{3,}\.\d+(?:\.\d+)?)\b", read(proc + "/driver/nvidia/version"))
    return found.group(1) if found else ""


def switches(sys: str = "/sys") -> int:
    """How many NVSwitches are on the PCI bus: they need the fabric manager. From NVLink 5 on they are not on it."""
    found = glob.glob(sys + "/bus/pci/devices/*/vendor")
    return sum(
        read(path).strip() == VENDOR and read(os.path.dirname(path) + "/class").startswith(BRIDGE) for path in found
    )


def driver_facts(proc: str = "/proc", sys: str = "/sys") -> dict[str, Any]:
    """For pai_facts."""
    return {
        "driver": loaded_version(proc),
        "nouveau": os.path.isdir(sys + "/module/nouveau"),
        "switches": switches(sys),
    }


def wanted_packages(os_id: str, branch: int, modules: str, packages: str, *, fabric: bool) -> dict[str, bool]:
    """Package -> whether its version is the driver's. By the names of Debian, of Ubuntu, and of NVIDIA's repository.

    Raises DriverError where there is no such package.
    """
    proprietary = modules == "proprietary"
    # NVIDIA's repository has several branches. Its pinning package keeps apt on one of them.
    if packages == "nvidia":
        unversioned = {f"nvidia-driver-pinning-{branch}": False}
        if os_id == "debian":
            kernel = "nvidia-kernel-dkms" if proprietary else "nvidia-kernel-open-dkms"
            exact = {kernel: True, "nvidia-driver-cuda": True, "nvidia-persistenced": True}
        else:
            exact = {"cuda-drivers" if proprietary else "nvidia-open": True}
        name = "nvidia-fabricmanager" if branch >= UNNUMBERED else f"nvidia-fabricmanager-{branch}"
        return {**unversioned, **exact, **({name: True} if fabric else {})}
    if os_id == "debian":
        if fabric:
            raise DriverError("Debian has no package of the fabric manager, which machines with NVSwitch need")
        kernel = "nvidia-kernel-dkms" if proprietary else "nvidia-open-kernel-dkms"
        # the persistence daemon has versions of its own there
        return {kernel: True, "nvidia-smi": True, "libcuda1": True, "nvidia-persistenced": False}
    flavour = f"{branch}-server"
    exact = {f"nvidia-headless-{flavour}{'' if proprietary else '-open'}": True, f"nvidia-utils-{flavour}": True}
    return {**exact, **({f"nvidia-fabricmanager-{branch}": True} if fabric else {})}


def choose(offered: Mapping[str, Sequence[str]], wanted: Mapping[str, bool], branch: int) -> tuple[str, dict[str, str]]:
    """The newest driver that every package has, and package -> its version of that.

    offered: package -> versions as apt has them, newest first. wanted: package -> whether its version is the driver's.
    Raises DriverError.
    """
    missing = [name for name in wanted if not offered.get(name)]
    if missing:
        raise DriverError(f"no package source has {', '.join(missing)}")
    exact = [name for name in wanted if wanted[name]]
    common = [
        driver
        for driver in dict.fromkeys(driver_of(version) for version in offered[exact[0]])
        # nvidia-smi and the fabric manager refuse a driver of another version, so all packages must have the same one.
        if driver.partition(".")[0] == str(branch) and all(driver in map(driver_of, offered[name]) for name in exact)
    ]
    if not common:
        had = "; ".join(f"{name} {', '.join(dict.fromkeys(map(driver_of, offered[name])))}" for name in exact)
        raise DriverError(f"no version of branch {branch} is there of every package: {had}")
    picked = {
        name: next(version for version in offered[name] if not wanted[name] or driver_of(version) == common[0])
        for name in wanted
    }
    return common[0], picked


def driver_of(version: str) -> str:
    """The driver's version in a package's: "1:580.126.20-1ubuntu1" -> "580.126.20"."""
    found = re.match(r"(?:\d+:)?([0-9.]+)", version)
    return found.group(1).rstrip(".") if found else version


def parse_madison(text: str) -> dict[str, list[str]]:
    """`apt-cache madison`: package -> versions, newest first, each once."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 3 and not cells[2].endswith("Sources") and cells[1] not in found.setdefault(cells[0], []):
            found[cells[0]].append(cells[1])
    return found
