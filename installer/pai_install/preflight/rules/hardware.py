"""The hardware is that of the machine's SKU."""

from __future__ import annotations

from collections.abc import Sequence

from pai_install.checks.evidence import require
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.preflight.evidence import PciDevice
from pai_install.preflight.model import Case, machine_check, size_text
from pai_install.site.nvidia_driver import DriverSpec

_VENDORS = {"nvidia.com": "10de", "amd.com": "1002", "enflame.com": "1e36", "gpu.intel.com": "8086"}
# A device that has fallen off the bus answers every read with ones, so its revision reads as ff.
_OFF_THE_BUS = "ff"


@machine_check(
    id="memory",
    title="The machine has at least 90 % of the SKU's mem",
    reads="hardware: MemTotal, and mem in layout.yaml",
    rule="FAIL below visible-memory-percent of mem, and on a control plane below control-plane-memory-mib",
    limits=(
        "visible-memory-percent",
        "control-plane-memory-mib",
    ),
    source="own; kubeadm",
    remedy="find the failed memory module (`dmidecode -t memory`), or correct mem in layout.yaml",
)
def memory(case: Case) -> Result | None:
    """As much memory as the SKU says, and enough for a control plane."""
    seen = require(case.evidence.hardware.memory_bytes, "memory")
    least = int(case.limit("control-plane-memory-mib")) << 20
    wanted = case.site.sku_of(case.machine).mem_bytes
    value = size_text(seen)
    if case.machine.control_plane and seen < least:
        shown = size_text(least)
        return failed(
            "too little memory for a control plane", value=value, expected=shown, remedy="add memory to the machine"
        )
    if seen >= wanted * case.limit("visible-memory-percent") / 100:
        return passed(value, message="the memory matches the SKU")
    return failed(
        "less memory than in the SKU",
        value=value,
        expected=f"{size_text(wanted)} (mem of {case.machine.sku})",
    )


@machine_check(
    id="cpus",
    title="The machine has the SKU's vcore, and a control plane has at least two",
    reads="hardware: processors, and vcore in layout.yaml",
    rule="FAIL below vcore, and on a control plane below control-plane-cpus",
    limits=("control-plane-cpus",),
    source="own; kubeadm",
    remedy="check whether hyper-threading or a socket is off, or correct vcore in layout.yaml",
)
def cpus(case: Case) -> Result | None:
    """As many processors as the SKU says, and enough for a control plane."""
    seen, least = require(case.evidence.hardware.cpus, "processors"), case.limit("control-plane-cpus")
    wanted = case.site.sku_of(case.machine).vcore
    if case.machine.control_plane and seen < least:
        return failed(
            "a control plane needs two processors", value=seen, expected=f"{least:g}", remedy="add processors"
        )
    if seen >= wanted:
        return passed(str(seen), message="enough processors")
    return failed(
        "fewer processors than in the SKU",
        value=str(seen),
        expected=f"{wanted} (vcore of {case.machine.sku})",
    )


@machine_check(
    id="accelerators",
    title="The PCI bus has the number of devices of computing-device",
    reads="hardware: the PCI bus in sysfs, and computing-device in layout.yaml",
    rule="FAIL for fewer devices, or a device with revision ff. WARN for more. SKIP in a container without a bus",
    remedy="check power and seating (`lspci -nn`), pass the devices through to a virtual machine, or correct count",
)
def accelerators(case: Case) -> Result | None:
    """As many accelerators on the PCI bus as the SKU says."""
    device = case.site.sku_of(case.machine).device
    if device is None:
        return None
    kind = device.type.partition("/")[0]
    vendor = _VENDORS.get(kind)
    if vendor is None:
        return unknown(f"{device.type}: pai-install does not know their PCI ids")
    found = [pci for pci in case.evidence.hardware.pci if pci.vendor == vendor]
    if case.evidence.container and not found:
        return skipped(f"a container ({case.evidence.container}) has no PCI bus")
    # A sliced GPU counts as several resources, so their number says nothing about cards on the bus.
    return _counted(case, found, device.count, sliced=not device.type.endswith("/gpu") and kind == "nvidia.com")


def _counted(case: Case, found: Sequence[PciDevice], wanted: int, *, sliced: bool) -> Result:
    lost = [pci.address for pci in found if pci.revision == _OFF_THE_BUS]
    value = f"{len(found)} ({', '.join(pci.address for pci in found)})" if found else "0"
    if lost:
        return failed(
            f"{', '.join(lost)} has fallen off the bus",
            value="revision ff",
            expected="an answering device",
            remedy="power the machine off and on (a reboot is not enough). If the fault returns, replace the device",
        )
    if len(found) == wanted or (sliced and found):
        return passed(value, message=f"{len(found)} accelerators on the PCI bus")
    expected = f"{wanted} (computing-device of {case.machine.sku})"
    if len(found) > wanted:
        remedy = "correct count in layout.yaml. Additional devices would not be used"
        return warned("more accelerators than in the SKU", value=value, expected=expected, remedy=remedy)
    message = "fewer accelerators than in the SKU" if found else "no accelerator on the PCI bus"
    return failed(message, value=value, expected=expected)


@machine_check(
    id="nvidia-driver",
    title="The NVIDIA driver is loaded on machines with NVIDIA devices",
    reads="hardware: the PCI bus, /proc/driver/nvidia/version, the module nouveau",
    rule="WARN when the driver is not loaded, or nouveau is",
    source="NVIDIA",
    remedy="install the NVIDIA driver and reboot, before or after the cluster is installed, or write nvidia_driver in "
    "config.yaml",
)
def nvidia_driver(case: Case) -> Result | None:
    """The NVIDIA driver runs, or the site has it installed."""
    hardware = case.evidence.hardware
    if not any(pci.vendor == _VENDORS["nvidia.com"] for pci in hardware.pci):
        return None
    if hardware.nvidia_driver:
        return passed(hardware.nvidia_driver, message="the NVIDIA driver is loaded")
    if isinstance(case.site.settings.nvidia_driver, DriverSpec):
        return passed("none", message="apply installs the NVIDIA driver")
    if hardware.nouveau:
        return warned(
            "nouveau drives the NVIDIA devices: containers cannot use them",
            value="nouveau",
            expected="the NVIDIA driver",
            remedy="blacklist nouveau, install the NVIDIA driver (open modules from Turing on), and reboot",
        )
    return warned("the NVIDIA driver is not loaded: jobs get no GPU", expected="a loaded driver")
