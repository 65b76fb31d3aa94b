"""Conditions of an NVIDIA driver installation, checked only if the site installs a driver."""

from __future__ import annotations

import re

from pai_install.checks.result import Result, failed, passed, unknown, warned
from pai_install.preflight.model import Case, machine_check
from pai_install.site.nvidia_driver import DriverWish


def _wish(case: Case) -> DriverWish | None:
    wish = case.site.settings.nvidia_driver
    return wish if isinstance(wish, DriverWish) and case.site.sku_of(case.machine).has_nvidia else None


def _branch(loaded: str) -> str:
    """The branch in the first line of /proc/driver/nvidia/version."""
    found = re.search(r"\b(\d{3,})\.\d+", loaded)
    return found[1] if found else ""


@machine_check(
    id="driver-headers",
    title="Headers of the running kernel are there for the driver's modules",
    reads="hardware: /lib/modules/RELEASE/build, apt-cache policy linux-headers-RELEASE; nvidia_driver in config.yaml",
    rule="FAIL when they are not installed and no package source has them; PASS in a container",
    source="DKMS",
    remedy="restart the machine into a kernel that its package sources still have, or enable the source of this kernel",
)
def driver_headers(case: Case) -> Result | None:
    """Modules are built for the kernel that runs."""
    if _wish(case) is None:
        return None
    if case.evidence.container:
        return passed(message="a container: its host has the modules")
    found = case.evidence.hardware.headers
    if found:
        return passed(found, message="headers of the running kernel")
    kernel = case.evidence.system.kernel
    return failed("the driver's modules cannot be built for the kernel that runs", kernel, f"linux-headers-{kernel}")


@machine_check(
    id="driver-secure-boot",
    title="The firmware lets the kernel load the driver's modules",
    reads="hardware: the EFI variable SecureBoot, mokutil --test-key; nvidia_driver in config.yaml",
    rule="FAIL when Secure Boot is on and the key of DKMS is not enrolled",
    source="DKMS; Debian and Ubuntu, Secure Boot",
    remedy="turn Secure Boot off in the firmware, or make and enrol the key of DKMS (Debian: dkms generate_mok, then "
    "mokutil --import /var/lib/dkms/mok.pub, Ubuntu: update-secureboot-policy --new-key and --enroll-key), which the "
    "firmware asks for on the console at the next start",
)
def driver_secure_boot(case: Case) -> Result | None:
    """Modules that are built on the machine are signed by a key of its own."""
    if _wish(case) is None:
        return None
    hardware = case.evidence.hardware
    if not hardware.secure_boot:
        return passed("off", message="Secure Boot is off")
    if hardware.dkms_key_enrolled:
        return passed("on, key enrolled", message="Secure Boot knows the key of DKMS")
    return failed("Secure Boot is on: the kernel refuses modules built on this machine", "on", "off, or a known key")


@machine_check(
    id="driver-in-use",
    title="The driver that is loaded is not exchanged under running programs",
    reads="hardware: /proc/driver/nvidia/version; devices: open files of all processes; nvidia_driver in config.yaml",
    rule="FAIL when another branch is loaded and programs use it; WARN when another branch is loaded, or nouveau",
    remedy="let these programs end first, then apply, and restart the machine: the loaded driver stays until then",
)
def driver_in_use(case: Case) -> Result | None:
    """Packages of another branch replace the libraries of the loaded one at once."""
    wish = _wish(case)
    if wish is None:
        return None
    hardware, count = case.evidence.hardware, case.evidence.devices.gpu_processes
    expected = f"{wish.branch}, or none"
    if hardware.nouveau:
        remedy = "restart the machine after apply: nouveau is kept away from then on"
        return warned(
            "nouveau drives the NVIDIA devices until the machine restarts", "nouveau", expected, remedy=remedy
        )
    loaded = _branch(hardware.nvidia_driver)
    if loaded in ("", str(wish.branch)):
        return passed(loaded or "none", message="no driver of another branch is loaded")
    if count is None:
        return unknown("only root sees which programs use the driver")
    if count:
        who = "1 program uses" if count == 1 else f"{count} programs use"
        return failed(f"{who} the driver {loaded}, whose libraries are replaced", f"{loaded}, {count}", expected)
    return warned(f"the driver {loaded} stays loaded until the machine restarts", loaded, expected)
