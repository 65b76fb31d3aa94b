"""Conditions of an NVIDIA driver installation, checked only if the site installs a driver."""

from __future__ import annotations

import re

from pai_install.checks.result import Result, failed, passed, unknown, warned
from pai_install.preflight.model import Case, machine_check
from pai_install.site.nvidia_driver import DriverSpec


def _desired(case: Case) -> DriverSpec | None:
    driver = case.site.settings.nvidia_driver
    return driver if isinstance(driver, DriverSpec) and case.site.sku_of(case.machine).has_nvidia else None


def _branch(loaded: str) -> str:
    """The branch in the first line of /proc/driver/nvidia/version."""
    found = re.search(r"\b(\d{3,})\.\d+", loaded)
    return found[1] if found else ""


@machine_check(
    id="driver-headers",
    title="Headers of the running kernel are available for the driver's modules",
    reads=(
        "hardware: /lib/modules/RELEASE/build, apt-cache policy linux-headers-RELEASE, and nvidia_driver in config.yaml"
    ),
    rule="FAIL when they are neither installed nor in a package source. PASS in a container",
    source="DKMS",
    remedy="reboot the machine into a kernel of its package sources, or enable the source of this kernel",
)
def driver_headers(case: Case) -> Result | None:
    """Modules are built for the kernel that runs."""
    if _desired(case) is None:
        return None
    if case.evidence.container:
        return passed(message="a container uses the modules of its host")
    found = case.evidence.hardware.headers
    if found:
        return passed(found, message="headers of the running kernel")
    kernel = case.evidence.system.kernel
    return failed("the driver's modules cannot be built for the running kernel", kernel, f"linux-headers-{kernel}")


@machine_check(
    id="driver-secure-boot",
    title="Secure Boot accepts the driver's modules",
    reads="hardware: the EFI variable SecureBoot, mokutil --test-key, and nvidia_driver in config.yaml",
    rule="FAIL when Secure Boot is on and the key of DKMS is not enrolled",
    source="DKMS; Debian and Ubuntu, Secure Boot",
    remedy="disable Secure Boot in the firmware, or create and enrol the key of DKMS (Debian: dkms generate_mok, then "
    "mokutil --import /var/lib/dkms/mok.pub, Ubuntu: update-secureboot-policy --new-key and --enroll-key). Confirm it "
    "on the console at the next boot",
)
def driver_secure_boot(case: Case) -> Result | None:
    """Modules that are built on the machine are signed by a key of its own."""
    if _desired(case) is None:
        return None
    hardware = case.evidence.hardware
    if not hardware.secure_boot:
        return passed("off", message="Secure Boot is off")
    if hardware.dkms_key_enrolled:
        return passed("on, key enrolled", message="the key of DKMS is enrolled")
    return failed("Secure Boot is on: the kernel rejects modules built on this machine", "on", "off, or a known key")


@machine_check(
    id="driver-in-use",
    title="No running program loses the loaded driver",
    reads="hardware: /proc/driver/nvidia/version, devices: open files of processes, and nvidia_driver in config.yaml",
    rule="FAIL when another branch is loaded and programs use it. WARN when another branch is loaded, or nouveau",
    remedy="wait for these programs, run apply, and reboot the machine. The loaded driver remains until the reboot",
)
def driver_in_use(case: Case) -> Result | None:
    """Packages of another branch replace the libraries of the loaded one at once."""
    driver = _desired(case)
    if driver is None:
        return None
    hardware, count = case.evidence.hardware, case.evidence.devices.gpu_processes
    expected = f"{driver.branch}, or none"
    if hardware.nouveau:
        remedy = "reboot the machine after apply, which disables nouveau"
        return warned("nouveau drives the NVIDIA devices until a reboot", "nouveau", expected, remedy=remedy)
    loaded = _branch(hardware.nvidia_driver)
    if loaded in ("", str(driver.branch)):
        return passed(loaded or "none", message="no driver of another branch is loaded")
    if count is None:
        return unknown("only root can read which programs use the driver")
    if count:
        who = "1 program uses" if count == 1 else f"{count} programs use"
        return failed(f"{who} the driver {loaded}, whose libraries are replaced", f"{loaded}, {count}", expected)
    return warned(f"the driver {loaded} stays loaded until a reboot", loaded, expected)
