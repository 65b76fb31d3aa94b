"""The machine is what its hardware type says."""

from __future__ import annotations

from collections.abc import Sequence

from pai_install.preflight.evidence import PciDevice
from pai_install.preflight.model import Case, Check, Ruling, failed, had, passed, size_text, skipped, unknown, warned

_VENDORS = {"nvidia.com": "10de", "amd.com": "1002", "enflame.com": "1e36", "gpu.intel.com": "8086"}
# the kernel and the firmware keep some of what the modules hold
_VISIBLE_MEMORY = 0.9
_CONTROL_PLANE_MEMORY = 1700 << 20
_CONTROL_PLANE_CPUS = 2
_OFF_THE_BUS = "ff"


def memory(case: Case) -> Ruling | None:
    """As much memory as the type says, and enough for a control plane."""
    seen = had(had(case.evidence.hardware, "hardware").memory_bytes, "hardware")
    wanted = case.site.sku_of(case.machine).mem_bytes
    value = size_text(seen)
    if case.machine.control_plane and seen < _CONTROL_PLANE_MEMORY:
        least = size_text(_CONTROL_PLANE_MEMORY)
        return failed("too little memory for a control plane", value=value, expected=least, remedy="give it more")
    if seen >= wanted * _VISIBLE_MEMORY:
        return passed("memory is what its type says", value)
    return failed(
        "less memory than its type has",
        value=value,
        expected=f"{size_text(wanted)} (mem of {case.machine.sku})",
        remedy="look for a failed memory module (`dmidecode -t memory`), or correct mem in layout.yaml",
    )


def cpus(case: Case) -> Ruling | None:
    """As many processors as the type says, and enough for a control plane."""
    seen = had(had(case.evidence.hardware, "hardware").cpus, "hardware")
    wanted = case.site.sku_of(case.machine).vcore
    if case.machine.control_plane and seen < _CONTROL_PLANE_CPUS:
        return failed("a control plane needs two processors", value=str(seen), expected="2", remedy="give it more")
    if seen >= wanted:
        return passed("enough processors", str(seen))
    return failed(
        "fewer processors than its type has",
        value=str(seen),
        expected=f"{wanted} (vcore of {case.machine.sku})",
        remedy="look whether hyper-threading or a socket is off, or correct vcore in layout.yaml",
    )


def accelerators(case: Case) -> Ruling | None:
    """As many accelerators on the PCI bus as the type says."""
    device = case.site.sku_of(case.machine).device
    if device is None:
        return None
    kind = device.type.partition("/")[0]
    vendor = _VENDORS.get(kind)
    if vendor is None:
        return unknown(f"{device.type}: its devices on the PCI bus are not known to pai-install")
    found = [pci for pci in had(case.evidence.hardware, "hardware").pci if pci.vendor == vendor]
    if case.evidence.container and not found:
        return skipped(f"a container ({case.evidence.container}) has no PCI bus of its own")
    return _counted(case, found, device.count, sliced=not device.type.endswith("/gpu") and kind == "nvidia.com")


def _counted(case: Case, found: Sequence[PciDevice], wanted: int, *, sliced: bool) -> Ruling:
    lost = [pci.address for pci in found if pci.revision == _OFF_THE_BUS]
    value = f"{len(found)} ({', '.join(pci.address for pci in found)})" if found else "0"
    if lost:
        return failed(
            f"{', '.join(lost)} has fallen off the bus",
            value="revision ff",
            expected="an answering device",
            remedy="switch the machine off and on (not only reboot); if it comes again, replace the device",
        )
    if len(found) == wanted or (sliced and found):
        return passed(f"{len(found)} accelerators on the PCI bus", value)
    expected = f"{wanted} (computing-device of {case.machine.sku})"
    if len(found) > wanted:
        remedy = "correct count in layout.yaml: the others would not be used"
        return warned("more accelerators than its type has", value=value, expected=expected, remedy=remedy)
    message = "fewer accelerators than its type has" if found else "no accelerator on the PCI bus"
    remedy = "look at power and seating (`lspci -nn`), pass the devices through to a virtual machine, or correct count"
    return failed(message, value=value, expected=expected, remedy=remedy)


def nvidia_driver(case: Case) -> Ruling | None:
    """NVIDIA's driver runs; pai-install brings the container runtime, not the driver."""
    hardware = had(case.evidence.hardware, "hardware")
    if not any(pci.vendor == _VENDORS["nvidia.com"] for pci in hardware.pci):
        return None
    if hardware.nvidia_driver:
        return passed("NVIDIA's driver is loaded", hardware.nvidia_driver)
    if hardware.nouveau:
        return warned(
            "nouveau drives the NVIDIA devices: containers cannot use them",
            value="nouveau",
            expected="NVIDIA's driver",
            remedy="blacklist nouveau, install NVIDIA's driver (open modules from Turing on), reboot",
        )
    remedy = "install NVIDIA's driver and reboot; the cluster can be installed before or after"
    return warned("NVIDIA's driver is not loaded: jobs get no GPU", expected="a loaded driver", remedy=remedy)


CHECKS = (
    Check("memory", "Memory is what mem of the type says (at least 90 % of it visible to the kernel)", memory),
    Check("cpus", "At least vcore of the type, two on a control plane", cpus),
    Check("accelerators", "As many devices on the PCI bus as computing-device says", accelerators),
    Check("nvidia-driver", "NVIDIA's driver is loaded where the devices are", nvidia_driver),
)
