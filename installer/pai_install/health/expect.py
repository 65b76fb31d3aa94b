"""What a site says its machines are, in the words of the health checks."""

from __future__ import annotations

from pai_install.health.snapshot import Expectation
from pai_install.site.model import Site


def expectations(site: Site) -> dict[str, Expectation]:
    """Machine -> expectation, for the present machines."""
    found = {}
    for machine in site.present_machines:
        sku = site.sku_of(machine)
        device = sku.device
        mig = device is not None and "/mig" in device.type
        found[machine.hostname] = Expectation(
            sku=sku.name,
            device=device.type if device else "",
            model=device.model if device else "",
            count=device.count if device and not mig else None,
            ram_bytes=sku.mem_bytes,
            cpus=sku.vcore,
            control_plane=machine.control_plane,
            worker=machine.worker,
            mig=device.count if device and mig else None,
        )
    return found
